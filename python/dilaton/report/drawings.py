"""All figures of a run. What cannot be drawn, since it is damaged, is told; what was not measured is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dilaton.measure.operations.sources import intervals_of
from dilaton.measure.packets.tcp import FLOW, flow_packets, round_trips, tcp_flows, times_between_packets
from dilaton.plan.network.bounds import network_of
from dilaton.report.figures.adaptation import draw_adaptation
from dilaton.report.figures.bands import Band, processes_of
from dilaton.report.figures.clocks import draw_clocks
from dilaton.report.figures.distributions import draw_lateness, ecdfs
from dilaton.report.figures.marks import marks_of
from dilaton.report.figures.names import flow_name, names_of
from dilaton.report.figures.sequence import draw_flow
from dilaton.report.figures.series import draw_interfaces, draw_intervals, draw_nodes, draw_tcp
from dilaton.report.figures.served import draw_flows, draw_percentiles, draw_requests, latencies
from dilaton.report.figures.topology import draw_topology
from dilaton.report.style import Drawing
from dilaton.run.loading import Run
from dilaton.run.record.record import RecordError

FLOWS_MAX = 3
"""How many flows of each capture are drawn: those with most data."""

FLOW_SHARE_MIN = 0.01
"""Flows with less than this share of the data of a capture's largest flow are not drawn."""


def draw(run: Run) -> tuple[list[Drawing], list[str]]:
    """Draws everything that a run has: the network, then what its programs measured, then what explains it.

    Returns:
        The figures, and what is missing: `Run.missing` and what was damaged.
    """
    drawings: list[Drawing] = []
    damaged: list[str] = []
    for part in (_network, _processes, _samples, _captures, _clock):
        try:
            drawings.extend(part(run))
        except RecordError as error:
            damaged.append(str(error))
    # What is damaged is met again by every figure that needs it.
    return drawings, list(dict.fromkeys(run.missing + damaged))


def _network(run: Run) -> Iterator[Drawing]:
    if run.plan and run.plan.nodes:
        try:
            interfaces = run.interfaces
        except RecordError:
            # Told where samples are drawn.
            interfaces = None
        yield draw_topology(run.plan, interfaces)


def _samples(run: Run) -> Iterator[Drawing]:
    bands = _bands(run)
    yield from draw_interfaces(run.interfaces, bands)
    yield from draw_tcp(run.tcp, bands, names_of(run.plan))
    yield from draw_nodes(run.nodes, bands)


def _bands(run: Run) -> list[Band]:
    return processes_of(run.processes, run.record.time.virtual_s) + _marks(run)


def _marks(run: Run) -> list[Band]:
    """What happened, and when the fidelity of a run that was watched was out of bounds."""
    adaptation = run.record.fidelity.adaptation if run.record.fidelity else None
    spans = adaptation.out_of_bounds if adaptation else []
    marks = marks_of(run.events, run.record.time.virtual_s)
    return marks + [Band("", span.begin_s, span.end_s, "out of bounds") for span in spans]


def _marks_if_known(run: Run) -> list[Band]:
    """The marks of a run, or none where they are damaged, which is told where samples are drawn."""
    try:
        return _marks(run)
    except RecordError:
        return []


def _captures(run: Run) -> Iterator[Drawing]:
    marks, names = _marks_if_known(run), names_of(run.plan)
    for capture in run.captures:
        packets = run.capture(capture)
        trips: dict[str, Any] = {}
        gaps: dict[str, Any] = {}
        known = tcp_flows(packets.table)
        flows = known.head(FLOWS_MAX)
        flows = flows[flows.payload_bytes >= FLOW_SHARE_MIN * flows.payload_bytes.max()]
        which = f"of the {len(flows)} largest of {len(known)} flows" if len(flows) < len(known) else "of the flows"
        for number, row in enumerate(flows.to_dict("records"), 1):
            flow = replace(flow_packets(packets.table, packets.sack, row), name=flow_name(names, *_ends(row)))
            yield draw_flow(flow, capture, number, marks)
            if _shows_sending(run, capture):
                trips[flow.name] = round_trips(flow).rtt_s.to_numpy()
            gaps[flow.name] = times_between_packets(flow)
        del packets
        run.forget_packets()
        name = capture.replace(":", "-").lower()
        if any(map(len, trips.values())):
            caption = f"Times from segments to their acknowledgements, {which} captured on {capture}."
            yield ecdfs(f"rtt-{name}", f"Round trips, {capture}", caption, trips, "round-trip time", "s")
        if any(map(len, gaps.values())):
            caption = f"Time from each segment with data to the next, {which} captured on {capture}."
            yield ecdfs(f"gaps-{name}", f"Time between packets, {capture}", caption, gaps, "time between packets", "s")


def _ends(flow: dict[Any, Any]) -> tuple[str, int, str, int]:
    source, source_port, destination, destination_port = (flow[column] for column in FLOW)
    return source, source_port, destination, destination_port


def _shows_sending(run: Run, capture: str) -> bool:
    """Whether packets were captured when they were sent: behind queue disciplines, that is, behind the link, they were
    captured when they arrived, and the time from there to the answer is no round trip."""
    node, _, name = capture.partition(":")
    nodes = {each.name: each for each in run.plan.nodes} if run.plan else {}
    found = [each for each in nodes[node].interfaces if each.name == name] if node in nodes else []
    return bool(found) and not found[0].egress.qdiscs


def _processes(run: Run) -> Iterator[Drawing]:
    results = {process.name: process.result or {} for process in run.record.processes}
    kinds = (
        ("rtt", "Round trips", "round-trip time", "Round-trip times"),
        ("latency", "Latency", "latency", "Latencies"),
    )
    for key, title, label, words in kinds:
        # A single value is no distribution; the table of processes has it.
        known = {name: each.get("samples") or [] for name, each in results.items() if key in each}
        samples = {name: values for name, values in known.items() if len(values) > 1}
        if samples:
            yield ecdfs(
                f"programs-{key}", f"{title}, by program", f"{words} that programs printed.", samples, label, "s"
            )
    if percentiles := list(latencies(results)):
        yield draw_percentiles(percentiles)
    flows = [
        (f"{name} {flow['from']} > {flow['to']}", flow)
        for name, each in results.items()
        for flow in each.get("flows", ())
        if None not in flow["latency"].values()
    ]
    if flows:
        yield draw_flows(flows)
    if logs := {name: each["per_second"] for name, each in results.items() if each.get("per_second")}:
        yield draw_requests(logs)
    intervals = {each.name: intervals_of(each.result or {}, each.end_s or 0.0) for each in run.record.processes}
    if measured := {name: parts for name, parts in intervals.items() if parts}:
        yield draw_intervals(measured, _marks_if_known(run))


def _clock(run: Run) -> Iterator[Drawing]:
    fidelity = run.record.fidelity
    if fidelity and sum(fidelity.lateness_ns_counts) and run.plan:
        yield draw_lateness(fidelity.lateness_ns_counts, network_of(run.plan))
    if len(run.epochs) and run.plan:
        bound_ns = network_of(run.plan).late_ns_max
        yield draw_adaptation(run.epochs, None if bound_ns is None else bound_ns / 1e3, _bands(run))
    if len(run.clock) > 1:
        yield draw_clocks(run.clock)
