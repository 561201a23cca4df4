"""CPUs of nodes are the TDF of a guest of their own, or shares of a guest that has as much."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan

LINK = {"endpoints": "a -- b", "rate": "100Mbit", "delay": "5ms"}
LAB: dict[str, Any] = {"name": "x", "nodes": {"a": {"cpu": 2}, "b": {}}, "links": [LINK]}


def plan(**fields: Any) -> Plan:
    return compile_plan(Lab.model_validate(LAB | fields))


def shares(found: Plan) -> dict[str, tuple[int, Fraction] | None]:
    return {
        node.name: node.cpu and (node.cpu.number, Fraction(node.cpu.numerator, node.cpu.denominator))
        for node in found.nodes
    }


def tdfs(found: Plan) -> dict[str, Fraction | None]:
    return {guest.name: None if guest.tdf is None else guest.tdf.ratio for guest in found.guests}


def refused(**fields: Any) -> str:
    with pytest.raises(LabError) as error:
        plan(**fields)
    return str(error.value)


@pytest.mark.parametrize("tdf", [1, 5, 10, 50, 100])
def test_the_cpu_of_a_node_that_is_alone_is_the_tdf_of_its_guest_whatever_that_of_the_lab(tdf: int) -> None:
    """So that a guest of its own is the same at every TDF, and what it computes takes the same time."""
    found = plan(guests="per-node", time={"tdf": tdf})
    assert tdfs(found) == {"a": 2, "b": None}
    assert shares(found) == {"a": None, "b": None}


def test_nodes_that_share_a_guest_have_shares_of_its_cpu() -> None:
    found = plan(nodes={"a": {"cpu": "1/3"}, "b": {}, "c": {"cpu": "0.5"}}, time={"tdf": 10})
    assert tdfs(found) == {"guest0": None}
    assert shares(found) == {"a": (1, Fraction(1, 3)), "b": None, "c": (2, Fraction(1, 2))}


def test_numbers_of_shares_begin_anew_in_each_guest() -> None:
    nodes = {name: {"cpu": "1/4", "guest": guest} for name, guest in zip("abcd", "xxyy", strict=True)}
    assert [share and share[0] for share in shares(plan(nodes=nodes)).values()] == [1, 2, 1, 2]


def test_on_the_wall_drive_a_cpu_is_a_share_of_a_guest_of_its_own_too() -> None:
    found = plan(guests="per-node", time={"drive": "wall", "tdf": 10})
    assert tdfs(found) == {"a": None, "b": None}
    assert shares(found) == {"a": (1, Fraction(2)), "b": None}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "nodes.a.cpu: 2, but guest guest0, which they are in, has a CPU of speed 1, its tdf; write a tdf of 2"),
        ({"guests": "per-node", "time": {"drive": "wall"}}, "2, but guest a, which they are in, has a CPU of speed 1"),
        (
            {"nodes": {"a": {"cpu": "0.75"}, "b": {"cpu": "0.5"}}},
            "nodes.a.cpu: the CPUs of 2 nodes are 1.25 together, but guest guest0",
        ),
        (
            {"time": {"tdf": "auto", "auto": {"max": "1.5"}}},
            "has a CPU of speed 1.5, its max; write a max of 2 or more",
        ),
        ({"time": {"drive": "event", "tdf": 9}}, "nodes.a.cpu: on the event drive CPUs take no time"),
        ({"nodes": {"a": {"cpu": 2}}, "links": [], "time": {"drive": "event"}}, "on the event drive CPUs take no time"),
        (
            {"nodes": {"a": {"guest": "x", "cpu": 3}, "b": {}}, "guests": {"x": {"tdf": 5}}},
            "nodes.a.cpu: guest x has a tdf, which is the speed of its CPU; write one of the two",
        ),
        (
            {"nodes": {"a": {"guest": "x"}, "b": {}}, "guests": {"x": {"tdf": 5}}, "time": {"drive": "wall"}},
            "guests.x.tdf: on the wall drive clocks of different TDFs run apart; write clocks: apart below time",
        ),
    ],
)
def test_a_cpu_that_no_guest_can_give_is_refused(fields: dict[str, Any], why: str) -> None:
    assert why in refused(**fields)
