"""Guests: which kernels a lab needs, with how much memory, which modules and which parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from dilaton.lab import model as lab_model
from dilaton.lab.model import Lab
from dilaton.plan.common import MODULES
from dilaton.plan.guests.clocks import clock_rate
from dilaton.plan.guests.cpus import guest_tdf
from dilaton.plan.links.changes import State
from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES, held_bytes
from dilaton.plan.links.queues import Egress
from dilaton.plan.model import ClockRate, Guest
from dilaton.plan.network.buffers import USUAL, larger_bytes
from dilaton.plan.network.network import Network

MIB = 1 << 20
MEMORY_MIN = 1024 * MIB
MEMORY_MAX = 16 * 1024 * MIB
MEMORY_BASE = 512 * MIB
MEMORY_BASE_OF_SEVERAL = 124 * MIB
"""What each of several guests is given before its nodes: with one node 128 MiB, of which a guest that runs a small
program touches a third."""

MEMORY_SPARE = 32 * MIB
"""What links that are changed while the run goes on may take beyond that."""

MEMORY_PER_NODE = 4 * MIB
MEMORY_PER_CAPTURE = 8 * MIB
"""The ring that its packets come by, and what is to be written."""
MEMORY_PER_QUEUED_BYTE = 2.5
"""What the kernel keeps for a byte under way: its packet, the packet's descriptor, and the sender's copy."""

BUILT_IN_DISCIPLINES = ("netem", "pfifo", "bfifo")
"""Those that no further module is for."""

BPF_MODULES = ("sch_ingress", "cls_bpf")
"""What lets programs look at packets before the queue disciplines do."""

BACKLOG_PACKETS = 2**31 - 1
"""A veth hands packets to its peer through the receive backlog, and beyond 1,000 of them, the default, the kernel drops
what arrives. On a fast link a host that is late for a moment delivers more than that at once; only a queue that the lab
has asked for may drop."""

TCP_MEMORY_SHARES = (3, 3, 2)
"""TCP's three marks (at ease, under pressure, refusing) as fractions 1/n of the guest's memory. The defaults are about
a twentieth, one machine's worth; a guest is many machines, and a receiver out of memory drops what no queue dropped.
Between the first two the kernel would let send buffers grow no more, and count nothing by which that could be told."""

NEIGHBOURS_MAX = 1 << 20
"""Resolved neighbours of all nodes together, whose table the kernel keeps as one; the default is 1,024."""

OVERCOMMIT_ALWAYS = "1"
"""By itself a kernel refuses whoever asks for more memory than there is (vm.overcommit_memory), touched or not.
A guest of several has little, so that programs did not begin there: fio found no libraries, and nbdkit, with 200 MB
that it never touches, was ended by a signal. What is touched and is not there ends a program, and is told."""

PAGE_BYTES = 4096

BUILT_IN_CONGESTION_CONTROLS = ("cubic", "reno")


def guests(network: Network) -> list[Guest]:
    """The guests of a lab.

    Raises:
        LabError: A guest or a node wants a speed that it cannot have.
    """
    return [_guest(network, name) for name in network.placement.guests]


def _guest(network: Network, name: str) -> Guest:
    lab, of_node = network.lab, network.placement.of_node
    nodes = dict.fromkeys(node for node, guest in of_node.items() if guest == name)
    ends = _ends(lab, network.whole_states, nodes)
    partitions = BPF_MODULES if any(fault.partition for fault in lab.faults) else ()
    found = sorted({*link_modules(egress for _, of_end in ends for egress in of_end), *partitions})
    memory = lab.guests.get(name, lab_model.Guest()).memory_bytes or memory_bytes(
        lab, network.whole_states, nodes, is_alone=len(network.placement.guests) == 1
    )
    return Guest(
        name=name,
        memory_bytes=memory,
        tdf=guest_tdf(lab, nodes, name),
        machine=network.placement.machines.get(name),
        clock_rate=ClockRate.of(clock_rate(lab, name)),
        modules=[*MODULES, *found, *network.modules(name), *_congestion_controls(lab, nodes)],
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
        **USUAL,
        "net/ipv4/udp_mem": marks,
        "net/ipv4/neigh/default/gc_thresh3": str(NEIGHBOURS_MAX),
        "vm/overcommit_memory": OVERCOMMIT_ALWAYS,
    }


def memory_bytes(lab: Lab, states: Sequence[Sequence[State]], nodes: Collection[str], *, is_alone: bool) -> int:
    """The memory that a guest is given, in whole MiB.

    An estimate from above: a base, an amount for each node and capture, what nodes may take where that is said, room
    for TCP's buffers where they are larger than usual, and for each direction of a link with a rate what can be under
    way on it and in its queue. A guest costs the host only the memory that it touches, and 1/64 of the rest for the
    kernel's own books, so more than enough is cheap; it is bounded all the same.

    Args:
        lab: The lab.
        states: What each of its links is in the course of time.
        nodes: Those that the guest holds.
        is_alone: Whether it is the only guest; the memory of several adds up, so each gets less to begin with.
    """
    base, least = (MEMORY_BASE, MEMORY_MIN) if is_alone else (MEMORY_BASE_OF_SEVERAL, MEMORY_BASE_OF_SEVERAL)
    captures = sum(capture.interface.partition(":")[0] in nodes for capture in lab.measure.capture)
    total = base + MEMORY_PER_NODE * len(nodes) + MEMORY_PER_CAPTURE * captures
    total += sum(lab.nodes[node].memory_bytes or 0 for node in nodes)
    # Beyond the second mark TCP is under pressure.
    total += sum(larger_bytes(lab.nodes[node]) * TCP_MEMORY_SHARES[1] for node in nodes)
    for frame, of_end in _ends(lab, states, nodes):
        total += int(max(held_bytes(egress, frame) for egress in of_end) * MEMORY_PER_QUEUED_BYTE)
    return -(-min(max(total, least), MEMORY_MAX) // MIB) * MIB


def _ends(lab: Lab, states: Sequence[Sequence[State]], nodes: Collection[str]) -> list[tuple[int, list[Egress]]]:
    """The ends of links at these nodes: the bytes of the largest frame, and what the end does in the course of time."""
    return [
        (link.mtu + ETHERNET_HEADER_BYTES, [state.egress[side] for state in of_link])
        for link, of_link in zip(lab.links, states, strict=True)
        for side, end in enumerate(link.endpoints)
        if end.node in nodes
    ]


def _congestion_controls(lab: Lab, nodes: Collection[str]) -> list[str]:
    """The modules of the TCP congestion controls that these nodes choose, or iperf3 for its connections."""
    chosen = {lab.nodes[node].sysctls.get("net/ipv4/tcp_congestion_control", "") for node in nodes}
    for process in lab.run:
        if process.on in nodes and PurePosixPath(process.argv[0]).name == "iperf3":
            chosen |= {name for flag, name in pairwise(process.argv) if flag in ("-C", "--congestion")}
    return [f"tcp_{name}" for name in sorted(chosen - {"", *BUILT_IN_CONGESTION_CONTROLS})]
