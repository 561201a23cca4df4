"""Guests: which kernels a lab needs, with how much memory, which modules and which parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from dilaton.lab.model import Lab
from dilaton.plan.changes import State
from dilaton.plan.links import ETHERNET_HEADER_BYTES, held_bytes
from dilaton.plan.model import Guest, Tdf
from dilaton.plan.queues import Egress

GUEST = "guest0"
"""The one guest that holds all nodes (packed)."""

MIB = 1 << 20
MEMORY_MIN = 1024 * MIB
MEMORY_MAX = 16 * 1024 * MIB
MEMORY_BASE = 512 * MIB
MEMORY_PER_NODE = 4 * MIB
MEMORY_PER_CAPTURE = 8 * MIB
"""The ring that its packets come by, and what is to be written."""
MEMORY_PER_QUEUED_BYTE = 2.5
"""What the kernel keeps for a byte under way: its packet, the packet's descriptor, and the sender's copy."""

MODULES = ("ipv6", "overlay", "veth", "sch_netem")
"""`ipv6` is for programs that want ::1 or listen on `::`; the others make nodes, links and what most links do."""

BUILT_IN_DISCIPLINES = ("netem", "pfifo", "bfifo")
"""Those that no further module is for."""

BPF_MODULES = ("sch_ingress", "cls_bpf")
"""What lets programs look at packets before the queue disciplines do."""

BACKLOG_PACKETS = 2**31 - 1
"""A veth hands packets to its peer through the receive backlog, and beyond 1,000 of them, the default, the kernel drops
what arrives. On a fast link a host that is late for a moment delivers more than that at once; only a queue that the lab
has asked for may drop."""

TCP_MEMORY_SHARES = (4, 3, 2)
"""TCP's three marks (at ease, under pressure, refusing) as fractions 1/n of the guest's memory. The defaults are about
a twentieth, one machine's worth; a guest is many machines, and a receiver out of memory drops what no queue dropped."""

NEIGHBOURS_MAX = 1 << 20
"""Resolved neighbours of all nodes together, whose table the kernel keeps as one; the default is 1,024."""

PAGE_BYTES = 4096

BUILT_IN_CONGESTION_CONTROLS = ("cubic", "reno")


def guest(lab: Lab, tdf: Tdf, kind_modules: Iterable[str], states: Sequence[Sequence[State]]) -> Guest:
    """The guest of a lab: with its TDF at the start, the modules of its kinds of nodes, and what its links become."""
    found = link_modules(one for of_link in states for state in of_link for one in state.egress)
    modules = [*MODULES, *found, *kind_modules, *_congestion_controls(lab)]
    memory = memory_bytes(lab, states)
    return Guest(
        name=GUEST,
        memory_bytes=memory,
        tdf=tdf,
        modules=modules,
        sysctls=_sysctls(memory),
    )


def link_modules(found: Iterable[Egress]) -> list[str]:
    """The modules of what links do, so that one that is missing is noticed before the run."""
    modules: set[str] = set()
    for egress in found:
        modules.update(f"sch_{one.kind}" for one in egress.qdiscs if one.kind not in BUILT_IN_DISCIPLINES)
        if egress.drops or egress.delivery:
            modules.update(BPF_MODULES)
    return sorted(modules)


def _sysctls(memory: int) -> dict[str, str]:
    """Limits of a single machine that must not show in a guest that holds many, given its memory in bytes."""
    marks = " ".join(str(memory // PAGE_BYTES // share) for share in TCP_MEMORY_SHARES)
    return {
        "net/core/netdev_max_backlog": str(BACKLOG_PACKETS),
        "net/ipv4/tcp_mem": marks,
        "net/ipv4/udp_mem": marks,
        "net/ipv4/neigh/default/gc_thresh3": str(NEIGHBOURS_MAX),
    }


def memory_bytes(lab: Lab, states: Sequence[Sequence[State]]) -> int:
    """The memory that a guest is given, in whole MiB.

    An estimate from above: a base, an amount for each node and capture, and for each direction of a link with a rate
    what can be under way on it and in its queue. A guest costs the host only the memory that it touches, and 1/64 of
    the rest for the kernel's own books, so more than enough is cheap; it is bounded all the same.
    """
    total = MEMORY_BASE + MEMORY_PER_NODE * len(lab.nodes) + MEMORY_PER_CAPTURE * len(lab.measure.capture)
    for link, of_link in zip(lab.links, states, strict=True):
        frame = link.mtu + ETHERNET_HEADER_BYTES
        for side in (0, 1):
            held = max(held_bytes(state.egress[side], frame) for state in of_link)
            total += int(held * MEMORY_PER_QUEUED_BYTE)
    return -(-min(max(total, MEMORY_MIN), MEMORY_MAX) // MIB) * MIB


def _congestion_controls(lab: Lab) -> list[str]:
    """The modules of the TCP congestion controls that nodes choose, or iperf3 for its connections."""
    chosen = {node.sysctls.get("net/ipv4/tcp_congestion_control", "") for node in lab.nodes.values()}
    for process in lab.run:
        if PurePosixPath(process.argv[0]).name == "iperf3":
            chosen |= {name for flag, name in pairwise(process.argv) if flag in ("-C", "--congestion")}
    return [f"tcp_{name}" for name in sorted(chosen - {"", *BUILT_IN_CONGESTION_CONTROLS})]
