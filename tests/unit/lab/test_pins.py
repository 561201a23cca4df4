"""Nodes are put on machines by their names, groups and patterns, and a name says more than the others."""

from __future__ import annotations

import pytest

from dilaton.lab.errors import LabError
from dilaton.lab.loader import loads
from dilaton.lab.pins import pinned
from dilaton.plan.compile import compile as compile_plan

LAB = """name: pins
guests: GUESTS
groups: {odd: {}}
nodes: {n0: {}, n1: {group: odd}, n2: {}, n3: {group: odd}}
links: [{endpoints: [n0, n1], delay: 1ms}, {endpoints: [n1, n2], delay: 1ms}, {endpoints: [n2, n3], delay: 1ms}]
placement: PLACEMENT
"""


def written(placement: str, guests: str = "per-node") -> str:
    return LAB.replace("PLACEMENT", placement).replace("GUESTS", guests)


def test_names_groups_and_patterns_mean_their_nodes() -> None:
    assert pinned(loads(written('{n1: 3, odd: 1, "n[02]": 0}'), "pins.yaml")) == {"n0": 0, "n1": 3, "n2": 0, "n3": 1}


def test_the_plan_has_the_machine_of_each_guest_that_has_one() -> None:
    plan = compile_plan(loads(written("{odd: 1}"), "pins.yaml"))
    assert {guest.name: guest.machine for guest in plan.guests} == {"n0": None, "n1": 1, "n2": None, "n3": 1}


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        ("{n7: 0}", "pins.yaml:6:13: placement.n7: unknown node or group n7; known: n0, n1, n2, n3, odd"),
        ("{n0: -1}", "pins.yaml:6:17: placement.n0: -1: the number of a machine must be from 0 to 63"),
        ("{n0: 64}", "pins.yaml:6:17: placement.n0: 64: the number of a machine must be from 0 to 63"),
        ("{odd: 1, n*: 0}", "pins.yaml:6:25: placement.n*: 0: n1 is on machine 1 by odd; give n1 a line of its own"),
    ],
)
def test_what_puts_a_node_nowhere_or_twice_is_refused(placement: str, said: str) -> None:
    with pytest.raises(LabError) as raised:
        loads(written(placement), "pins.yaml")
    assert str(raised.value) == said


def test_nodes_of_one_guest_cannot_be_apart() -> None:
    with pytest.raises(LabError) as raised:
        compile_plan(loads(written("{n1: 1, n0: 0}", guests="1"), "pins.yaml"))
    said = "n1 on machine 1 and n0 on machine 0 are both in guest0, and a guest is on one machine; name guests on nodes"
    assert said in str(raised.value)
