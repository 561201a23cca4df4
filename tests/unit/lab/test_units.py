"""Quantities are read exactly, written back exactly, and refused with the fix in the message."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.lab.text import units


@pytest.mark.parametrize(
    ("text", "bit_per_s"),
    [
        ("1bit", 1),
        ("9600 bit", 9600),
        ("56kbit", 56_000),
        ("10Mbit", 10_000_000),
        ("10mbit", 10_000_000),
        ("0.1Gbit", 100_000_000),
        ("10Gbit/s", 10_000_000_000),
        ("10Gbits/sec", 10_000_000_000),
        ("10G", 10_000_000_000),
        ("1.5e3 Mbit", 1_500_000_000),
        ("10Tbit", 10_000_000_000_000),
        ("1Mibit", 1_048_576),
    ],
)
def test_a_rate_is_read_in_every_form_of_tc_and_iperf(text: str, bit_per_s: int) -> None:
    assert units.parse_rate(text) == bit_per_s


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0s", 0),
        ("1ns", 1),
        ("2us", 2_000),
        ("2µs", 2_000),
        ("20ms", 20_000_000),
        ("0.1s", 100_000_000),
        ("1.5 s", 1_500_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1e-9s", 1),
    ],
)
def test_a_duration_is_read_to_the_nanosecond(text: str, ns: int) -> None:
    assert units.parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("0B", 0), ("1500B", 1500), ("256KB", 256_000), ("256kB", 256_000), ("64KiB", 65_536)]
)
def test_a_size_tells_1000_from_1024(text: str, size_bytes: int) -> None:
    assert units.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "tdf"),
    [
        ("10", Fraction(10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("2.50", Fraction(5, 2)),
        ("1e6", Fraction(10**6)),
    ],
)
def test_a_tdf_is_exactly_what_was_written(text: str, tdf: Fraction) -> None:
    assert units.parse_tdf(text) == tdf


@given(st.integers(1, units.RATE_MAX))
def test_every_rate_survives_being_written_and_read(rate: int) -> None:
    assert units.parse_rate(units.format_rate(rate)) == rate


@given(st.integers(0, units.DURATION_MAX))
def test_every_duration_survives_being_written_and_read(ns: int) -> None:
    assert units.parse_duration(units.format_duration(ns)) == ns


def test_a_size_is_written_in_the_shorter_of_decimal_and_binary_units() -> None:
    sizes = {0: "0B", 256_000: "256KB", 64 << 20: "64MiB", 16 << 30: "16GiB", 1536: "1.5KiB", 7_900_000_000: "7.9GB"}
    assert {size: units.format_size(size) for size in sizes} == sizes


@given(st.integers(0, units.SIZE_MAX))
def test_every_size_survives_being_written_and_read(size_bytes: int) -> None:
    assert units.parse_size(units.format_size(size_bytes)) == size_bytes


@given(st.integers(0, 10**9).map(lambda parts: Fraction(parts, 10**9)))
def test_every_ratio_with_nine_digits_survives_being_written_and_read(ratio: Fraction) -> None:
    assert units.parse_ratio(units.format_ratio(ratio)) == ratio


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_every_tdf_survives_being_written_as_a_ratio(numerator: int, denominator: int) -> None:
    assert units.parse_tdf(f"{numerator}/{denominator}") == Fraction(numerator, denominator)


@given(st.text(max_size=80))
@pytest.mark.parametrize("parse", [units.parse_rate, units.parse_duration, units.parse_size, units.parse_loss])
def test_any_text_is_either_read_or_refused_with_a_reason(parse: Callable[[object], object], text: str) -> None:
    try:
        parse(text)
    except units.UnitError as error:
        assert len(str(error)) > len(text.strip())


@given(st.one_of(st.text(max_size=80), st.decimals(), st.fractions(), st.booleans(), st.none()))
def test_any_tdf_is_either_read_or_refused(value: object) -> None:
    try:
        tdf = units.parse_tdf(value)
    except units.UnitError:
        return
    assert 0 < tdf <= units.TDF_MAX
    assert max(tdf.as_integer_ratio()) <= 1 << 40, "what the clock takes (crates/virtual-time/src/tdf.rs)"


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_duration, "20", "20: a duration needs a unit: write 20ms (or ns, us, s, min, h)"),
        (units.parse_duration, "5m", "5m: m could be minutes or milliseconds: write 5min or 5ms"),
        (units.parse_duration, "-5ms", "-5ms: a duration cannot be negative"),
        (units.parse_duration, "0.5ns", "0.5ns: a part of a nanosecond cannot be kept; write a whole number of them"),
        (
            units.parse_duration,
            "5msec",
            "5msec: msec is not a unit of a duration: use ns, us, ms, s, min, h; did you mean 5ms?",
        ),
        (units.parse_rate, "10", "10: a rate needs a unit: write 10Mbit (or kbit, Gbit, Tbit)"),
        (
            units.parse_rate,
            "10Mbps",
            "10Mbps: bps means bytes per second to tc and bits to others: write 10Mbit for bits or 80Mbit for bytes",
        ),
        (units.parse_rate, "11Tbit", "11Tbit: a rate can be at most 10Tbit"),
        (units.parse_rate, "fast", "fast: a rate is a number with a unit, such as 10Gbit"),
        (units.parse_size, "256", "256: a size needs a unit: write 256KB (or B, MB, GB, KiB, MiB, GiB)"),
        (
            units.parse_size,
            "256Kb",
            "256Kb: Kb is not a unit of a size: use B, KB, MB, GB, KiB, MiB, GiB; did you mean 256KB?",
        ),
        (units.parse_loss, "0.01", "0.01: a loss needs a percent sign: write 1% if a ratio was meant, or 0.01%"),
        (units.parse_loss, "0", "0: a loss needs a percent sign: write 0%"),
        (units.parse_loss, "3", "3: a loss needs a percent sign: write 3%"),
        (units.parse_loss, "101%", "101%: a loss can be at most 100%"),
        (units.parse_tdf, "0", "0: the time dilation factor must be more than 0"),
        (units.parse_tdf, "fast", "fast: the time dilation factor must be a number, such as 10, 0.5 or 1/3"),
        (units.parse_tdf, "nan", "nan: the time dilation factor must be a number, such as 10, 0.5 or 1/3"),
        (
            units.parse_tdf,
            "1234.567890123",
            "1234.567890123: the time dilation factor has too many digits; write at most 12, 9 of them behind the "
            "point, or a ratio",
        ),
        (units.parse_tdf, "1e7", "1e7: the time dilation factor can be at most 1000000"),
    ],
)
def test_a_refusal_shows_the_text_and_the_fix(parse: Callable[[object], object], text: str, message: str) -> None:
    with pytest.raises(units.UnitError) as caught:
        parse(text)
    assert str(caught.value) == message
