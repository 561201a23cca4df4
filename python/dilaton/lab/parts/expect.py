"""Expectations on the results of a run: `bulk.throughput > 9Gbit`, `ping.rtt.avg within 1% of 40ms`.

An expectation names a process, a metric of it, and what its value must be. Here it is only read; it is evaluated by
`dilaton.measure.expect`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Literal, get_args

from dilaton.lab.parts.own_metrics import NAME
from dilaton.lab.parts.spans import RECOVERING, TIMED, Recovery, Span, split_recovery, split_span
from dilaton.lab.text import syntax, units


class Dimension(Enum):
    """What a metric measures, and thereby the unit of its value in the results."""

    RATE = "bit/s"
    DURATION = "s"
    RATIO = "1"
    COUNT = ""


@dataclass(frozen=True)
class Metric:
    """Something known of a process after the run.

    Attributes:
        name: As users write it after the process.
        dimension: What it measures.
        path: Where its value is in the record of the process.
        programs: The programs whose result has it; empty: every process has it.
        is_own: Whether a lab has it by `results:` of the process. Its dimension is then that of the value that it is
            compared with, and the lab's check makes sure that this is right.
    """

    name: str
    dimension: Dimension
    path: tuple[str, ...]
    programs: frozenset[str] = frozenset()
    is_own: bool = False


def own_path(name: str) -> tuple[str, ...]:
    """Where the record of a process has a metric that a lab has by `results:`."""
    return ("result", "own", name, "value")


def _result(name: str, dimension: Dimension, *programs: str) -> Metric:
    return Metric(name, dimension, ("result", *name.split(".")), frozenset(programs))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("exit", Dimension.COUNT, ("exit",)),
        Metric("start", Dimension.DURATION, ("start_s",)),
        Metric("end", Dimension.DURATION, ("end_s",)),
        _result("throughput", Dimension.RATE, "iperf3", "curl", "wrk", "fio", "ITGDec"),
        _result("sent_throughput", Dimension.RATE, "iperf3"),
        _result("retransmits", Dimension.COUNT, "iperf3"),
        _result("fairness", Dimension.RATIO, "iperf3"),
        _result("sent", Dimension.COUNT, "ping"),
        _result("received", Dimension.COUNT, "ping", "ITGDec"),
        _result("loss", Dimension.RATIO, "ping", "ITGDec"),
        _result("rtt.min", Dimension.DURATION, "ping"),
        _result("rtt.avg", Dimension.DURATION, "ping"),
        _result("rtt.max", Dimension.DURATION, "ping"),
        _result("rtt.mdev", Dimension.DURATION, "ping"),
        _result("rtt.p50", Dimension.DURATION, "ping"),
        _result("rtt.p95", Dimension.DURATION, "ping"),
        _result("rtt.p99", Dimension.DURATION, "ping"),
        _result("outage", Dimension.DURATION, "ping"),
        _result("requests", Dimension.COUNT, "curl", "wrk", "nginx", "apache2", "httpd"),
        _result("errors", Dimension.COUNT, "curl", "wrk", "nginx", "apache2", "httpd"),
        _result("requests_per_s", Dimension.COUNT, "wrk"),
        _result("iops", Dimension.COUNT, "fio"),
        _result("latency.min", Dimension.DURATION, "curl", "ITGDec"),
        _result("latency.avg", Dimension.DURATION, "curl", "wrk", "ITGDec"),
        _result("latency.max", Dimension.DURATION, "curl", "wrk", "ITGDec"),
        _result("latency.p50", Dimension.DURATION, "wrk"),
        _result("latency.p99", Dimension.DURATION, "wrk"),
    )
}
"""Every metric, by name."""

Operator = Literal[">", ">=", "<", "<=", "==", "!=", "within"]


@dataclass(frozen=True)
class Expectation:
    """A comparison, read.

    Attributes:
        text: As written.
        process: Name of the process.
        metric: What of it is compared.
        operator: How.
        value: With what, in the unit of the metric's dimension.
        tolerance: For `within`: the largest difference that passes, in the same unit; else 0.
    """

    text: str
    process: str
    metric: Metric
    operator: Operator
    value: Fraction
    tolerance: Fraction = Fraction(0)
    span: Span | None = None
    """The part of the run that the metric is about; None: all of it, as the results have it."""
    recovery: Recovery | None = None
    """If given, the check is about how long the metric takes to be as before."""


_FORM = "write PROCESS.METRIC OPERATOR VALUE, such as bulk.throughput > 9Gbit or ping.rtt.avg within 1% of 40ms"
_COMPARISON = re.compile(r"(\S+?)\s*(>=|<=|==|!=|>|<|=)\s*([^<>=!]+)")
_WITHIN = re.compile(r"(\S+)\s+within\s+(.+?)\s+of\s+(.+)")


def parse_expectation(value: object) -> Expectation:
    """Reads an expectation.

    Raises:
        ValueError: it does not have one of the two forms, its metric is unknown, or a value does not fit the metric.
    """
    if isinstance(value, Expectation):
        return value
    text = syntax.parse_text(value).strip()
    if found := split_recovery(text):
        subject, recovery, comparison = found
        process, metric = _timed_subject(subject, RECOVERING)
        own = Metric(metric.name, Dimension.DURATION, ())
        return replace(_compared(text, comparison, process, own), recovery=recovery)
    rest, span = split_span(text)
    if span is not None:
        subject = re.split(r"\s|[<>=!]", rest, maxsplit=1)[0]
        process, metric = _timed_subject(subject, TIMED)
        return replace(_compared(text, rest[len(subject) :].strip(), process, metric), span=span)
    if match := _WITHIN.fullmatch(text):
        process, metric = _parse_subject(match[1], match[3])
        target = _parse_value(match[3], metric)
        return Expectation(text, process, metric, "within", target, _parse_tolerance(match[2], target, metric))
    if match := _COMPARISON.fullmatch(text):
        process, metric = _parse_subject(match[1], match[3])
        if match[2] == "=":
            raise ValueError(f"{text}: = is not an operator; write ==")
        operator = next(known for known in get_args(Operator) if known == match[2])
        return Expectation(text, process, metric, operator, _parse_value(match[3], metric))
    raise ValueError(f"{text}: not an expectation; {_FORM}")


def _compared(text: str, comparison: str, process: str, metric: Metric) -> Expectation:
    """An expectation by its operator and value."""
    if match := _WITHIN.fullmatch(f"it {comparison}"):
        target = _parse_value(match[3], metric)
        return Expectation(text, process, metric, "within", target, _parse_tolerance(match[2], target, metric))
    match = _COMPARISON.fullmatch(f"it {comparison}")
    if match is None or match[2] == "=":
        raise ValueError(f"{text}: not an expectation; {_FORM}")
    operator = next(known for known in get_args(Operator) if known == match[2])
    return Expectation(text, process, metric, operator, _parse_value(match[3], metric))


def _timed_subject(subject: str, known: Iterable[str]) -> tuple[str, Metric]:
    """Splits `process.metric`, of what is told of a part of a run."""
    for name in sorted(known, key=len, reverse=True):
        if subject.endswith(f".{name}") and len(subject) > len(name) + 1:
            # A rate is no whole number.
            is_own = name == "rate"
            return subject[: -len(name) - 1], Metric(name, Dimension(TIMED[name]), (), is_own=is_own)
    raise ValueError(f"{subject}: of a part of a run there is no such metric; known are {', '.join(known)}")


def _parse_subject(subject: str, value: str) -> tuple[str, Metric]:
    """Splits `process.metric`; both may contain dots, so the longest known metric decides, which is not a lab's own."""
    for name in sorted(METRICS, key=len, reverse=True):
        if subject.endswith(f".{name}") and len(subject) > len(name) + 1:
            return subject[: -len(name) - 1], METRICS[name]
    process, dot, name = subject.rpartition(".")
    if not dot or not process or not NAME.fullmatch(name):
        raise ValueError(f"{subject}: no metric; {_FORM}")
    return process, Metric(name, _dimension(value), own_path(name), is_own=True)


