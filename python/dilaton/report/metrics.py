"""What can be compared between runs: sets of values by name, each with its unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dilaton.measure.layouts import TCP
from dilaton.measure.packets.tcp import flow_packets, tcp_flows, times_between_packets
from dilaton.measure.statistics import TESTED_MIN
from dilaton.run.loading import Run

SCALARS = {
    "throughput": "bit/s",
    "sent_throughput": "bit/s",
    "retransmits": "",
    "loss": "",
    "outage": "s",
    "jitter_s": "s",
    "fairness": "",
    "requests": "",
    "errors": "",
    "requests_per_s": "",
    "iops": "",
    "packets_per_s": "",
}
"""Numbers in results of programs, with their units."""


@dataclass(frozen=True)
class Metric:
    """Values of one kind, finite, as an array.

    Attributes:
        name, unit: Of the values.
        values: In the order in which they were measured.
        t_s: Their instants in virtual time; None: they are no samples.
        whose: Numbers that tell the connections apart whose values they are; None: of one.
    """

    name: str
    unit: str
    values: Any
    t_s: Any = None
    whose: Any = None

    def places(self) -> Any:
        """Where the values are: their instants, or else the share of values that come before each."""
        return np.arange(len(self.values)) / len(self.values) if self.t_s is None else self.t_s

    def means(self) -> tuple[Any, Any]:
        """All places that have values, in order, and the mean at each."""
        places, numbers = np.unique(self.places(), return_inverse=True)
        return places, np.bincount(numbers, self.values) / np.bincount(numbers)


def metrics_of(run: Run) -> dict[str, Metric]:
    """Everything of a run that can be compared, by name."""
    found = [*_of_processes(run), *_of_samples(run), *_of_captures(run)]
    return {metric.name: metric for metric in found if len(metric.values)}


def scalars_of(result: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """The single numbers in a result: name, unit, value."""
    for name, unit in SCALARS.items():
        if isinstance(result.get(name), int | float):
            yield name, unit, float(result[name])
    for group in ("rtt", "latency"):
        for name, value in (result.get(group) or {}).items():
            if isinstance(value, int | float):
                yield f"{group}.{name}", "s", float(value)
    for name, own in (result.get("own") or {}).items():
        yield name, "" if own["unit"] == "1" else own["unit"], float(own["value"])


def _of_processes(run: Run) -> Iterator[Metric]:
    for process in run.record.processes:
        result = process.result or {}
        samples = result.get("samples") or []
        intervals = [part["throughput"] for part in result.get("intervals") or []]
        yield _metric(f"{process.name} {'rtt' if 'rtt' in result else 'latency'}", "s", samples)
        yield _metric(f"{process.name} interval throughput", "bit/s", intervals)
        for name, unit, value in scalars_of(result):
            # A mean of samples is in their distribution.
            if not (samples and name.startswith(("rtt.", "latency."))):
                yield _metric(f"{process.name} {name}", unit, [value])


def _of_samples(run: Run) -> Iterator[Metric]:
    for (node, interface), rows in run.interfaces.groupby(["node", "interface"]):
        for column, what, unit in (("tx_bit_per_s", "sent", "bit/s"), ("queue_packets", "queue", "packets")):
            yield _series(f"{node}:{interface} {what}", unit, rows, column)
    # The larger port is, as a rule, a client's, which the kernel chose and another run has not.
    ports = run.tcp[["source_port", "destination_port"]]
    tcp = run.tcp.assign(port=ports.min(axis=1), is_client=ports.destination_port < ports.source_port)
    # A connection learns from what is acknowledged; otherwise it only repeats what it knew.
    learned = tcp.assign(whose=tcp.groupby(list(TCP.key)).ngroup())[tcp.goodput_bit_per_s > 0]
    for (node, is_client, port), rows in learned.groupby(["node", "is_client", "port"]):
        if len(rows) < TESTED_MIN:
            continue
        for column, what, unit, scale in (("cwnd_packets", "cwnd", "packets", 1.0), ("rtt_us", "srtt", "s", 1e-6)):
            yield _series(f"{node} tcp {'to' if is_client else 'from'} port {port} {what}", unit, rows, column, scale)


def _of_captures(run: Run) -> Iterator[Metric]:
    for capture in run.captures:
        packets = run.capture(capture)
        flows = tcp_flows(packets.table)
        if len(flows):
            flow = flow_packets(packets.table, packets.sack, flows.iloc[0])
            yield _metric(f"{capture} time between packets", "s", times_between_packets(flow))
        run.forget_packets()


def _series(name: str, unit: str, rows: pd.DataFrame, column: str, scale: float = 1.0) -> Metric:
    kept = rows[rows[column].notna()]
    whose = kept.whose.to_numpy() if "whose" in kept else None
    return Metric(name, unit, kept[column].to_numpy(dtype=float) * scale, kept.t_s.to_numpy(), whose)


def _metric(name: str, unit: str, values: Any) -> Metric:
    array = np.asarray(values, dtype=float)
    return Metric(name, unit, array[np.isfinite(array)])
