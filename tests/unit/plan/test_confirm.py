"""More time for the CPUs of a lab is a higher TDF everywhere, and leaves what the lab says of its network and nodes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.confirm import again, refusal, with_more_time

SHARED = """
name: x
seed: 7
time: {tdf: 5, on_violation: fail}
nodes: {a: {cpu: 2, guest: one}, b: {guest: one}, c: {guest: two}, d: {cpu: 3}}
guests: {one: {tdf: 4}, two: {memory: 256MiB}}
links: [{endpoints: a -- b, delay: 1ms}, {endpoints: b -- c, delay: 1ms}, {endpoints: c -- d, delay: 1ms}]
"""


def test_a_tdf_is_more_time_and_a_cpu_stays_what_it_is() -> None:
    lab = with_more_time(loads(SHARED, "lab.yaml"), Fraction(20), Fraction(4), 8)
    plan = compile_plan(lab)
    assert (plan.time.tdf.ratio, plan.time.watch, plan.seed) == (20, None, 8)
    tdfs = {guest.name: guest.tdf and guest.tdf.ratio for guest in plan.guests}
    assert (tdfs["one"], tdfs["two"], sorted(tdfs.values(), key=str)) == (16, None, [16, 3, None])
    speeds = {node.name: Fraction(node.cpu.numerator, node.cpu.denominator) for node in plan.nodes if node.cpu}
    assert speeds == {"a": 2}, "a share of its guest; that of d is all of another guest, whose TDF it is"


def test_clocks_that_run_apart_keep_their_rates() -> None:
    text = "name: x\ntime: {drive: wall, clocks: apart, tdf: 4}\nnodes: {a: {guest: g}, b: {}}\nguests: {g: {tdf: 2}}\n"
    before = loads(text + "links: [{endpoints: a -- b, delay: 1ms}]\n", "lab.yaml")
    plans = [compile_plan(before), compile_plan(with_more_time(before, Fraction(8), Fraction(2), 1))]
    assert [[guest.clock_rate.ratio for guest in plan.guests if guest.name == "g"] for plan in plans] == [[2], [2]]


def test_a_network_that_was_generated_stays_with_another_seed() -> None:
    text = "name: x\ntopology: {generate: waxman, nodes: 12}\n"
    lab = loads(text, "lab.yaml")
    other = loads(text, "lab.yaml", [("seed", "2")])
    assert other.links != lab.links
    assert again(lab, 2).links == with_more_time(lab, Fraction(4), Fraction(4), 2).links == lab.links


@pytest.mark.parametrize(("written", "then"), [("hold", "continue"), ("fail", "continue"), ("retry", "retry")])
def test_a_run_that_nobody_watches_is_not_held(written: str, then: str) -> None:
    lab = again(loads(f"name: x\nnodes: {{a: }}\ntime: {{tdf: auto, on_violation: {written}}}\n", "lab.yaml"), 3)
    assert (lab.time.on_violation, lab.time.tdf, lab.seed) == (then, "auto", 3)


ALONE = "name: x\nguests: per-node\nnodes: {a: {cpu: 1}, b: {cpu: 2}}\nlinks: [{endpoints: a -- b, delay: 1ms}]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name: x\ntime: {drive: event}\nnodes: {a: }\n", "on the event drive CPUs take no time"),
        (ALONE, "every guest has one node, with a cpu of a given speed"),
        (ALONE.replace("a: {cpu: 1}", "a: {}"), ""),
        (SHARED, ""),
    ],
)
def test_what_no_tdf_changes_is_not_confirmed(text: str, why: str) -> None:
    lab = loads(text, "lab.yaml")
    found = refusal(lab, compile_plan(lab))
    assert found.startswith(why) and bool(found) == bool(why)
