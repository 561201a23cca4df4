"""What lateness can spoil in a lab, from what its links promise to those who talk over them.

`dilaton.measure.verdict` says why these bounds. They are of paths, not of links: an access link of 100 us before a
way of 40 ms, or one of 10 Gbit/s before a bottleneck of 10 Mbit/s, asks for nothing by itself. Where nobody is known to
talk, each link counts by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dilaton.plan.course.entries import Timed
from dilaton.plan.forecast.asked import asked
from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES
from dilaton.plan.model import HostsEntry, Link, Node, Plan, Process
from dilaton.plan.network.conversations import Direction, Path, directions, egresses, pairs, paths, talks

DELAY_SHARE_MAX = 0.01
"""Packets may be late by this share of the smallest delay, the mean of the links of a path."""

WORK_DELAY_SHARE_MAX = 0.05
"""The same on the work drive. Packets leave and arrive at their instants there even when the CPU comes to them later,
so late is only what a timer asks of programs; and where one frame in a hundred from other guests is later, as many
round trips are off by a twentieth, which is what a result may be off by."""

FRAMES_MAX = 1.0
"""What they take on the fastest bottleneck."""

WAIT_ROUND_TRIPS = 0.25
"""Programs may wait for the CPU for this share of the round trip of their path."""

WAIT_QUEUES = 0.25
"""The same, of the time in which the path's shortest queue fills: it is mostly not empty when a burst comes."""

SMALLER_FRAMES = {"-M", "--set-mss", "-l", "--length"}
"""By which iperf3 is told to send less in a frame than fits."""

WAIT_NS_MIN = 100_000
"""A shorter wait is nothing, whatever the path."""


@dataclass(frozen=True)
class Network:
    """What the plan asks for that lateness can spoil; None where the lab has no such link.

    Attributes:
        delay_ns_min: The smallest delay that a direction of a link ever has, in the mean of those of a path, with
            `delay_link`, which has it, and says of which path.
        frame_ns_min: What a full frame takes at the highest rate that the bottleneck of a path ever has, with
            `frame_link`, which that is.
        offloaded: Interfaces with segmentation offload that do something to packets, each with its MTU.
        wait_ns_max: For how long programs may wait for the CPU, with `wait_path`, whose that is, and `wait_why`.
        tolerance_ns: The lateness up to which the lab minds none.
        delay_share_max: The share of the smallest delay that a timer in a hundred may be late by, 0..1.
    """

    delay_ns_min: float | None = None
    delay_link: str = ""
    frame_ns_min: float | None = None
    frame_link: str = ""
    offloaded: tuple[tuple[str, int], ...] = ()
    wait_ns_max: float | None = None
    wait_path: str = ""
    wait_why: str = ""
    tolerance_ns: int | None = None
    delay_share_max: float = DELAY_SHARE_MAX

    @property
    def late_ns_max(self) -> float | None:
        """What one timer in a hundred should not be later than, on any drive; None when lateness spoils nothing."""
        delay = None if self.delay_ns_min is None else self.delay_ns_min * DELAY_SHARE_MAX
        frame = None if self.frame_ns_min is None else self.frame_ns_min * FRAMES_MAX
        least = min((bound for bound in (delay, frame) if bound is not None), default=None)
        return least if least is None or self.tolerance_ns is None else max(least, self.tolerance_ns)


def network_of(plan: Plan, guest: str | None = None) -> Network:
    """What lateness can spoil of the links of a plan; with the name of a guest, lateness in that one."""
    asked = plan.time.lateness_ns
    found = used(plan.nodes, plan.links, plan.course, plan.processes, plan.hosts, guest, tolerance_ns=asked)
    return on_drive(found, plan.time.drive)


def on_drive(network: Network, drive: str) -> Network:
    """A network with the bounds that hold on a drive: `work`, `wall` or `event`."""
    return replace(network, delay_share_max=WORK_DELAY_SHARE_MAX) if drive == "work" else network


def used(
    nodes: Sequence[Node],
    links: Sequence[Link],
    course: Sequence[Timed],
    processes: Sequence[Process],
    hosts: Sequence[HostsEntry],
    guest: str | None = None,
    tolerance_ns: int | None = None,
) -> Network:
    """As `network_of`, of the links over which these programs talk, or of all links where none is known to."""
    of_links = promised(nodes, course, guest)
    named = talks(processes, hosts, nodes)
    found = list(paths(directions(nodes, links, egresses(course)), pairs(named, processes)))
    if not found:
        return replace(of_links, tolerance_ns=tolerance_ns)
    # A path that begins and ends elsewhere may lead through this guest, too.
    here = [path for path in found if guest is None or any(each.guest == guest for each in path.directions)]
    (delay_ns, delay_link), (frame_ns, frame_link) = _delay(here), _frame(here)
    full = _of_full_frames(named, processes)
    patience = (_patience(path, has_full_frames=path.ends in full) for path in here)
    wait_ns, wait_path, wait_why = min(patience, default=(None, "", ""))
    return Network(
        delay_ns_min=delay_ns,
        delay_link=delay_link,
        frame_ns_min=frame_ns,
        frame_link=frame_link,
        offloaded=of_links.offloaded,
        wait_ns_max=wait_ns,
        wait_path=wait_path,
        wait_why=wait_why,
        tolerance_ns=tolerance_ns,
    )


