"""Page faults of programs: the kernel is told of them without their stubs' being asked, and they are what they are natively."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from dilaton.host.here.guests.guest import Guest
from dilaton.host.orders import Orders
from tests.conftest import ROOT, RunLab
from tests.fidelity.held_guest import SECOND_NS, with_guest


@pytest.fixture(scope="module")
def faults() -> Path:
    """The program that makes them. Nodes do not see /tmp."""
    made = ROOT / "target" / "faults"
    subprocess.run(["cc", "-O2", "-o", made, Path(__file__).parent / "faults.c"], check=True)
    return made


@pytest.mark.usefixtures("traced")
def test_a_stub_is_rarely_asked_what_its_fault_was(tmp_path: Path, faults: Path) -> None:
    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, "work"))
        told = asked = 0
        while told < 2_000:
            assert guest.virtual_ns() < 60 * SECOND_NS, "the program makes no faults"
            await guest.run_until(guest.virtual_ns() + SECOND_NS // 10, Fraction(1))
            told, asked = (guest.page.read(name) for name in ("faults_told", "faults_asked"))
        # Also those of the boot.
        assert asked < told / 4

    with_guest(f"name: touch\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: touch, exec: {faults} touch}}]", tmp_path, work)


@pytest.mark.parametrize("drive", ["work", "event"])
def test_a_program_meets_the_faults_that_it_meets_natively(run_lab: RunLab, faults: Path, drive: str) -> None:
    native = subprocess.run([faults, "errors"], check=True, capture_output=True, text=True).stdout
    assert "store to read-only wrote there" in native
    assert "load of none read there" in native
    outcome = run_lab(
        f"name: faults\ntime: {{drive: {drive}}}\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: errors, exec: {faults} errors}}]"
    )
    assert outcome.stdout("a", "errors") == native
