"""Who does not hear whom in a partition that is drawn from the seed."""

from __future__ import annotations

import itertools

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile
from dilaton.plan.course.entries import Partition

NODES = ("n1", "n2", "n3", "n4", "n5", "n6", "n7")


def hears(shape: str, count: int, seed: int = 1) -> tuple[str, dict[str, set[str]]]:
    """The words of a partition of so many nodes, and whom each node still hears."""
    nodes = NODES[:count]
    lab = (
        f"name: x\nseed: {seed}\nnodes: {{{', '.join(f'{name}: {{}}' for name in nodes)}}}\n"
        f"links: [[{', '.join(nodes)}]]\nfaults: [{{at: 1s, partition: {shape}}}]\n"
    )
    (fault,) = compile(
        loads(lab.replace("links: [[", "links: [{endpoints: [").replace("]]", "]}]", 1), "lab.yaml")
    ).course
    assert isinstance(fault.effect, Partition)
    cut = {(source, target) for one in fault.effect.cuts for source in one.sources for target in one.targets}
    return fault.what, {
        name: {other for other in nodes if (other, name) not in cut and other != name} for name in nodes
    }


@pytest.mark.parametrize(("shape", "sizes"), [("halves", (2, 3)), ("majority", (2, 3))])
def test_two_sides_hear_only_themselves(shape: str, sizes: tuple[int, int]) -> None:
    _, heard = hears(f"{{{shape}: ['n*']}}", 5)
    sides = {frozenset({name, *others}) for name, others in heard.items()}
    assert tuple(sorted(map(len, sides))) == sizes


def test_a_majority_of_an_even_number_is_more_than_half() -> None:
    _, heard = hears("{majority: ['n*']}", 6)
    assert sorted(len(others) + 1 for others in heard.values()) == [2, 2, 4, 4, 4, 4]


@pytest.mark.parametrize("count", [5, 6, 7])
def test_in_a_ring_each_hears_a_majority_and_no_two_the_same(count: int) -> None:
    _, heard = hears("{ring: ['n*']}", count)
    views = [frozenset({name, *others}) for name, others in heard.items()]
    assert all(len(view) > count / 2 for view in views)
    assert len(set(views)) == count
    assert all(name in heard[other] for name, others in heard.items() for other in others)


def test_a_bridge_is_heard_by_both_sides() -> None:
    _, heard = hears("{bridge: ['n*']}", 5)
    (bridge,) = (name for name, others in heard.items() if len(others) == 4)
    assert sorted(len(others) for name, others in heard.items() if name != bridge) == [2, 2, 2, 2]


def test_those_who_are_isolated_hear_nobody_not_even_each_other() -> None:
    _, heard = hears("{isolate: [n1, n2]}", 4)
    assert heard == {"n1": set(), "n2": set(), "n3": {"n4"}, "n4": {"n3"}}


def test_the_same_seed_draws_the_same_and_the_plan_says_it() -> None:
    words, heard = hears("{halves: ['n*']}", 7)
    assert (words, heard) == hears("{halves: ['n*']}", 7)
    assert len({hears("{halves: ['n*']}", 7, seed)[0] for seed in range(1, 9)}) > 4
    first, second = (side.split(", ") for side in words.removeprefix("partition ").split(" | "))
    assert sorted(first + second) == list(NODES)
    assert not any(other in heard[name] for name, other in itertools.product(first, second))


@pytest.mark.parametrize("shape", ["halves", "majority", "isolate", "ring", "bridge"])
def test_a_pattern_means_no_switch_also_not_that_of_a_segment(shape: str) -> None:
    words, heard = hears(f"{{{shape}: ['*']}}", 5)
    assert "lan0" not in words
    assert (words, heard) == hears(f"{{{shape}: ['n*']}}", 5)


def test_a_pattern_means_no_switch_of_the_labs_own() -> None:
    lab = "name: x\nnodes: {a: {}, b: {}, s: {kind: switch}}\nlinks: [a -- s, b -- s]\n"
    (fault,) = compile(loads(lab + "faults: [{at: 1s, partition: {halves: ['*']}}]\n", "lab.yaml")).course
    assert isinstance(fault.effect, Partition)
    assert sorted(fault.what.removeprefix("partition ").split(" | ")) == ["a", "b"]
