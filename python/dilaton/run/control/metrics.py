"""A run that goes on, for Prometheus: `dilaton run --metrics PORT`.

Each scrape asks the run, as any client of its control socket does, and reads the latest samples, so that nothing is
kept and nothing runs between scrapes. Only programs of this machine can connect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from dilaton.measure.recent import Row
from dilaton.run.control.answers import STATUS, Clock, ProcessShown, Timeliness
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.run.control.status import clock_of, recent_samples

ADDRESS = "127.0.0.1"

INTERFACE_METRICS = (
    ("receive_bytes", "rx_bytes", "Bytes that arrived at an interface."),
    ("transmit_bytes", "tx_bytes", "Bytes that left an interface."),
    ("receive_packets", "rx_packets", "Packets that arrived at an interface."),
    ("transmit_packets", "tx_packets", "Packets that left an interface."),
    ("queue_drops", "queue_drops", "Packets that the queue of an interface dropped."),
    ("lost_packets", "lost_packets", "Packets that the loss of a link took."),
)
"""Counters: name, column of the samples, meaning."""

QUEUE_METRICS = (
    ("queue_packets", "Packets that wait in the queue of an interface."),
    ("queue_bytes", "Bytes that wait in the queue of an interface."),
)


@contextlib.contextmanager
def serve_metrics(run_dir: Path, port: int) -> Iterator[int]:
    """Answers scrapes at `http://127.0.0.1:<port>/metrics` as long as the context lasts.

    Args:
        run_dir: The run directory, which need not be there yet.
        port: Where; 0: any that is free.

    Yields:
        The port.

    Raises:
        OSError: the port is taken, or not allowed.
    """
    registry = CollectorRegistry(auto_describe=False)
    server, thread = start_http_server(port, ADDRESS, registry)
    try:
        registry.register(RunCollector(run_dir))
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class RunCollector(Collector):
    """What a scrape of a run gives."""

    def __init__(self, run_dir: Path) -> None:
        """Collects from the run in `run_dir`."""
        self._run_dir = run_dir

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is depends on the lab."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All that is known of the run now."""
        try:
            with Client(self._run_dir) as client:
                status = client.request(STATUS)
        except ControlError:
            yield _gauge("dilaton_up", "Whether the clock of the run has been released, and not yet ended.", 0)
            return
        yield _gauge("dilaton_up", "Whether the clock of the run has been released, and not yet ended.", 1)
        yield from _clock(clock_of(status), status["fidelity"])
        yield from _processes(status["processes"])
        yield from _interfaces(recent_samples(self._run_dir, "interfaces"))
        yield from _nodes(recent_samples(self._run_dir, "nodes"))


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=value)


def _clock(clock: Clock, fidelity: Timeliness) -> Iterator[Metric]:
    yield CounterMetricFamily("dilaton_virtual_seconds", "Virtual time since the run's virtual 0.", clock["virtual_s"])
    yield CounterMetricFamily("dilaton_host_seconds", "Host time since the release of the clock.", clock["host_s"])
    yield _gauge("dilaton_tdf", "Time dilation factor: host seconds per virtual second.", clock["tdf"])
    yield _gauge("dilaton_held", "Whether virtual time stands still.", float(clock["held"]))
    if fidelity["busy"] is not None:
        yield _gauge("dilaton_guest_busy_ratio", "Busy part of the busiest guest's virtual time.", fidelity["busy"])
    counts = fidelity["lateness_ns_counts"]
    # Bin i of the clock's histogram holds what is less than 2^i ns late.
    reached = [sum(counts[: number + 1]) for number in range(len(counts))]
    buckets = [(f"{(1 << number) / 1e9:.9g}", float(count)) for number, count in enumerate(reached)]
    yield HistogramMetricFamily(
        "dilaton_timer_lateness_seconds",
        "Virtual time between when a timer was due and when the guest served it.",
        buckets=[*buckets, ("+Inf", float(fidelity["timers"]))],
        sum_value=None,
    )


def _processes(shown: Iterable[ProcessShown]) -> Iterator[Metric]:
    running = GaugeMetricFamily(
        "dilaton_process_running", "Whether a process of the lab runs.", labels=("node", "process")
    )
    for process in shown:
        running.add_metric([process["node"], process["name"]], float(process["outcome"] == "running"))
    yield running


def _interfaces(rows: list[Row]) -> Iterator[Metric]:
    labels = ("node", "interface")
    for name, column, meaning in INTERFACE_METRICS:
        yield _filled(CounterMetricFamily(f"dilaton_interface_{name}", meaning, labels=labels), rows, labels, column)
    for name, meaning in QUEUE_METRICS:
        yield _filled(GaugeMetricFamily(f"dilaton_interface_{name}", meaning, labels=labels), rows, labels, name)


def _nodes(rows: list[Row]) -> Iterator[Metric]:
    cpu = CounterMetricFamily("dilaton_node_cpu_seconds", "CPU time of a node, virtual.", labels=("node",))
    yield _filled(cpu, rows, ("node",), "cpu_ns", 1e-9)
    memory = GaugeMetricFamily("dilaton_node_memory_bytes", "Memory of a node.", labels=("node",))
    yield _filled(memory, rows, ("node",), "memory_bytes")


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily,
    rows: list[Row],
    labels: tuple[str, ...],
    column: str,
    scale: float = 1.0,
) -> Metric:
    for row in rows:
        if (value := row.get(column)) is not None:
            family.add_metric([str(row[label]) for label in labels], value * scale)
    return family
