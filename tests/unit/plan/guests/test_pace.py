"""What a lab's `time` compiles to: where the TDF starts, and within which limits it follows the load."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Time

LAB = "name: x\nnodes: {{a: , b: }}\nlinks: [{{endpoints: [a, b], {link}}}]\ntime: {time}\n"


def time(written: str, link: str = "delay: 10ms") -> Time:
    return compile_plan(loads(LAB.format(time=written, link=link), "lab.yaml")).time


def test_a_tdf_that_is_a_number_is_not_watched() -> None:
    assert time("{tdf: 1/3}").watch is None


def test_a_tdf_that_is_a_number_is_watched_when_something_is_to_follow() -> None:
    watch = time("{tdf: 1/3, on_violation: fail}").watch
    assert watch is not None
    assert {watch.least.ratio, watch.most.ratio} == {Fraction(1, 3)}


@pytest.mark.parametrize(("drive", "least"), [("wall", Fraction(1, 10)), ("work", Fraction(1))])
def test_the_least_is_what_saves_host_time_on_the_drive(drive: str, least: Fraction) -> None:
    watch = time(f"{{tdf: auto, drive: {drive}}}").watch
    assert watch is not None and (watch.least.ratio, watch.most.ratio) == (least, 100)


@pytest.mark.parametrize(
    ("link", "start"),
    [("delay: 10ms", 1), ("delay: 1ms", 2), ("rate: 10Gbit", 17), ("rate: 100Gbit", 100), ("loss: 1%", 1)],
)
def test_it_starts_where_an_ordinary_host_is_in_time_for_the_links(link: str, start: int) -> None:
    assert time("{tdf: auto}", link).tdf.ratio == start


@pytest.mark.parametrize("limit", ["start", "max"])
def test_the_least_is_no_more_than_what_is_written_of_start_and_max(limit: str) -> None:
    made = time(f"{{tdf: auto, auto: {{{limit}: 0.5}}}}")
    assert made.watch is not None
    assert (made.tdf.ratio, made.watch.least.ratio) == (Fraction(1, 2), Fraction(1, 2))


def test_what_is_written_wins() -> None:
    made = time("{tdf: auto, auto: {min: 0.5, max: 7, start: 3, target: 60%, epoch: 1s, policy: pads15}}")
    assert made.watch is not None
    assert (made.tdf.ratio, made.watch.least.ratio, made.watch.most.ratio) == (3, Fraction(1, 2), 7)
    assert (made.watch.target, made.watch.epoch_ns, made.watch.policy) == (0.6, 10**9, "pads15")
