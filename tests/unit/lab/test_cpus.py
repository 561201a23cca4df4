"""CPU speeds mean what they say: numbers count cores of the host, GHz need its calibration."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dilaton.lab import LabError
from dilaton.lab.loader import loads


def cpu(text: str, core_ghz: float | None = 4.0) -> Fraction | None:
    return loads(f"name: x\nnodes:\n  a: {{cpu: {text}}}\n", "lab.yaml", core_ghz=core_ghz).nodes["a"].cpu


def refused(text: str, core_ghz: float | None = 4.0) -> str:
    with pytest.raises(LabError) as error:
        cpu(text, core_ghz)
    return str(error.value)


def test_a_number_counts_cores_of_the_host_calibrated_or_not() -> None:
    assert cpu("0.5") == cpu("{speed: 0.5, cores: 1}", None) == cpu("1/2", None) == Fraction(1, 2)


def test_ghz_are_divided_by_what_a_core_of_the_host_has() -> None:
    assert cpu("2.4GHz-equivalent") == cpu("{speed: 2.4 GHz equivalent}") == Fraction(6, 10)
    assert cpu("2.4GHz-equivalent", 1.2) == 2


def test_a_cycle_of_an_older_core_does_less() -> None:
    sandy, haswell, skylake = (cpu(f"4GHz {name}") or 0 for name in ("Xeon E5", "Xeon E5 v3", "Xeon Scalable"))
    assert sandy < haswell < skylake < 1
    assert float(sandy) == pytest.approx(1 / (1.18 * 1.19 * 1.21), abs=1e-6)


def test_a_machine_that_is_not_calibrated_is_told_the_command() -> None:
    assert refused("2.4GHz-equivalent", None) == (
        "lab.yaml:3:12: nodes.a.cpu: 2.4GHz-equivalent: how fast a core of this machine is, is not known; run dilaton "
        "doctor --calibrate, or write a number, which counts cores of the host"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0", "0: the speed of a CPU must be more than 0"),
        ("-1", "-1: the speed of a CPU must be more than 0"),
        ("0GHz-equivalent", "a speed must be more than 0"),
        ("3GHz Pentium", "3GHz Pentium: not a speed that is known; use 3GHz-equivalent, 3GHz Xeon E5, "),
        ("{speed: 1, cores: 4}", "cores: 4: the kernel of a guest has 1 CPU"),
        ("{cores: 1}", "speed: missing"),
        ("{speed: 1, threads: 2}", "threads: unknown field; known here: speed, cores"),
    ],
)
def test_a_speed_that_is_none_is_named(text: str, what: str) -> None:
    assert what in refused(text)
