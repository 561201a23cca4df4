"""The speed of a node's CPU, as users write it.

A number counts cores of the host. A speed in GHz means the same on every machine: `2.4GHz-equivalent` counts in the
unit that calibration measures (`host/here/doctor/calibration.py`), and `2.0GHz Xeon E5` is a core of a known family at
that clock, by what a core of it does in a cycle compared with the core of the unit. The known families are published
comparisons of cores at one clock, multiplied up; none of them was measured here (docs/cpu.md has the sources).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import ValidationInfo

from dilaton.lab.text import units

SKYLAKE = Fraction(100, 118) * Fraction(100, 119)
"""A cycle of Skylake's, that of Golden Cove being 1: Intel has said of Sunny Cove 18 % more at one clock, and of Golden
Cove 19 % more again."""

FAMILIES: Mapping[str, Fraction] = {
    "equivalent": Fraction(1),
    "Xeon E5": SKYLAKE / Fraction(121, 100),
    "Xeon E5 v3": SKYLAKE / Fraction(110, 100),
    "Xeon Scalable": SKYLAKE,
}
"""What a cycle does, that of the core on which the unit was defined being 1. Sandy Bridge (E5) and Haswell (E5 v3) by
single-threaded benchmarks at 3.5 GHz, in which Skylake was 21 % and 10 % faster."""

_SPEED = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*GHz[\s-]*(.*)", re.ASCII)
GHZ_MAX = 1000
DIGITS = 10**6


def parse_cpu(value: object, info: ValidationInfo) -> Fraction | None:
    """Reads the speed of a node's CPU: cores of the host as a number, GHz by name, or `{speed: …, cores: 1}`.

    The context's `core_ghz` says what a core of the host has; without it a speed in GHz cannot be read.
    """
    if value is None or isinstance(value, Fraction):
        return value
    if isinstance(value, dict):
        value = _speed_of(value)
    if isinstance(value, str) and (found := _SPEED.fullmatch(value.strip())):
        return _in_cores(value, Fraction(found[1]), found[2], (info.context or {}).get("core_ghz"))
    return units.parse_factor(value, "the speed of a CPU")


def _speed_of(fields: dict[str, Any]) -> object:
    cores = fields.get("cores", 1)
    if unknown := sorted(set(fields) - {"speed", "cores"}):
        raise ValueError(f"{unknown[0]}: unknown field; known here: speed, cores")
    if units.shown(cores) != "1":
        raise ValueError(f"cores: {units.shown(cores)}: the kernel of a guest has 1 CPU; write 1, or more nodes")
    if "speed" not in fields:
        raise ValueError("speed: missing; write for example cpu: {speed: 0.5, cores: 1}")
    return fields["speed"]


def _in_cores(text: str, ghz: Fraction, family: str, core_ghz: float | None) -> Fraction:
    if family not in FAMILIES:
        known = ", ".join(f"{ghz}GHz {name}" for name in FAMILIES if name != "equivalent")
        raise ValueError(f"{text}: not a speed that is known; use {ghz}GHz-equivalent, {known}, or a number of cores")
    if not 0 < ghz <= GHZ_MAX:
        raise ValueError(f"{text}: a speed must be more than 0 and at most {GHZ_MAX}GHz")
    if core_ghz is None:
        raise ValueError(
            f"{text}: how fast a core of this machine is, is not known; run dilaton doctor --calibrate, or write a "
            "number, which counts cores of the host"
        )
    return Fraction(round(ghz * FAMILIES[family] / Fraction(Decimal(core_ghz)) * DIGITS), DIGITS)
