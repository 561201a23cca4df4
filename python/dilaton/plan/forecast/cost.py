"""What a run will cost of the host's time, told before it starts.

What costs is packets: each is written and read by programs, and passes a queue and a device at every link. So the flows
of iperf3, the program whose words say what it sends, are laid over their paths, each as fast as its share of the
slowest link and TCP's windows and losses let it be, and their packets are counted. The work drive skips idle time, so
that this is what the host takes; the wall drive takes all of virtual time, and a fixed TDF bounds what a busy guest
takes.

Two labs of the same packets differ by a factor of two, by how many packets the kernel takes at once, and so is this.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dilaton.lab.model import Lab
from dilaton.lab.parts.links import effective
from dilaton.lab.segments import without_lans
from dilaton.lab.text import units
from dilaton.plan.forecast.asked import asked
from dilaton.plan.model import Plan
from dilaton.plan.network.conversations import Path, directions, egresses, pairs, paths, talks

PACKET_CORE_S = 80e-6
"""A packet of TCP with its half of an acknowledgement: written, read, acknowledged."""

HOP_CORE_S = 50e-6
"""The same, for each link."""

BOOT_HOST_S = 1.0
NODE_HOST_S = 0.01
WINDOW_BYTES = 4 << 20
"""What TCP keeps in flight at most, unless buffers were made larger: tcp_wmem's default maximum."""

MATHIS = 1.22
"""The factor in the rate of a lossy TCP connection: MSS / RTT * 1.22 / sqrt(p) (Mathis et al., 1997)."""


@dataclass(frozen=True)
class Flow:
    """What a program sends.

    Attributes:
        name: The program, as `node/name`.
        path: Over which links.
        begin_s, seconds: When it begins, at the earliest, and for how long it goes on.
        asked_bit_per_s: How fast it would, all its connections; None: as fast as it can.
        bytes: How much at most; None: as the time goes.
        connections: How many.
        is_tcp: Whether losses and windows slow it.
    """

    name: str
    path: Path
    begin_s: float
    seconds: float
    asked_bit_per_s: float | None = None
    bytes: float | None = None
    connections: int = 1
    is_tcp: bool = True


@dataclass(frozen=True)
class Part:
    """What a flow costs: its packets, each over so many links, and CPU seconds of a core; infinite without a rate."""

    flow: Flow
    rate_bit_per_s: float
    packets: float
    core_s: float


@dataclass(frozen=True)
class Cost:
    """What a run costs.

    Attributes:
        host_s: Host seconds, within a factor of two.
        end_s: When the last flow ends, in virtual time, or the run is ended.
        parts: The flows, dearest first.
        load: Which share of the time that the TDF gives the guests their flows take; 0 where the TDF follows the load.
    """

    host_s: float
    end_s: float
    parts: Sequence[Part]
    load: float

    @property
    def is_bound(self) -> bool:
        """Whether it is the TDF that bounds it: all the time of a guest that is always busy."""
        return self.load >= 1

    @property
    def busiest(self) -> str | None:
        """The interface that sends most of the packets, as `node:interface`; None where nobody knows how many."""
        counts = defaultdict[str, float](float)
        for part in self.parts:
            for direction in part.flow.path.there:
                counts[direction.name] += part.packets
        name, most = max(counts.items(), key=lambda one: one[1])
        return name if math.isfinite(most) else None

    @property
    def hint(self) -> str:
        """What makes it dear, and what would make it cheaper."""
        part = self.parts[0]
        links = len(part.flow.path.there)
        over = f"over {links} links" if links > 1 else "over a link"
        rate = "as fast as it can"
        if not math.isinf(part.core_s):
            rate = f"at {units.format_rate(round(float(f'{part.rate_bit_per_s:.2g}')))}"
        said = f"{part.flow.name} sends {rate} {over} for {part.flow.seconds:.3g} s"
        if self.is_bound:
            return f"{said} and keeps the CPU busy; a rate for the links or a smaller tdf ends it sooner"
        packets = f"{float(f'{part.packets:.2g}'):,.0f} packets"
        return f"{said}, {packets}; a lower rate, a shorter time or a larger mtu is cheaper"


