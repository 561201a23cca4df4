"""What it takes to plan a lab grows with what the plan says, not with the square of its nodes.

Counted are the instructions of Python's own machine, which are the same on every host, of two sizes of a lab, one four
times the other. Routes of a line grow with the nodes and the logarithm of their number.
"""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.lab import Lab
from dilaton.plan.compile import compile as compile_plan
from tests.unit.instructions import instructions

FEW, TIMES = 60, 4

LABS: dict[str, dict[str, Any]] = {
    "line": {"topology": {"generate": "line", "delay": "1ms"}},
    "star of a router": {"topology": {"generate": "star", "delay": "1ms"}},
    "star of a switch": {"topology": {"generate": "star", "delay": "1ms"}, "nodes": {"n0": {"kind": "switch"}}},
    "tree": {"topology": {"generate": "tree", "delay": "1ms", "fanout": "2"}},
}
"""By what is generated, but for the size."""

SIZES = {"line": "nodes", "star": "leaves", "tree": "depth"}


def planning(written: dict[str, Any]) -> int:
    """How many of Python's own instructions it takes to plan a lab."""
    lab = Lab.model_validate({"name": "growth"} | written)
    return instructions(lambda: compile_plan(lab))


def sized(written: dict[str, Any], nodes: int) -> dict[str, Any]:
    topology = written["topology"]
    size = nodes.bit_length() - 1 if topology["generate"] == "tree" else nodes
    return written | {"topology": topology | {SIZES[topology["generate"]]: str(size)}}


@pytest.mark.parametrize("name", LABS)
def test_planning_four_times_the_nodes_takes_little_more_than_four_times_as_much(name: str) -> None:
    compile_plan(Lab.model_validate({"name": "growth"} | sized(LABS[name], 4)))  # what is made once is made
    few, many = (planning(sized(LABS[name], nodes)) for nodes in (FEW, FEW * TIMES))
    assert few < many < 1.4 * TIMES * few, f"{few} for {FEW} nodes, {many} for {FEW * TIMES}"


def test_planning_four_times_the_programs_takes_no_more_than_four_times_as_much() -> None:
    def programs(number: int) -> dict[str, Any]:
        return {"nodes": {"a": {}}, "run": [{"on": "a", "name": f"p{one}", "exec": "true"} for one in range(number)]}

    few, many = (planning(programs(number)) for number in (FEW, FEW * TIMES))
    assert few < many < 1.1 * TIMES * few, f"{few} for {FEW} programs, {many} for {FEW * TIMES}"