def _delay(found: Iterable[Path]) -> tuple[float | None, str]:
    """The smallest mean delay of a link on a path, one way, and what has it."""
    delays = []
    for path in found:
        for way in (path.there, path.back):
            if delay_ns := sum(each.delay_ns for each in way):
                smallest = min(way, key=lambda each: each.delay_ns).name
                where = smallest if len(way) == 1 else f"a link between {_said(path)}, {len(way)} of them in the mean"
                delays.append((delay_ns / len(way), where))
    return min(delays, default=(None, ""))


def _frame(found: Iterable[Path]) -> tuple[float | None, str]:
    """What a full frame takes on the fastest bottleneck of a path, and which that is."""
    slowest = (path.bottleneck() for path in found)
    frames = ((one.frame_bits * 1e9 / one.rate_bit_per_s, one.name) for one in slowest if one and one.rate_bit_per_s)
    return min(frames, default=(None, ""))


def _of_full_frames(named: Iterable[tuple[str, str, str]], processes: Iterable[Process]) -> set[tuple[str, str]]:
    """Who talks by flows of TCP alone whose frames are full, to whom."""
    by_name = {(process.node, process.name): process for process in processes}
    full: dict[tuple[str, str], bool] = {}
    for name, one, other in named:
        full[one, other] = full.get((one, other), True) and _is_full(by_name[one, name])
    return {ends for ends, are in full.items() if are}


def _is_full(process: Process) -> bool:
    found = asked(process.argv)
    return found is not None and found.connections > 0 and found.is_tcp and not SMALLER_FRAMES & {*process.argv}


def _patience(path: Path, *, has_full_frames: bool) -> tuple[float, str, str]:
    """Returns for how long those at the ends of a path may wait for the CPU, the path, and why."""
    queue = path.shortest_queue()
    bounds = [(path.delay_ns * WAIT_ROUND_TRIPS, f"a round trip takes {_ms(path.delay_ns)}")]
    if has_full_frames:
        round_trip_ns = path.delay_ns + path.frame_ns()
        bounds = [(round_trip_ns * WAIT_ROUND_TRIPS, f"a full frame and its answer take {_ms(round_trip_ns)}")]
    if queue is not None:
        bounds.append((queue[0] * WAIT_QUEUES, f"the queue of {queue[1].name} fills in {_ms(queue[0])}"))
    wait_ns, why = min(bounds)
    return max(wait_ns, WAIT_NS_MIN), _said(path), why


def _said(path: Path) -> str:
    return " and ".join(path.ends)


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"


def network_to(plan: Plan, guest: str) -> Network:
    """As `network_of`, of what other guests send to this one over wires.

    A frame that is late on a wire makes the whole way longer by that, and each wire of it adds its own: so the delay is
    that of a way, divided by its wires. It is one way and no round trip, which takes twice as long: but on the way back
    frames may be late as well.
    """
    guests = {node.name: node.guest for node in plan.nodes}
    named = talks(plan.processes, plan.hosts, plan.nodes)
    found = paths(directions(plan.nodes, plan.links, egresses(plan.course)), pairs(named, plan.processes))
    here: list[Path] = []
    delays: list[tuple[float, str]] = []
    for path in found:
        for way in (path.there, path.back):
            wires = [each for each in way if each.guest != guests[each.other]]
            if not any(guests[each.other] == guest for each in wires):
                continue
            here.append(path)
            if delay_ns := sum(each.delay_ns for each in way):
                delays.append((delay_ns / len(wires), _way_said(way, len(wires))))
    if not here:
        return _of_wires_to(plan, guest)
    (delay, delay_link), (frame_ns, frame_link) = min(delays, default=(None, "")), _frame(here)
    return Network(delay, delay_link, frame_ns, frame_link)


def _way_said(way: Sequence[Direction], wires: int) -> str:
    """A way, as a reason names it."""
    if len(way) == 1:
        return way[0].name
    said = f"the way from {way[0].node} to {way[-1].other}"
    return said if wires == 1 else f"{said}, for each of its {wires} wires"


def _of_wires_to(plan: Plan, guest: str) -> Network:
    """As `network_to`, each link by itself."""
    links = {wire.link for wire in plan.wires if guest in {end.guest for end in wire.ends}}
    ends = {(end.node, end.interface) for link in plan.links if link.name in links for end in link.ends}

    def senders(node: Node) -> Node:
        interfaces = [interface for interface in node.interfaces if (node.name, interface.name) in ends]
        return node.model_copy(update={"interfaces": interfaces})

    return promised([senders(node) for node in plan.nodes if node.guest != guest], plan.course)


def promised(nodes: Iterable[Node], course: Iterable[Timed], guest: str | None = None) -> Network:
    """As `network_of`, of all links between these nodes, each by itself, that become what this course says."""
    later = egresses(course)
    delays: list[tuple[int, str]] = []
    frames: list[tuple[float, str]] = []
    offloaded: list[tuple[str, int]] = []
    for node in nodes:
        if guest not in (None, node.guest):
            continue
        for interface in node.interfaces:
            name = f"{node.name}:{interface.name}"
            states = [interface.egress, *later.get((node.name, interface.name), [])]
            delays += [(delay_ns, name) for one in states if (delay_ns := one.delay_ns + interface.wire_delay_ns)]
            bits = (interface.mtu + ETHERNET_HEADER_BYTES) * 8
            frames += [(bits * 1e9 / rate, name) for one in states if (rate := one.rate_bit_per_s)]
            if interface.offload and any(one.qdiscs or one.drops for one in states):
                offloaded.append((name, interface.mtu))
    delay, frame = min(delays, default=(None, "")), min(frames, default=(None, ""))
    return Network(delay[0], delay[1], frame[0], frame[1], tuple(offloaded))
