"""Expectations that speak of a part of a run are read, checked and evaluated."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads
from dilaton.lab.parts.expect import parse_expectation
from dilaton.measure.expect import Course, evaluate, quantity
from dilaton.measure.operations.history import History, Interval, Operation

FIRST = [Operation(n / 100, n / 100 + 0.001, True) for n in range(500)]
FAILED = [Operation(5 + n / 10, 5 + n / 10 + 0.09, False) for n in range(20)]
LATER = [Operation(7 + n / 100, 7 + n / 100 + 0.3, True) for n in range(300)]
HISTORIES = {
    "client": History([*FIRST, *FAILED, *LATER]),
    "bulk": History(intervals=[Interval(n, n + 1, 1e6 if 5 <= n < 7 else 9e6) for n in range(10)]),
    "dead": History(),
}
COURSE = Course(lambda name: HISTORIES[name], {"cut": (5.0, 7.0), "f.x": (1.0, 2.0)})


@pytest.mark.parametrize(
    "text",
    [
        "client.errors == 0 after 7s",
        "client.errors == 0 before cut",
        "client.errors > 0 during cut",
        "client.errors == 0 after cut",
        "client.errors == 20 during run",
        "client.errors==0 during f.x",
        "client.operations == 820 during run",
        "client.availability within 1% of 98% during run",
        "client.latency.p99 < 2ms before cut",
        "client.latency.p50 within 1ms of 300ms after cut",
        "client.rate > 99.5 before cut",
        "bulk.throughput < 2Mbit during cut",
        "bulk.throughput within 1% of 9Mbit after cut",
        "client.availability == 100% in every 1s before cut",
        "client.latency.p99 < 2ms in every 500ms before cut",
        "client.latency.max within 1ms of 300ms in every 1s after cut",
        "client.rate >= 90 in every 1s before cut",
        "client.operations > 5 in every 1s",
        "bulk.throughput >= 1Mbit in every 2s during run",
        "bulk.throughput <= 1Mbit in every 1s during cut",
        "time to recover of bulk.throughput after cut == 2s",
        "time to recover of client.rate after cut < 2.6s",
        "time to recover of client.rate after cut > 2s",
        "time to recover of client.rate after cut within 50% <= 2.5s",
    ],
)
def test_what_holds_in_its_part_of_the_run_passes(text: str) -> None:
    passed, value = evaluate(parse_expectation(text), {}, COURSE)
    assert passed, value


@pytest.mark.parametrize(
    "text",
    [
        "client.errors == 0 during cut",
        "client.availability > 0% in every 1s",
        "client.availability > 0% in every 500ms during cut",
        "client.rate > 0 in every 1s",
        "bulk.throughput > 6Mbit in every 2s",
        "client.errors == 0 after 5s",
        "client.availability > 99% during run",
        "client.latency.p99 < 200ms after cut",
        "time to recover of client.rate after cut < 2s",
    ],
)
def test_what_does_not_hold_fails_with_what_was_measured(text: str) -> None:
    passed, value = evaluate(parse_expectation(text), {}, COURSE)
    assert not passed
    assert value is not None


@pytest.mark.parametrize(
    "text",
    [
        "dead.errors == 0 during run",
        "client.errors == 0 after 11s",
        "client.errors == 0 after never",
        "client.errors == 0 before never",
        "client.operations >= 0 in every 1s after never",
        "client.operations >= 0 in every 20s",
        "dead.operations >= 0 in every 1s",
        "client.errors == 0 in every 1s after 9500ms",
        "time to recover of client.rate after never < 10s",
        "time to recover of dead.rate after cut < 10s",
    ],
)
def test_what_never_came_meets_no_expectation(text: str) -> None:
    assert evaluate(parse_expectation(text), {}, COURSE) == (False, None)


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("client.availability > 99% during cut", 0.9756, "97.56%"),
        ("client.rate > 99 during cut", 87.654321, "87.65"),
        ("client.errors == 0 during cut", 3, "3"),
        ("time to recover of client.rate after cut < 3s", 2.5, "2.5s"),
    ],
)
def test_what_was_measured_is_told_in_its_unit(text: str, value: float, words: str) -> None:
    assert quantity(text, value) == words


HEAD = (
    "name: x\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\n"
    "run: [{on: a, name: client, exec: python3 x.py}, {on: a, name: bulk, exec: iperf3 -c b -J}]\n"
    "faults: [{name: cut, at: 1s, pause: b}]\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("client.errors == 0 after cat", "unknown fault cat; did you mean cut?"),
        ("clint.errors == 0 after cut", "unknown process clint; did you mean client?"),
        ("client.throughput > 1Mbit after cut", "python3 has no throughput, but iperf3 has its throughput"),
        ("bulk.errors == 0 after cut", "of a part of a run iperf3 has no errors"),
        ("client.loss < 1% after cut", "client.loss: of a part of a run there is no such metric; known are operations"),
        ("client.errors == 0 during 5s", "during wants the name of a fault, or run; write after 5s or before 5s"),
        ("time to recover of client.errors after cut < 5s", "no such metric; known are rate, throughput"),
        ("time to recover of client.rate after cat < 5s", "unknown fault cat"),
        ("client.errors = 0 after cut", "not an expectation"),
        ("client.errors == 0 in every 10ms", "10ms: a window must be at least 100ms"),
        ("client.errors == 0 in every 10 after cut", "10: a window needs a unit"),
        ("client.errors == 0 in every 1s after cat", "unknown fault cat"),
    ],
)
def test_a_mistake_is_told(text: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"{HEAD}expect: ['{text}']\n", "lab.yaml")
    assert said in str(caught.value)
