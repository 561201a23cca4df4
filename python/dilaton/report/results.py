"""The results of a run by which it is confirmed: what its programs measured, when they were done, how they ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dilaton.measure.results import ping
from dilaton.measure.results.command import unwrap
from dilaton.plan.network.bounds import network_of
from dilaton.plan.network.conversations import spoken
from dilaton.report.confirmation import Measured
from dilaton.report.metrics import Metric, metrics_of
from dilaton.run.loading import Run

START_S = 0.010
"""A difference of a program's time up to this does not matter. It takes as long to start programs as the CPU is fast,
and a tick of the guest's kernel (HZ = 100) is nothing to one."""

QUEUE_PACKETS = 1.0

LEFT_OUT = (" retransmits", " sent_throughput", " loss")
"""Metrics that say again what another one says, or that are small numbers, of which a share means nothing."""

JITTER = " jitter_s"
UNSTEADY = (JITTER,)
"""Metrics that are a running estimate: where a run happens to end says as much as how it went."""

ALL = "all throughput"


def results_of(run: Run, tolerance: float) -> Measured:
    """The results of a run that has ended.

    Args:
        run: That.
        tolerance: A relative difference up to this does not matter, 0..1.
    """
    found = {name: each for name, each in metrics_of(run).items() if not name.endswith(LEFT_OUT)}
    samples = set(found) - {name for name in found if _is_of_a_process(name, run)}
    found |= {each.name: each for each in _further(run)}
    throughputs = [name for name in found if name.endswith(" throughput") and not name.endswith("interval throughput")]
    decisive = {name for name in found if name not in samples and not name.endswith(UNSTEADY)}
    if len(throughputs) > 1:
        total = sum(float(found[name].values[0]) for name in throughputs)
        found[ALL] = _single(ALL, "bit/s", total)
        # What each gets of what all get is chance in most labs.
        decisive -= {name for name in decisive if "throughput" in name}
        decisive.add(ALL)
    return Measured(found, frozenset(decisive), _least(run, found, tolerance))


def _further(run: Run) -> Iterator[Metric]:
    """What is a result of a process, besides what it has measured; and of the checks."""
    for process in run.record.processes:
        result = process.result or {}
        if isinstance(loss := result.get("loss"), int | float):
            # A share of the losses would make much of one packet of a thousand.
            yield _single(f"{process.name} delivered", "", 1.0 - loss)
        yield _single(f"{process.name} done", "", float(process.expected and not process.stopped))
        is_measured = bool(process.result) and "error" not in result
        if process.start_s is not None and process.end_s is not None and not process.stopped and not is_measured:
            yield _single(f"{process.name} time", "s", process.end_s - process.start_s)
    for check in run.record.checks:
        yield _single(f"check {check.text}", "", float(check.passed))


def _least(run: Run, found: dict[str, Metric], tolerance: float) -> dict[str, float]:
    """Up to which difference results do not matter: times, what the verdict lets timers be late by, as a rule."""
    late_ns = network_of(run.plan).late_ns_max if run.plan else None
    least = {name: (late_ns or 0.0) / 1e9 for name, each in found.items() if each.unit == "s"}
    least |= {name: START_S for name in found if name.endswith(" time") and found[name].unit == "s"}
    least |= {name: known_s for name, known_s in _outages(run) if name in found}
    least |= {name: max(least[name], tolerance * way_s) for name, way_s in _round_trips(run) if name in found}
    return least | {name: QUEUE_PACKETS for name, each in found.items() if each.unit == "packets"}


def _outages(run: Run) -> Iterator[tuple[str, float]]:
    """Of each ping how well it knows for how long nobody answered: to the interval of its requests, seconds."""
    for process in run.plan.processes if run.plan else ():
        program, arguments = unwrap(process.argv)
        if program == "ping" and (asked := ping.requests(arguments)) is not None:
            yield f"{process.name} outage", asked.every_ns / 1e9


def _round_trips(run: Run) -> Iterator[tuple[str, float]]:
    """Of the jitter of each process the round trip without queues of the shortest of its paths, seconds.

    Jitter is by how much transit times differ (RFC 3550, section 6.4.1). On an empty path that is what programs wait
    for the CPU, some microseconds, and others at each TDF. It changes a round trip by no more than itself, and up to
    its tolerance a round trip is the same.
    """
    if (plan := run.plan) is None:
        return
    for (_, name), paths in spoken(plan.processes, plan.hosts, plan.nodes, plan.links, plan.course).items():
        if paths:
            yield f"{name}{JITTER}", min(path.delay_ns for path in paths) / 1e9


def _is_of_a_process(name: str, run: Run) -> bool:
    return any(name.startswith(f"{process.name} ") for process in run.record.processes)


def _single(name: str, unit: str, value: float) -> Metric:
    return Metric(name, unit, np.array([value]))
