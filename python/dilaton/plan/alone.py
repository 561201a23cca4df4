"""The plan of one node without links, in which nothing happens by itself: what `dilaton exec` runs a program in."""

from __future__ import annotations

from collections.abc import Sequence

from dilaton.plan.common import GRACE_NS, MODULES
from dilaton.plan.model import Bind, Guest, HostsEntry, Image, Measure, Node, Plan, Time

GUEST = "guest0"

NODE = "exec"
"""Its name, and so its host name."""

END_NS = 2**62
"""When the run ends if nobody ends it, in a hundred years."""


def plan_alone(time: Time, seed: int, memory_bytes: int, binds: Sequence[Bind]) -> Plan:
    """The plan.

    Args:
        time: What drives it.
        seed: Of its random numbers.
        memory_bytes: What its guest is given.
        binds: Directories of this machine that the node sees or writes.
    """
    guest = Guest(name=GUEST, memory_bytes=memory_bytes, tdf=time.tdf, modules=list(MODULES), sysctls={})
    node = Node(
        name=NODE,
        guest=GUEST,
        image=Image(kind="host"),
        interfaces=[],
        bridge=None,
        loopback=[],
        files=[],
        binds=list(binds),
        routes=[],
        cpu=None,
        sysctls={},
        memory_bytes=None,
        disk=None,
    )
    return Plan(
        lab=NODE,
        seed=seed,
        time=time,
        stop_after_ns=END_NS,
        grace_ns=GRACE_NS,
        guests=[guest],
        nodes=[node],
        links=[],
        wires=[],
        tables={},
        traces={},
        changes=[],
        hosts=[HostsEntry(address="127.0.1.1", names=[NODE])],
        processes=[],
        measure=Measure(interfaces_period_ns=None, tcp_period_ns=None, nodes_period_ns=None, captures=[]),
        checks=[],
    )
