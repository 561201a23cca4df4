"""Turns what a lab wants measured into what the agent does."""

from __future__ import annotations

from dilaton.lab.parts import measure
from dilaton.lab.text.filters import compile_filter
from dilaton.plan.model import Capture, Instruction, Measure


def measurement(wanted: measure.Measure) -> Measure:
    """What is measured."""
    return Measure(
        interfaces_period_ns=wanted.interfaces_ns,
        tcp_period_ns=wanted.tcp_ns,
        nodes_period_ns=wanted.nodes_ns,
        outputs=wanted.outputs,
        captures=[_capture(capture) for capture in wanted.capture],
    )


def _capture(wanted: measure.Capture) -> Capture:
    node, interface = wanted.interface.split(":")
    return Capture(
        node=node,
        interface=interface,
        filter=wanted.filter,
        snaplen=wanted.snaplen,
        program=[Instruction(each) for each in compile_filter(wanted.filter, wanted.snaplen)],
        file=f"captures/{node}.{interface}.pcapng",
    )
