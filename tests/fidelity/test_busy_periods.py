"""Busy periods: for how long without a pause a guest was busy, in virtual time, and that none of its time is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conftest import RunLab

LAB = """
name: x
nodes: {a: , b: }
links: [{endpoints: a -- b, rate: 10Mbit, delay: 5ms}]
run:
  - {on: a, exec: ping -c 20 -i 0.02 b}
  - {on: b, exec: "timeout 0.4 sh -c 'while :; do :; done'", expect_exit: 124, start: 1s}
"""


def periods(record: dict[str, Any]) -> dict[str, Any]:
    """The busy periods of a run."""
    found: dict[str, Any] = record["fidelity"]["busy_periods"]
    return found


@pytest.mark.parametrize("drive", ["work", pytest.param("wall", marks=pytest.mark.alone), "event"])
def test_busy_and_idle_periods_together_are_all_of_virtual_time(run_lab: RunLab, drive: str) -> None:
    # In the last 10 ms before a packet ping only asks for the time, each a step of the event drive.
    lab = LAB if drive != "event" else LAB.split("  - {on: b")[0].replace("-c 20 -i 0.02", "-c 5 -i 0.2")
    record = run_lab(lab, "--drive", drive, "--tdf", "5").record
    seen = periods(record)
    passed_s = (sum(seen["ns_totals"]) + sum(seen["idle_ns_totals"])) / 1e9
    # The time from the last process's end to the agents' last words is in one of the two only.
    assert passed_s == pytest.approx(record["time"]["virtual_s"], abs=0.05)
    assert sum(seen["ns_totals"]) / 1e9 == pytest.approx(record["fidelity"]["busy"] * passed_s, rel=0.05, abs=0.01)
    assert seen["longest_ns"].bit_length() == max(number for number, count in enumerate(seen["ns_counts"]) if count)
    for number, (count, total_ns) in enumerate(zip(seen["ns_counts"], seen["ns_totals"], strict=True)):
        assert count << max(0, number - 1) <= max(total_ns, number == 0 and count) <= count << number


def test_every_interrupt_is_in_a_busy_period(run_lab: RunLab) -> None:
    record = run_lab(LAB.split("  - {on: b")[0], "--drive", "work", "--tdf", "5").record
    # In a single guest all interrupts are timers, but for what the host says to the agents at the end.
    timers = record["fidelity"]["timers"]
    assert timers <= sum(periods(record)["interrupts"]) <= timers + 20


def test_a_program_that_never_pauses_is_one_busy_period_and_one_that_sleeps_is_many(run_lab: RunLab) -> None:
    spinning = periods(run_lab(LAB, "--drive", "work", "--tdf", "5").record)
    # Of the time that the shell runs until its limit of 0.4 s; a program's start may be in it.
    assert 0.38e9 < spinning["longest_ns"] < 0.6e9
    with_share = LAB.replace("b: }", "b: {cpu: 0.5}}")
    sleeping = periods(run_lab(with_share, "--drive", "work", "--tdf", "5").record)
    assert sleeping["longest_ns"] < spinning["longest_ns"] / 10


POLLING = """
name: x
nodes: {a: , b: }
links: [{endpoints: a -- b, rate: 10Mbit, delay: 5ms}]
run: [{on: a, exec: ping -c 40 -i 0.02 b}]
"""


def test_a_program_that_asks_again_and_again_whether_something_has_come_idles(run_lab: RunLab) -> None:
    """In the last 10 ms before each packet ping does nothing else: for half of the time, and through each round trip."""
    seen = run_lab(POLLING, "--tdf", "10").record["fidelity"]
    assert seen["busy"] < 0.2
    assert sum(seen["busy_periods"]["ns_totals"][24:]) == 0, (
        "a period of 8 ms, in which no answer would have come in time"
    )
    assert sum(seen["contention"]["jobs_ns_counts"][23:]) < 10, "jobs of 4 ms, where 40 are 10 ms of asking"


@pytest.mark.parametrize("question", ["select.select([], [], [], 0)", "time.monotonic()"])
def test_a_program_that_computes_between_its_questions_is_busy(run_lab: RunLab, question: str) -> None:
    loop = "import select, time\nend = time.monotonic() + .3\nwhile time.monotonic() < end:\n"
    program = f"{loop} {question}\n for _ in range(20000): pass"
    lab = f"name: x\nnodes: {{a: }}\nrun:\n  - on: a\n    exec: [python3, -c, {program!r}]\n".replace("'", '"')
    assert periods(run_lab(lab, "--tdf", "5").record)["longest_ns"] > 0.25e9


LONG = "1/4"
"""The TDF: a program that computes takes more than a virtual second on ours, and on a host of ten times its speed a tenth."""

COMPUTES = """
name: x
nodes: {a: , b: }
links: [{endpoints: a -- b, rate: 10Mbit, delay: 5ms}]
run:
  - {on: b, name: one, exec: [sh, -c, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"]}
"""
FLOW = """
  - {on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: flow, exec: iperf3 -c b -t 1, after: server}
"""


def test_a_program_that_computes_beside_a_flow_keeps_it_waiting_for_a_part_of_that(run_lab: RunLab) -> None:
    seen = run_lab(COMPUTES.rstrip() + FLOW, "--tdf", LONG).record["fidelity"]
    waited, busy = seen["contention"], seen["busy_periods"]
    assert sum(busy["ns_totals"]) > 0.2e9, "else this host is too fast for this test"
    assert 0 < sum(waited["ns_totals"]) < 0.9 * sum(busy["ns_totals"])
    assert sum(waited["interrupts"]) < sum(busy["interrupts"])


def test_programs_that_compute_at_once_wait_for_each_other_all_the_time(run_lab: RunLab) -> None:
    alone = run_lab(COMPUTES, "--tdf", LONG).record["fidelity"]["contention"]["longest_ns"]
    other = COMPUTES.splitlines()[-1].replace("one", "two", 1) + "\n"
    together = run_lab(COMPUTES + other, "--tdf", LONG).record["fidelity"]["contention"]["longest_ns"]
    assert alone < 0.06e9 < 0.2e9 < together


ASKS = """
  - on: a
    name: asks
    exec: [python3, -I, -S, -c, "import select\\nwhile True: select.select([], [], [], 0)"]
    background: true
"""


@pytest.mark.alone  # two runs, one after the other, by whose difference a wait is known, and which other work would make
def test_a_program_that_computes_waits_for_one_that_only_asks(run_lab: RunLab) -> None:
    """They take turns, and each turn of the one is a wait of the other: as long together as that takes longer than alone."""
    alone = run_lab(COMPUTES, "--tdf", LONG).record
    beside = run_lab(COMPUTES.rstrip() + ASKS, "--tdf", LONG).record
    waited = beside["fidelity"]["contention"]
    assert sum(waited["ns_totals"]) > 0.8 * (took_s(beside) - took_s(alone)) * 1e9 > 0.01e9
    first, *_ = waited["longest"]
    assert (first["end_s"] - first["begin_s"]) * 1e9 == pytest.approx(waited["longest_ns"])


def took_s(record: Mapping[str, Any]) -> float:
    """How long the program took that computes, in virtual time."""
    return next(each["end_s"] - each["start_s"] for each in record["processes"] if each["name"] == "one")
