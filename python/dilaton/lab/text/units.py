"""Quantities as users write them, read exactly: no floating point on the way from text to integer.

Each `parse_…` takes text such as `10Gbit` and returns the normalised value (bit/s, ns, bytes, or an exact ratio); an
`int` or `Fraction` is taken as already normalised, so that labs can be built from Python. What cannot be represented
exactly is refused, never rounded. Each `format_…` is the inverse: parsing what it returns gives the same value back.

The unit names are those of tc, written in any case where that cannot change the meaning.
"""

from __future__ import annotations

import difflib
import re
from decimal import Decimal
from fractions import Fraction

_BINARY = {"": 0, "ki": 1, "mi": 2, "gi": 3, "ti": 4}
_DECIMAL = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

RATES: dict[str, int] = {f"{prefix}bit": 1000**power for prefix, power in _DECIMAL.items()} | {
    f"{prefix}bit": 1024**power for prefix, power in _BINARY.items() if prefix
}
"""Bits per second, by unit in lower case."""

DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
"""Nanoseconds, by unit."""

SIZES: dict[str, int] = {f"{prefix}b": 1000**power for prefix, power in _DECIMAL.items()} | {
    f"{prefix}b": 1024**power for prefix, power in _BINARY.items() if prefix
}
"""Bytes, by unit in lower case."""