def estimate(lab: Lab, plan: Plan, cores: int) -> Cost | None:
    """What a run of this lab costs on so many cores; None where nothing of it is known."""
    flows = list(_flows(lab, plan))
    if not flows:
        return None
    shared = _shared(flows)
    parts = sorted((_part(lab, flow, shared) for flow in flows), key=lambda part: part.core_s, reverse=True)
    end_s = max(part.flow.begin_s + part.flow.seconds for part in parts)
    if plan.stop_after_ns is not None:
        end_s = plan.stop_after_ns / 1e9
    tdf = math.inf if plan.time.watch is not None else float(plan.time.tdf.ratio)
    # Guests work side by side, as far as there are cores.
    side_by_side = min(len(plan.guests), cores)
    wanted_s = sum(part.core_s for part in parts) / side_by_side
    most_s = end_s * tdf
    busy_s = most_s if plan.time.drive == "wall" else min(wanted_s, most_s)
    if math.isinf(busy_s):
        return None
    host_s = BOOT_HOST_S + NODE_HOST_S * len(plan.nodes) + busy_s
    return Cost(host_s, end_s, parts, wanted_s / most_s if most_s else 0.0)


def _shared(flows: Sequence[Flow]) -> dict[tuple[str, str], int]:
    """How many flows go the same way at once, by flow and direction."""
    found: dict[tuple[str, str], int] = {}
    for flow in flows:
        beside = [
            other
            for other in flows
            if other.begin_s < flow.begin_s + flow.seconds and flow.begin_s < other.begin_s + other.seconds
        ]
        counts = Counter(direction.name for other in beside for direction in other.path.there)
        found |= {(flow.name, direction.name): counts[direction.name] for direction in flow.path.there}
    return found


def _part(lab: Lab, flow: Flow, shared: Mapping[tuple[str, str], int]) -> Part:
    rate = _rate(lab, flow, shared)
    bits = flow.path.there[0].frame_bits
    most = math.inf if flow.bytes is None else flow.bytes * 8
    packets = min(rate * flow.seconds, most) / bits
    seconds = min(flow.seconds, most / rate)
    core_s = packets * (PACKET_CORE_S + HOP_CORE_S * len(flow.path.there))
    return Part(replace(flow, seconds=seconds), rate, packets, core_s)


def _rate(lab: Lab, flow: Flow, shared: Mapping[tuple[str, str], int]) -> float:
    """What a flow gets, bit/s."""
    rates = [each.rate_bit_per_s / shared[flow.name, each.name] for each in flow.path.there if each.rate_bit_per_s]
    if flow.asked_bit_per_s is not None:
        rates.append(flow.asked_bit_per_s)
    round_trip_s = flow.path.delay_ns / 1e9
    if flow.is_tcp and round_trip_s:
        loss = 1 - math.prod(1 - _losses(lab).get(each.name, 0.0) for each in flow.path.there)
        if loss:
            rates.append(flow.connections * flow.path.there[0].frame_bits / round_trip_s * MATHIS / math.sqrt(loss))
        if not _has_large_buffers(lab, flow):
            rates.append(flow.connections * WINDOW_BYTES * 8 / round_trip_s)
    return min(rates, default=math.inf)


def _losses(lab: Lab) -> dict[str, float]:
    """Random losses by the interface that they are behind."""
    found = {}
    for link in without_lans(lab).links:
        for end, way in zip(link.endpoints, (link.a_to_b, link.b_to_a), strict=True):
            found[f"{end.node}:{end.interface}"] = effective(link, way).loss.random or 0.0
    return found


def _has_large_buffers(lab: Lab, flow: Flow) -> bool:
    return any("net/ipv4/tcp_wmem" in lab.nodes[node].sysctls for node in flow.path.ends if node in lab.nodes)


def _flows(lab: Lab, plan: Plan) -> Iterator[Flow]:
    known = directions(plan.nodes, plan.links, egresses(plan.course))
    by_name = {process.name: process for process in plan.processes}
    ends_s: dict[str, float] = {}
    for process in lab.run:
        begin_s = max([process.start_ns / 1e9, *(ends_s.get(name, 0.0) for name in process.after)])
        said = asked(process.argv)
        if said is None:
            continue
        ends = [end_ns / 1e9 - begin_s for end_ns in (process.stop_ns, plan.stop_after_ns) if end_ns is not None]
        ends += [process.timeout_ns / 1e9] if process.timeout_ns is not None else []
        seconds = max(0.0, min([said.seconds, *ends]))
        if seconds < math.inf:
            ends_s[process.name] = begin_s + seconds
        if not said.connections:
            continue
        client = [by_name[process.name]]
        for path in list(paths(known, pairs(talks(client, plan.hosts, plan.nodes), client)))[:1]:
            way = Path(path.ends[::-1], path.back, path.there) if said.is_reverse else path
            yield Flow(
                f"{process.on}/{process.name}",
                way,
                begin_s,
                seconds,
                said.bit_per_s,
                said.bytes,
                said.connections,
                is_tcp=said.is_tcp,
            )
