"""What it takes to plan a lab grows with what the plan says, not with the square of its nodes.

Counted are the instructions of Python's own machine, which are the same on every host, of two sizes of a lab, one four
times the other. Routes of a line grow with the nodes and the logarithm of their number.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from dilaton.lab import Lab
from dilaton.plan.compile import compile as compile_plan

FEW, TIMES = 60, 4

LABS: dict[str, dict[str, Any]] = {
    "line": {"topology": {"generate": "line", "delay": "1ms"}},
    "star of a router": {"topology": {"generate": "star", "delay": "1ms"}},
    "star of a switch": {"topology": {"generate": "star", "delay": "1ms"}, "nodes": {"n0": {"kind": "switch"}}},
    "tree": {"topology": {"generate": "tree", "delay": "1ms", "fanout": "2"}},
}
"""By what is generated, but for the size."""

SIZES = {"line": "nodes", "star": "leaves", "tree": "depth"}


def instructions(written: dict[str, Any]) -> int:
    """How many of Python's own instructions it takes to plan a lab."""
    lab = Lab.model_validate({"name": "growth"} | written)
    count = 0

    def local(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "opcode"
        return local

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compile_plan(lab)
    finally:
        sys.settrace(before)
    return count


def sized(written: dict[str, Any], nodes: int) -> dict[str, Any]:
    topology = written["topology"]
    size = nodes.bit_length() - 1 if topology["generate"] == "tree" else nodes
    return written | {"topology": topology | {SIZES[topology["generate"]]: str(size)}}


@pytest.mark.parametrize("name", LABS)
def test_planning_four_times_the_nodes_takes_little_more_than_four_times_as_much(name: str) -> None:
    compile_plan(Lab.model_validate({"name": "growth"} | sized(LABS[name], 4)))  # what is made once is made
    few, many = (instructions(sized(LABS[name], nodes)) for nodes in (FEW, FEW * TIMES))
    assert few < many < 1.4 * TIMES * few, f"{few} for {FEW} nodes, {many} for {FEW * TIMES}"
