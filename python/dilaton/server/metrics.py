"""How the server itself is doing, for Prometheus: requests, runs by their state, who is there, memory."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from dilaton.server.database.store import Store
from dilaton.server.database.tables import LabRow, Person, RunRow, SessionRow
from dilaton.server.runs.terminals import Terminals

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """All figures of one server."""

    def __init__(self, store: Store, terminals: Terminals) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Kept(store, terminals))
        self._requests = Counter(
            "dilaton_server_requests", "Requests that were answered.", ["method", "status"], registry=self.registry
        )
        self._answers = Histogram(
            "dilaton_server_answer_seconds",
            "Host time from a request to the beginning of its answer.",
            buckets=BOUNDS_S,
            registry=self.registry,
        )

    def count(self, method: str, status: int, host_s: float) -> None:
        """A request was answered. A method of nobody's is counted as `other`, since each name is kept for good."""
        known = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
        self._requests.labels(known, str(status)).inc()
        self._answers.observe(host_s)


class _Kept(Collector):
    """What the database and the process say when they are asked."""

    def __init__(self, store: Store, terminals: Terminals) -> None:
        self._store, self._terminals = store, terminals

    def collect(self) -> Iterable[Metric]:
        """All of it, as it is now."""
        runs = GaugeMetricFamily("dilaton_server_runs", "Runs that are kept, by their state.", labels=["state"])
        with self._store.reading() as session:
            for state, count in session.execute(select(RunRow.state, func.count()).group_by(RunRow.state)):
                runs.add_metric([state], count)
            counted = [
                (name, words, session.scalar(select(func.count()).select_from(table)) or 0)
                for name, words, table in (
                    ("labs", "Labs that are kept.", LabRow),
                    ("people", "Accounts.", Person),
                    ("sessions", "Logins that have not ended.", SessionRow),
                )
            ]
        yield runs
        for name, words, count in (*counted, ("terminals", "Terminals that are open.", len(self._terminals))):
            yield GaugeMetricFamily(f"dilaton_server_{name}", words, count)
        yield GaugeMetricFamily("dilaton_server_memory_bytes", "Memory of the server's process.", _memory_bytes())


def _memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
