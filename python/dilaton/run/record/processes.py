"""Tells from the events of a run what became of each process. Pure, but for regular expressions: reading
outputs is handed in."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dilaton.host.messages import (
    Ended,
    Event,
    Exited,
    OfProcess,
    ProcessReady,
    ReadyTimeout,
    Signalled,
    Skipped,
    Started,
    StartFailed,
)
from dilaton.measure import results
from dilaton.measure.results import own as own_results
from dilaton.plan.model import OwnMetric, Plan, Process
from dilaton.run.record.matching import find_all
from dilaton.run.record.model import ProcessRecord

LAST_LINES = 10
"""How many last lines of standard error are looked at for last words."""

LAST_WORDS_MAX = 200
"""Characters of them."""

ReadOutput = Callable[[str], str]
"""Reads the file at a path relative to the run directory; what is not there is empty."""


def processes_from_events(
    plan: Plan, events: Iterable[Event], read_output: ReadOutput | None = None
) -> list[ProcessRecord]:
    """Tells what became of every process of a plan.

    Args:
        plan: What was run.
        events: What happened, in order; what is about no process is passed over.
        read_output: With it, results are read from the standard output of processes that have ended, and the last words
            of those that failed from their standard error.

    Returns:
        A record for each process, in the order of the plan.

    Raises:
        KeyError: an event is of a process that is not in the plan.
    """
    found: dict[str, dict[str, Any]] = {process.name: {} for process in plan.processes}
    for event in events:
        if isinstance(event, OfProcess):
            fields = found[event.process]
            fields.update(_changes(event, fields))
    return [
        _record(process, found[process.name], read_output, plan.results.get(process.name, {}))
        for process in plan.processes
    ]


def _changes(event: OfProcess, before: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that an event sets."""
    match event:
        case Started() if "start_s" not in before:
            return {"outcome": "running", "start_s": event.t_ns / 1e9}
        case Started():
            not_ended = {"end_s": None, "exit": None, "signal": None, "stopped": False}
            return {"outcome": "running", "restarts": before.get("restarts", 0) + 1, **not_ended}
        case ProcessReady() if "ready_s" not in before:
            return {"ready_s": event.t_ns / 1e9}
        case StartFailed(reason=reason) | Skipped(reason=reason):
            return {"outcome": event.tag, "reason": reason}
        case ReadyTimeout(reason=reason):
            return {"reason": f"not ready: {reason}"}
        case Exited(status=status):
            return {"outcome": "exited", "exit": status, "signal": None, **_end(event, before)}
        case Signalled(signal=signal):
            return {"outcome": "signalled", "exit": None, "signal": signal, **_end(event, before)}
    return {}


def _end(event: Ended, before: Mapping[str, Any]) -> dict[str, Any]:
    """What holds of every end."""
    changes = {
        "end_s": event.t_ns / 1e9,
        "stopped": event.stopped,
        # One that was not ready in time is stopped, and its end by that is no success.
        "expected": event.expected and "reason" not in before,
    }
    return changes | ({"reason": "timed out"} if event.timed_out else {})


def _record(
    process: Process, fields: dict[str, Any], read_output: ReadOutput | None, own: Mapping[str, OwnMetric]
) -> ProcessRecord:
    result = None
    if read_output and fields.get("end_s") is not None:
        if results.is_parsed(process.argv):
            result = results.parse(process.argv, read_output(process.stdout))
        if own:
            result = (result or {}) | _own(own, read_output(process.stdout))
        if not fields["expected"] and "reason" not in fields:
            fields = fields | {"reason": _last_words(read_output(process.stderr))}
    return ProcessRecord(name=process.name, node=process.node, argv=process.argv, result=result, **fields)


def _own(own: Mapping[str, OwnMetric], stdout: str) -> dict[str, Any]:
    """What a lab itself wants read, or why that cannot be."""
    try:
        return {"own": own_results.read(own, stdout, find_all)}
    except own_results.UnreadableError as error:
        return {"error": f"results: {error}"}


def _last_words(output: str) -> str | None:
    """The last line of a program's standard error, where most say why they failed."""
    lines = output.split("\n")[-LAST_LINES:]
    words = next((line.strip() for line in reversed(lines) if line.strip()), None)
    return words and textwrap.shorten(words, LAST_WORDS_MAX, placeholder=" …")
