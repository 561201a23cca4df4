"""Numbers that a lab wants read from what its programs print."""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.host.messages import Exited, Started
from dilaton.lab import LabError, loads
from dilaton.measure.expect import evaluate
from dilaton.measure.results.own import read
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.run.record import matching
from dilaton.run.record.processes import processes_from_events

OUTPUT = """leader lost
took 20 ms
took 40 ms and took 30 ms
{"end": {"streams": [{"seconds": 1.5}, {"seconds": 2.5}], "name": "x", "ok": true}}
took no ms
"""

ENDED = [
    Started(t_ns=0, process="p", node="a", pid=7),
    Exited(t_ns=9, process="p", node="a", status=0, expected=True, timed_out=False, stopped=False),
]


def plan(results: str, expect: str = "") -> Plan:
    text = f"name: x\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: p, exec: echo, results: {results}}}]\n"
    return compile_plan(loads(text + (f"expect: ['{expect}']\n" if expect else ""), "lab.yaml"))


def value(written: str, output: str = OUTPUT) -> Any:
    return read(plan(f"{{m: {written}}}").results["p"], output, matching.find_all).get("m")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{regex: 'took ([0-9]+) ms', unit: ms}", (0.03, "s")),
        ("{regex: 'took ([0-9]+) ms', unit: ms, take: first}", (0.02, "s")),
        ("{regex: 'took ([0-9]+) ms', unit: ms, take: min}", (0.02, "s")),
        ("{regex: 'took ([0-9]+) ms', unit: ms, take: max}", (0.04, "s")),
        ("{regex: 'took ([0-9]+) ms', unit: ms, take: mean}", (0.03, "s")),
        ("{regex: 'took ([0-9]+) ms', unit: ms, take: sum}", (0.09, "s")),
        ("{regex: '(took)', take: count}", (4, "")),
        ("'took ([0-9]+) ms'", (30, "")),
        ("{regex: 'took ([0-9]+) ms', unit: '%'}", (0.3, "1")),
        ("{regex: 'took ([0-9]+) ms', unit: MB/s}", (240e6, "bit/s")),
        ("{json: 'end.streams[1].seconds', unit: s}", (2.5, "s")),
        ("{json: 'end.streams[-2].seconds', unit: s}", (1.5, "s")),
        ("{json: '$.end.streams[-2].seconds', unit: s}", (1.5, "s")),
    ],
)
def test_a_number_is_read_in_the_units_of_results(written: str, expected: tuple[float, str]) -> None:
    found = value(written)
    assert (found["value"], found["unit"]) == (pytest.approx(expected[0]), expected[1])


def test_matches_are_counted_whatever_they_are() -> None:
    assert value("{regex: 'took ([0-9]+) ms', take: count}")["value"] == 3
    assert value("{regex: 'took ([0-9]+) ms', take: count}", "")["value"] == 0


@pytest.mark.parametrize(
    ("written", "output"),
    [
        ("{regex: 'no ([0-9]+)'}", OUTPUT),
        ("{regex: 'took (.*) ms'}", "took inf ms\ntook nan ms\ntook 1e999 ms\n"),
        ("{json: end.name}", OUTPUT),
        ("{json: end.ok}", OUTPUT),
        ("{json: end.streams.seconds}", OUTPUT),
        ("{json: 'end[0]'}", "[" * 100_000),
        ("{regex: '(a)'}", "a" * (2 << 20)),
    ],
)
def test_what_is_no_number_is_no_value(written: str, output: str) -> None:
    assert value(written, output) is None


def test_json_may_be_the_whole_output_on_many_lines() -> None:
    assert value("{json: a.b}", '{\n "a": {\n  "b": 7\n }\n}\n')["value"] == 7


def test_expectations_compare_it_like_any_metric() -> None:
    planned = plan("{m: {regex: 'took ([0-9]+) ms', unit: ms}}", "p.m < 35ms")
    (record,) = processes_from_events(planned, ENDED, lambda _: OUTPUT)
    results = {"p": record.model_dump()}
    lab = "name: x\nnodes: {a: {}}\nrun: [{on: a, name: p, exec: echo, results: {m: {regex: (x), unit: ms}}}]\n"
    for text, holds in (("p.m < 35ms", True), ("p.m > 35ms", False), ("p.m within 1ms of 30.5ms", True)):
        expectation = loads(f"{lab}expect: ['{text}']\n", "lab.yaml").expect[0]
        assert evaluate(expectation, results) == (holds, pytest.approx(0.03))


@pytest.mark.parametrize(
    ("results", "expect", "said"),
    [
        ("{m: {unit: s}}", "", "needs either regex, as in took ([0-9.]+) s, or json, as in end.seconds"),
        ("{m: {regex: x}}", "", "x: needs exactly one group in parentheses, which is the number"),
        ("{m: {regex: '(x)', json: y}}", "", "needs either regex"),
        ("{m: {regex: '(x)', unit: furlong}}", "", "furlong: not a unit; write one of %, ns, us, ms, s"),
        ("{m: {regex: '(x)', take: lats}}", "", "lats: must be one of last, first, min, max, mean, sum, count; did you mean last?"),
        ("{m: {json: 'a..b]'}}", "", "a..b]: not a path to a number in JSON; write for example end.streams[0].seconds"),
        ("{'a b': '(x)'}", "", "'a b': a metric's name has letters, digits and underscores, and no digit first"),
        ("{m: {regex: '(x)', unit: s}}", "p.m < 3", "m is in s; compare it with a value in that"),
        ("{m: '(x)'}", "p.m < 3s", "m is in plain numbers; compare it with a value in that"),
        ("{outage: '(x)'}", "p.outage < 3s", "outage is in plain numbers; compare it with a value in that"),
        ("{m: '(x)'}", "p.n < 3s", "n is not a metric; known are m, exit, start"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_what_would_be_right(results: str, expect: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        plan(results, expect)
    assert said in str(caught.value)


def test_a_metric_of_the_labs_own_counts_before_one_that_programs_have() -> None:
    [expectation] = loads(
        "name: x\nnodes: {a: {}}\nrun: [{on: a, name: p, exec: echo, results: {outage: {regex: '(.)', unit: s}}}]\n"
        "expect: [p.outage < 3s]\n",
        "lab.yaml",
    ).expect
    own = {"own": {"outage": {"value": 2.5, "unit": "s"}}}
    assert evaluate(expectation, {"p": {"result": {**own, "outage": 7.0}}}) == (True, 2.5)
    assert evaluate(expectation, {"p": {"result": {"outage": 7.0}}}) == (False, 7.0)


@pytest.mark.parametrize(
    ("regex", "output"),
    [("((?:a+)+b)", "a" * 60), ("((?:(?:x+x+)+y)+)$", "x" * 80), ("((?:.*)*[^a])$", "a" * 50)],
)
def test_an_expression_that_takes_for_ever_is_told_and_keeps_nobody(
    regex: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "CPU_S_MAX", 1)
    planned = plan(f"{{m: '{regex}'}}")
    [process] = processes_from_events(planned, ENDED, lambda _: output)
    assert process.result == {
        "error": f"results: the regular expression {regex} took more than 1 s of CPU, or too much memory"
    }


def test_an_expression_over_very_much_output_is_read() -> None:
    assert value("'took ([0-9]+) ms'", "nothing here\n" * 500_000 + "took 7 ms\n")["value"] == 7


def test_characters_that_are_none_do_no_harm() -> None:
    assert value("'took ([0-9]+) ms'", "\udc80\x00 took 7 ms\n")["value"] == 7
