"""Numbers as people read them: with a unit that leaves one to three digits before the point."""

from __future__ import annotations

import math
from fractions import Fraction

DECIMAL = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
SECONDS = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]


def significant(value: float, digits: int = 4) -> str:
    """`value` with so many digits, never in scientific notation, without trailing zeros; of less than 1 all behind the
    point count, but the first that is not 0 is always there."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    text = f"{value:.{max(0, digits - 1 - max(exponent, 0), -exponent)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate(bit_per_s: float) -> str:
    """A rate in bit/s, as `9.412 Gbit/s`."""
    scale, prefix = next((step for step in DECIMAL if abs(bit_per_s) >= step[0]), DECIMAL[-1])
    return f"{significant(bit_per_s / scale)} {prefix}bit/s"


def duration(seconds: float, digits: int = 5) -> str:
    """A duration in seconds, as `40.02 ms`, with so many digits."""
    if seconds == 0:
        return "0 s"
    scale, unit = next((step for step in SECONDS if abs(seconds) >= step[0]), SECONDS[-1])
    return f"{significant(seconds / scale, digits)} {unit}"


def ratio(value: float) -> str:
    """A ratio 0..1, as `1.5 %`."""
    return f"{significant(value * 100)} %"


def quantity(value: float, unit: str) -> str:
    """A number in bit/s or s, or of anything else, with its unit."""
    if unit == "s":
        return duration(value)
    return rate(value) if unit == "bit/s" else f"{significant(value)} {unit}".rstrip()


def apart(relative: float | None) -> str:
    """A relative distance, as `12 %`; infinite or None: from nothing."""
    if relative is None or not math.isfinite(relative):
        return "from 0"
    return f"{significant(relative * 100, 2 if relative < 1 else 3)} %"


def tdf(value: Fraction | None) -> str:
    """A time dilation factor, exact; `held` for a clock that stands still."""
    if value is None:
        return "held"
    if value.denominator == 1:
        return str(value.numerator)
    return significant(float(value), 6) if float(value) == round(float(value), 6) else str(value)


def counted(count: int, what: str) -> str:
    """`1 link`, `2 links`, `2 processes`."""
    return f"{count} {what}{'' if count == 1 else 'es' if what.endswith('s') else 's'}"