RATE_MAX = 10 * 10**12
LINK_RATE_MIN = 1000
"""The kernel counts links' rates in whole bytes a second; from here on that is exact to 1 %."""
DELAY_MAX = 24 * DURATIONS["h"]
DURATION_MAX = 100 * 365 * 24 * DURATIONS["h"]
SIZE_MAX = 10**15
TDF_MAX = 10**6
TDF_NUMERATOR_MAX, TDF_DENOMINATOR_MAX = 10**12, 10**9
"""The largest numbers of a TDF with which the clock reckons exactly (`crates/virtual-time/src/tdf.rs`)."""

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*([A-Za-zµμ%/]*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?", re.ASCII)
_RATIO = re.compile(r"(\d{1,18})\s*/\s*(\d{1,18})", re.ASCII)
_LENGTH_MAX = 60
"""Characters of a quantity; far more than any exact value needs, and a bound on the work of reading one."""


class UnitError(ValueError):
    """A quantity that cannot be read; the message starts with the text and names the fix."""


def shown(value: object) -> str:
    """What was written, as an error shows it."""
    if isinstance(value, list | tuple):
        return "a list"
    return "a mapping" if isinstance(value, dict) else str(value).strip()


def parse_rate(value: object, what: str = "a rate") -> int:
    """Reads a rate: `10Gbit`, `2.5Mbit/s`, `10G`, `100 kbit`.

    Returns:
        Bits per second, 0 to `RATE_MAX`.

    Raises:
        UnitError: no unit, an unknown one, an ambiguous one (`bps`), or out of range.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        number = Fraction(value)
        text = format_rate(value)
    else:
        text, magnitude, unit = _split(value, what, "10Gbit")
        if not unit:
            raise UnitError(f"{text}: {what} needs a unit: write {text}Mbit (or kbit, Gbit, Tbit)")
        number = magnitude * _rate_unit(text, magnitude, unit, what)
    if number < 0:
        raise UnitError(f"{text}: {what} cannot be negative")
    if number > RATE_MAX:
        raise UnitError(f"{text}: {what} can be at most {format_rate(RATE_MAX)}")
    return _whole(text, number, "bit per second")


def parse_link_rate(value: object) -> int:
    """Reads the rate of a link, `LINK_RATE_MIN` to `RATE_MAX`."""
    rate = parse_rate(value)
    if rate == 0:
        raise UnitError(f"{value}: a rate must be more than 0; to let nothing through write loss: 100%")
    if rate < LINK_RATE_MIN:
        raise UnitError(f"{value}: the rate of a link must be at least {format_rate(LINK_RATE_MIN)}")
    return rate


def parse_duration(value: object, what: str = "a duration", maximum_ns: int = DURATION_MAX) -> int:
    """Reads a duration: `20ms`, `1.5s`, `2min`.

    Returns:
        Nanoseconds, 0 to `maximum_ns`.

    Raises:
        UnitError: no unit, an unknown one, finer than 1 ns, negative or too long.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        number = Fraction(value)
        text = format_duration(value)
    else:
        text, magnitude, unit = _split(value, what, "20ms")
        unit = unit.replace("µ", "u").replace("μ", "u")
        if not unit:
            raise UnitError(f"{text}: {what} needs a unit: write {text}ms (or ns, us, s, min, h)")
        if unit == "m":
            raise UnitError(f"{text}: m could be minutes or milliseconds: write {_bare(text)}min or {_bare(text)}ms")
        if unit not in DURATIONS:
            raise UnitError(_unknown_unit(text, unit, what, ["ns", "us", "ms", "s", "min", "h"]))
        number = magnitude * DURATIONS[unit]
    if number < 0:
        raise UnitError(f"{text}: {what} cannot be negative")
    if number > maximum_ns:
        hours = maximum_ns // DURATIONS["h"]
        most = f"{hours}h" if hours else format_duration(maximum_ns)
        raise UnitError(f"{text}: {what} can be at most {most}")
    return _whole(text, number, "nanosecond")


def parse_size(value: object, what: str = "a size") -> int:
    """Reads a size: `256KB` (1000 bytes a KB), `64KiB` (1024 bytes a KiB), `1500B`.

    Returns:
        Bytes, 0 to `SIZE_MAX`.

    Raises:
        UnitError: no unit, an unknown one, bits instead of bytes, part of a byte, negative or too large.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        number = Fraction(value)
        text = format_size(value)
    else:
        text, magnitude, unit = _split(value, what, "256KB")
        if not unit:
            raise UnitError(f"{text}: {what} needs a unit: write {text}KB (or B, MB, GB, KiB, MiB, GiB)")
        if unit.lower() not in SIZES or unit.endswith("b"):
            raise UnitError(_unknown_unit(text, unit, what, ["B", "KB", "MB", "GB", "KiB", "MiB", "GiB"]))
        number = magnitude * SIZES[unit.lower()]
    if number < 0:
        raise UnitError(f"{text}: {what} cannot be negative")
    if number > SIZE_MAX:
        raise UnitError(f"{text}: {what} can be at most {format_size(SIZE_MAX)}")
    return _whole(text, number, "byte")


def parse_ratio(value: object, what: str = "a ratio") -> Fraction:
    """Reads a percentage as an exact ratio: `1%` is 1/100.

    A number that is not text (from Python) is taken as the ratio itself. Not bounded above: a bound belongs to what
    the ratio is of (see `parse_loss`).

    Raises:
        UnitError: no percent sign, or negative.
    """
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        number = Fraction(value)
        text = format_ratio(number)
    else:
        text, magnitude, unit = _split(value, what, "1%")
        if not unit:
            percent = _decimal_text(magnitude * 100)
            is_plain = magnitude >= 1 or magnitude == 0
            hint = f"write {text}%" if is_plain else f"write {percent}% if a ratio was meant, or {text}%"
            raise UnitError(f"{text}: {what} needs a percent sign: {hint}")
        if unit != "%":
            raise UnitError(_unknown_unit(text, unit, what, ["%"]))
        number = magnitude / 100
    if number < 0:
        raise UnitError(f"{text}: {what} cannot be negative")
    return number


def parse_loss(value: object, what: str = "a loss") -> float:
    """Reads a probability of loss, `0%` to `100%`, as a ratio from 0 to 1."""
    ratio = parse_ratio(value, what)
    if ratio > 1:
        raise UnitError(f"{value}: {what} can be at most 100%")
    return float(ratio)


def parse_count(value: object, what: str, minimum: int, maximum: int) -> int:
    """Reads a whole number without a unit, from `minimum` to `maximum`."""
    text = shown(value)
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d{1,20}", text, re.ASCII):
        raise UnitError(f"{text}: {what} must be a whole number from {minimum} to {maximum}")
    number = int(text)
    if not minimum <= number <= maximum:
        raise UnitError(f"{text}: {what} must be from {minimum} to {maximum}")
    return number


def parse_tdf(value: object) -> Fraction:
    """Reads a time dilation factor: `10`, `0.1` (exactly one tenth) or `1/3`.

    Raises:
        UnitError: not a number, not above 0, above `TDF_MAX`, or of too many digits.
    """
    return parse_factor(value, "the time dilation factor")


def parse_factor(value: object, what: str) -> Fraction:
    """Reads a factor of time, as `parse_tdf` does; `what` it is, for the error."""
    text = shown(value)
    if isinstance(value, bool) or not isinstance(value, str | int | Fraction | Decimal):
        raise UnitError(f"{text}: {what} must be a number, such as 10, 0.5 or 1/3")
    if ratio := _RATIO.fullmatch(text):
        numerator, denominator = int(ratio[1]), int(ratio[2])
        if denominator == 0:
            raise UnitError(f"{text}: {what} cannot be divided by 0; write a number such as 10, 0.5 or 1/3")
        number = Fraction(numerator, denominator)
    elif len(text) <= _LENGTH_MAX and _NUMBER.fullmatch(text):
        number = Fraction(text)
    else:
        raise UnitError(f"{text}: {what} must be a number, such as 10, 0.5 or 1/3")
    if number <= 0:
        raise UnitError(f"{text}: {what} must be more than 0")
    if number > TDF_MAX:
        raise UnitError(f"{text}: {what} can be at most {TDF_MAX}")
    if number.numerator > TDF_NUMERATOR_MAX or number.denominator > TDF_DENOMINATOR_MAX:
        raise UnitError(f"{text}: {what} has too many digits; write at most 12, 9 of them behind the point, or a ratio")
    return number


def format_rate(bit_per_s: int) -> str:
    """Writes a rate exactly, in the largest decimal unit that it reaches: `10Gbit`."""
    return _format(
        Fraction(bit_per_s), [("Tbit", 10**12), ("Gbit", 10**9), ("Mbit", 10**6), ("kbit", 10**3), ("bit", 1)]
    )


def format_duration(ns: int) -> str:
    """Writes a duration exactly, in the largest unit up to seconds that it reaches: `1.5s`."""
    return _format(Fraction(ns), [("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)])


def format_size(size_bytes: int) -> str:
    """Writes a size exactly, in the largest decimal or binary unit that it reaches, the shorter: `256KB`, `64MiB`."""
    decimal = _format(Fraction(size_bytes), [("GB", 10**9), ("MB", 10**6), ("KB", 10**3), ("B", 1)])
    binary = _format(Fraction(size_bytes), [("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)])
    return min(decimal, binary, key=len)


def format_ratio(ratio: float | Fraction) -> str:
    """Writes a ratio as a percentage, exactly if it has a finite decimal form: `1%`."""
    exact = ratio if isinstance(ratio, Fraction) else Fraction(repr(ratio))
    return f"{_decimal_text(exact * 100)}%"


def _format(value: Fraction, units: list[tuple[str, int]]) -> str:
    name, factor = next(((name, factor) for name, factor in units if abs(value) >= factor), units[-1])
    return f"{_decimal_text(value / factor)}{name}"


def _decimal_text(value: Fraction) -> str:
    """Plain decimal text without an exponent or trailing zeros."""
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(value: object, what: str, example: str) -> tuple[str, Fraction, str]:
    """Splits `10 Gbit` into its text without spaces, its magnitude and its unit."""
    text = shown(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None:
        raise UnitError(f"{text}: {what} is a number with a unit, such as {example}")
    return match[1] + match[2], Fraction(match[1]), match[2]


def _bare(text: str) -> str:
    """The number of a quantity, as written."""
    match = _NUMBER.match(text)
    return match[0] if match else text


def _rate_unit(text: str, magnitude: Fraction, unit: str, what: str) -> int:
    lower = unit.lower()
    for ending in ("/s", "/sec"):
        lower = lower.removesuffix(ending)
    if lower != unit.lower() and lower.endswith("bits"):
        lower = lower.removesuffix("s")
    if lower in _DECIMAL and lower:
        lower += "bit"
    if lower in RATES:
        return RATES[lower]
    prefix = unit[: -len("bps")]
    if lower.endswith("bps") and lower.removesuffix("bps") in _DECIMAL:
        number = _decimal_text(magnitude)
        byte_form = f"{_decimal_text(magnitude * 8)}{prefix}bit"
        raise UnitError(
            f"{text}: bps means bytes per second to tc and bits to others: "
            f"write {number}{prefix}bit for bits or {byte_form} for bytes"
        )
    raise UnitError(_unknown_unit(text, unit, what, ["bit", "kbit", "Mbit", "Gbit", "Tbit"]))


def _unknown_unit(text: str, unit: str, what: str, accepted: list[str]) -> str:
    by_lower = {name.lower(): name for name in accepted}
    close = difflib.get_close_matches(unit.lower(), by_lower, n=1, cutoff=0.6)
    hint = f"; did you mean {_bare(text)}{by_lower[close[0]]}?" if close else ""
    return f"{text}: {unit} is not a unit of {what}: use {', '.join(accepted)}{hint}"


def _whole(text: str, number: Fraction, of: str) -> int:
    if number.denominator != 1:
        raise UnitError(f"{text}: a part of a {of} cannot be kept; write a whole number of them")
    return number.numerator
