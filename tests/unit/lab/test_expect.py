"""Expectations are read into exact comparisons, and evaluated on the records of processes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dilaton.lab.parts.expect import METRICS, Dimension, parse_expectation
from dilaton.measure.expect import evaluate, quantity

RESULTS: dict[str, dict[str, Any]] = {
    "bulk": {
        "start_s": 2.0,
        "end_s": 12.5,
        "exit": 0,
        "result": {"throughput": 9.41e9, "sent_throughput": 9.42e9, "retransmits": 7, "intervals": []},
    },
    "ping": {
        "start_s": 0.0,
        "end_s": 2.0,
        "exit": 0,
        "result": {
            "sent": 10,
            "received": 9,
            "loss": 0.1,
            "rtt": {"min": 0.04, "avg": 0.0404, "max": 0.041, "mdev": 1e-05},
        },
    },
    "silent": {
        "start_s": 0.0,
        "end_s": 9.0,
        "exit": 1,
        "result": {"sent": 3, "received": 0, "loss": 1.0, "rtt": None},
    },
    "killed": {"start_s": 0.0, "end_s": 1.0, "exit": None, "result": None},
    "skipped": {"start_s": None, "end_s": None, "exit": None, "result": None},
}


@pytest.mark.parametrize(
    "text",
    [
        "bulk.throughput > 9Gbit",
        "bulk.throughput>=9.41Gbit",
        "bulk.throughput within 1% of 9.4Gbit",
        "bulk.sent_throughput < 10Gbit",
        "bulk.retransmits <= 7",
        "bulk.exit == 0",
        "bulk.start == 2s",
        "bulk.end within 100ms of 12.4s",
        "ping.rtt.min == 40ms",
        "ping.rtt.avg within 1% of 40ms",
        "ping.rtt.avg within 0.4ms of 40ms",
        "ping.rtt.mdev < 11us",
        "ping.loss == 10%",
        "ping.loss within 1% of 11%",
        "ping.received != 10",
        "silent.loss == 100%",
        "silent.exit != 0",
    ],
)
def test_an_expectation_that_holds_passes(text: str) -> None:
    passed, value = evaluate(parse_expectation(text), RESULTS)
    assert passed
    assert value is not None


@pytest.mark.parametrize(
    "text",
    [
        "bulk.throughput > 9.41Gbit",
        "bulk.throughput within 1% of 10Gbit",
        "bulk.exit != 0",
        "ping.rtt.avg within 0.9% of 40ms",
        "ping.loss == 0%",
        "ping.loss within 1% of 12%",
        "ping.sent < 10",
    ],
)
def test_an_expectation_that_does_not_hold_fails_with_the_value(text: str) -> None:
    passed, value = evaluate(parse_expectation(text), RESULTS)
    assert not passed
    assert value is not None


@pytest.mark.parametrize(
    "text",
    [
        "silent.rtt.avg < 40ms",
        "killed.exit != 0",
        "killed.throughput < 1Gbit",
        "skipped.end < 1h",
        "unknown.exit != 0",
        "bulk.rtt.avg < 1s",
    ],
)
def test_a_value_that_is_not_there_meets_no_expectation(text: str) -> None:
    assert evaluate(parse_expectation(text), RESULTS) == (False, None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "9"])
def test_a_value_that_is_no_finite_number_meets_no_expectation(value: object) -> None:
    results = {"p": {"result": {"throughput": value}}}
    assert evaluate(parse_expectation("p.throughput != 1bit"), results) == (False, None)


def test_a_process_name_may_contain_dots() -> None:
    expectation = parse_expectation("python3.11.rtt.avg < 1ms")
    assert (expectation.process, expectation.metric.name) == ("python3.11", "rtt.avg")


def test_a_relative_tolerance_becomes_an_exact_absolute_one() -> None:
    assert parse_expectation("ping.rtt.avg within 1% of 40ms").tolerance == Fraction(4, 10_000)


def test_a_tolerance_of_a_loss_is_in_points_not_relative() -> None:
    assert parse_expectation("ping.loss within 1% of 10%").tolerance == Fraction(1, 100)


def test_a_threshold_of_nothing_can_be_written() -> None:
    assert parse_expectation("bulk.throughput == 0bit").value == 0


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_can_be_compared_in_its_own_unit(name: str) -> None:
    threshold = {
        Dimension.RATE: "1Mbit",
        Dimension.DURATION: "1ms",
        Dimension.RATIO: "1%",
        Dimension.COUNT: "1",
    }[METRICS[name].dimension]
    assert parse_expectation(f"p.{name} >= {threshold}").metric.name == name


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("p.throughput > 9Gbit", 9412345678.9, "9.412Gbit"),
        ("p.rtt.avg < 1s", 0.0400123, "40.01ms"),
        ("p.rtt.mdev < 1s", 1e-05, "10us"),
        ("p.loss == 0%", 0.0123456, "1.235%"),
        ("p.loss == 0%", 0.0, "0%"),
        ("p.exit == 0", 1, "1"),
        ("p.exit == 0", None, "no value"),
        ("p.failover < 1s", None, "no value: p printed no failover"),
    ],
)
def test_a_measured_value_is_shown_in_its_unit(text: str, value: float | None, shown: str) -> None:
    assert quantity(text, value) == shown
