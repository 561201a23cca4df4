"""Flows that filled their bottlenecks were kept from nothing, where they are all that was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dilaton.measure.observation import Observation
from dilaton.measure.verdict import judge
from dilaton.measure.waiting.filled import Filled
from dilaton.measure.waiting.together import Together
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.network.bounds import Network
from tests.unit.measure.made import plan

LAB = """
name: x
nodes: {a: , r: , b: }
links:
  - {endpoints: a -- r, rate: 100Mbit, delay: 1ms}
  - {endpoints: r -- b, BACK}
run:
  - {on: b, name: sink, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: flow, exec: iperf3 -c b -J, after: sink}
REST
"""
FULL = 10e6 * 1460 / 1514
"""What a bottleneck of 10 Mbit/s can carry of payload in full frames."""


def filled(
    carried: float, *, back: str = "rate: 10Mbit", rest: str = "", later: float | None = None, **result: Any
) -> bool:
    """Whether a flow is known to have been kept from nothing that carried so much, and in its second half `later`."""
    intervals = [{"throughput": 0.0}, {"throughput": carried if later is None else later}]
    seen = {"throughput": carried, "retransmits": 0, "intervals": intervals, **result}
    made = plan(LAB.replace("BACK", back).replace("REST", rest))
    return Filled.of(made, [("a", "flow", seen), ("a", "other", {"rtt": {"avg": 0.01}})]).all()


@pytest.mark.parametrize(("part", "is_full"), [(1.0, True), (0.96, True), (0.94, False), (0.0, False)])
def test_a_flow_that_carried_what_its_bottleneck_can_was_kept_from_nothing(part: float, is_full: bool) -> None:
    assert filled(part * FULL) == is_full


def test_of_a_link_that_is_slower_one_way_the_faster_way_counts_as_nobody_says_which_was_used() -> None:
    assert not filled(FULL, back="a_to_b: {rate: 10Mbit}, b_to_a: {rate: 20Mbit}")
    assert filled(2 * FULL, back="a_to_b: {rate: 10Mbit}, b_to_a: {rate: 20Mbit}")


@pytest.mark.parametrize(
    "rest",
    [
        "  - {on: a, name: other, exec: ping b}",
        "  - {on: a, name: other, exec: date}",
        "measure: {tcp: 10ms}",
        "measure: {interfaces: 10ms}",
        "measure: {nodes: 10ms}",
        "measure: {capture: ['a:eth0']}",
    ],
)
def test_what_else_is_measured_depends_on_more_than_how_full_the_bottleneck_was(rest: str) -> None:
    assert not filled(FULL, rest=rest)


def test_a_program_that_only_makes_work_measures_nothing() -> None:
    assert filled(FULL, rest="  - {on: b, name: other, exec: 'sh -c true', background: true}")


@pytest.mark.parametrize("result", [{"loss": 0.0}, {"reverse": {}}], ids=["UDP", "both ways"])
def test_only_flows_that_are_acknowledged_and_one_way_are_full(result: dict[str, Any]) -> None:
    assert not filled(FULL, **result)


@pytest.mark.parametrize("result", [{"throughput": FULL, "transfers": []}, {"throughput": None}, {"error": "?"}, None])
def test_what_other_programs_say_of_their_throughput_is_no_flow(result: dict[str, Any] | None) -> None:
    made = plan(LAB.replace("BACK", "rate: 10Mbit").replace("REST", ""))
    assert not Filled.of(made, [("a", "flow", result)]).all()


def test_each_interval_but_the_first_has_to_be_full() -> None:
    assert filled(FULL, later=0.96 * FULL)
    assert not filled(FULL, later=0.9 * FULL)


def test_a_run_without_programs_that_talk_or_without_their_results_measured_nothing_full() -> None:
    assert not Filled.of(plan(LAB.replace("BACK", "rate: 10Mbit").replace("REST", "")), []).all()
    assert not Filled.of(plan("name: x\nnodes: {a: }\n"), []).all()


def test_of_some_nodes_it_is_known_if_all_that_concerns_them_is_such_flows() -> None:
    rest = "  - {on: b, name: other, exec: ping r}"
    made = plan(LAB.replace("BACK", "rate: 10Mbit").replace("REST", rest))
    seen = {"throughput": FULL, "retransmits": 0, "intervals": [{"throughput": 0.0}, {"throughput": FULL}]}
    found = Filled.of(made, [("a", "flow", seen)])
    assert found.all_of({"a"}) and not found.all()
    assert not found.all_of({"b"}) and not found.all_of({"a", "r"}) and not found.all_of(set())


def test_waits_a_late_begin_and_a_busy_cpu_are_no_reason_where_nothing_was_kept_from_anything() -> None:
    network = Network(wait_ns_max=1_000_000, wait_path="a and b", wait_why="a round trip takes 4 ms")
    long = [0] * 21 + [100]
    waited = Waits(interrupts=100, longest=[(0, 1e9)], jobs=[*long, *long])
    beside = [Together("a/flow", 0, 1.0)]
    seen = Observation("work", 1.0, waits=waited, together=beside, busy=0.95, lateness_max_ns=20_000_000)
    assert len(judge(network, seen).reasons) == 4
    assert judge(network, replace(seen, is_filled=True)).level == "valid"