def _dimension(value: str) -> Dimension:
    """What a value is of, by its unit."""
    for dimension, parse in (
        (Dimension.DURATION, units.parse_duration),
        (Dimension.RATE, units.parse_rate),
        (Dimension.RATIO, units.parse_ratio),
    ):
        with contextlib.suppress(ValueError):
            parse(value.strip())
            return dimension
    return Dimension.COUNT


def no_such_metric(name: str, own: Iterable[str]) -> str:
    """Says that there is no such metric, with those that there are."""
    known = [*own, *METRICS]
    return f"{name} is not a metric; known are {', '.join(known)}{syntax.did_you_mean(name, known)}"


def _parse_value(text: str, metric: Metric) -> Fraction:
    text = text.strip()
    match metric.dimension:
        case Dimension.RATE:
            return Fraction(units.parse_rate(text, metric.name))
        case Dimension.DURATION:
            return Fraction(units.parse_duration(text, metric.name), 10**9)
        case Dimension.RATIO:
            return units.parse_ratio(text, metric.name)
        case Dimension.COUNT if metric.is_own:
            return _plain_number(text)
        case Dimension.COUNT:
            return Fraction(units.parse_count(text, metric.name, 0, 10**18))


def _plain_number(text: str) -> Fraction:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?", text):
        raise ValueError(f"{text}: must be a number, with the unit of the metric if that has one")
    return Fraction(text)


def _parse_tolerance(text: str, target: Fraction, metric: Metric) -> Fraction:
    """Reads a tolerance in the metric's own unit, else as a percentage of the target."""
    if text.strip().endswith("%") and metric.dimension is not Dimension.RATIO:
        return units.parse_ratio(text.strip(), "a tolerance") * target
    return _parse_value(text, metric)
