"""Facts read from the texts that a kernel shows, and the command line's table of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.host.here.doctor import cpu, facts

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Some CPU @ 2.70GHz
flags\t\t: fpu avx512f amx_tile

processor\t: 1
model name\t: Some other CPU
flags\t\t: fpu
"""


def test_the_first_cpu_stands_for_all() -> None:
    assert cpu.cpu_model(CPUINFO) == "Some CPU @ 2.70GHz"
    assert cpu.cpu_flags(CPUINFO) == {"fpu", "avx512f", "amx_tile"}


def test_a_cpu_without_a_name_is_unknown() -> None:
    assert cpu.cpu_model("processor : 0\n") == "unknown"
    assert cpu.cpu_flags("") == frozenset()


def test_the_version_of_bubblewrap_is_its_last_word() -> None:
    assert facts.bwrap_version("bubblewrap 0.8.0") == "0.8.0"


@pytest.mark.parametrize(("text", "value"), [("1\n", 1), ("0\n", 0), ("", None), ("\n", None)])
def test_a_switch_that_this_kernel_lacks_is_none(text: str, value: int | None) -> None:
    assert facts.switch(text) == value


def test_a_program_that_hangs_is_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "PROBE_HOST_S_MAX", 0.01)
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\nexec sleep 1000000\n")
    hangs.chmod(0o755)
    assert facts._output(hangs) == ""
    assert "timed out" in facts._jail_error(hangs)


def test_this_machine_can_be_examined() -> None:
    here = facts.gather()
    assert 1 <= here.cores_usable <= here.cores
    assert here.memory_available_bytes > 0
    assert (here.xstate_bytes is None) == bool(here.trace_error)
    # The legacy area and header of XSAVE alone are 576 bytes.
    assert here.xstate_bytes is None or here.xstate_bytes >= 576
