"""When a run ends is told from its schedule, as far as its schedule says it."""

from __future__ import annotations

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.forecast.length import End, end

LAB = """
name: length
nodes: {a: , b: }
links: ["a -- b"]
run:
"""


def of(*entries: str, more: str = "") -> End | None:
    return end(compile_plan(loads(LAB + "".join(f"  - {{{entry}}}\n" for entry in entries) + more, "lab.yaml")))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("sleep 1.5", 1.5),
        ("sleep 1m 2", 62),
        ("ping -c 20 -i 0.5 b", 10),
        ("ping -w 3 b", 3),
        ("iperf3 -c b -t 4 -O 2", 6),
        ("iperf3 -c b -t 4.9", 4),
    ],
)
def test_known_programs_take_what_they_are_asked_for(words: str, seconds: float) -> None:
    assert of(f"on: a, exec: {words}, start: 2s") == End(2 + seconds, is_earliest=False)


def test_what_waits_begins_when_what_it_waits_for_has_come_so_far() -> None:
    server = "on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true"
    first = "on: a, name: first, exec: sleep 3"
    assert of(first, "on: a, exec: sleep 2, after: first") == End(5, is_earliest=False)
    assert of(server, "on: a, exec: iperf3 -c b -t 3, after: server") == End(3, is_earliest=False)
    delayed, logged = (server.replace("tcp: 5201", ready) for ready in ("delay: 1s", "output: Server listening"))
    assert of(delayed, "on: a, exec: sleep 3, after: server") == End(4, is_earliest=False)
    assert of(logged, "on: a, exec: sleep 2, after: server") == End(2, is_earliest=True)


def test_a_program_whose_words_say_nothing_makes_the_end_the_earliest() -> None:
    assert of("on: a, exec: sh -c work") is None
    assert of("on: a, exec: sh -c work", "on: b, exec: sleep 9") == End(9, is_earliest=True)
    assert of("on: a, exec: sh -c work, stop: 7s") == End(7, is_earliest=False)


def test_the_end_that_is_asked_for_is_the_end_and_none_is_told_of_what_goes_on_for_ever() -> None:
    assert of("on: a, exec: sleep 3", more="stop_after: 2s") == End(2, is_earliest=False)
    assert of("on: a, exec: sleep infinity") is None


def test_a_fault_that_programs_wait_for_puts_their_begin_off() -> None:
    more = "faults: [{name: cut, link: a--b, down: true, at: 4s, for: 2s}]"
    assert of("on: a, exec: sleep 3, after: cut", more=more) == End(7, is_earliest=False)
    assert of("on: a, exec: sleep 3, after: cut.end", more=more) == End(9, is_earliest=False)
