"""What became of a process and what happened in a run, in a few words, for the terminal and for reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from dilaton.host.messages import (
    Began,
    CaptureEnded,
    Ended,
    Event,
    Exited,
    LinkChanged,
    LoadUndone,
    MemoryShort,
    OfFault,
    OfProcess,
    SamplingEnded,
    Signalled,
    Spinning,
    Undone,
)
from dilaton.measure import numbers
from dilaton.run.record.events import FaultSteered, LinkBecame, LinkSteered, OfSession, SessionEnded
from dilaton.run.record.model import ProcessRecord, Record


def command(process: ProcessRecord) -> str:
    """The command of a process as a shell would take it, so with quotes where its words need them."""
    return shlex.join(process.argv)


def outcome(process: ProcessRecord) -> str:
    """What a process measured, or else how it ended."""
    try:
        measured = _measured(process.result or {})
    except (TypeError, ValueError, KeyError, AttributeError):
        # A record may have been written by anybody.
        measured = "a result that cannot be read"
    if measured is not None:
        return measured
    if process.expected and process.stopped:
        return "stopped"
    if process.expected and process.exit == 0:
        if process.start_s is None or process.end_s is None:
            return "done"
        return f"done in {numbers.duration(process.end_s - process.start_s)}"
    if process.expected and process.exit is not None:
        return f"exit status {process.exit}, as expected"
    return process.outcome if process.exit is None else f"{process.outcome} with {process.exit}"


def _measured(result: Mapping[str, Any]) -> str | None:
    """A result in words; None where there is nothing of it to say."""
    if "error" in result:
        return str(result["error"])
    if "throughput" in result and "sent_throughput" in result:
        back = result.get("reverse")
        return _carried(result) + (f"; back {_carried(back)}" if back else "")
    if "rtt" in result:
        loss = f", loss {numbers.ratio(result['loss'])}" if result["loss"] else ""
        rtt = result["rtt"]
        if rtt is None:
            return f"no reply{loss}"
        least, most = numbers.duration(rtt["min"]), numbers.duration(rtt["max"])
        return f"RTT {numbers.duration(rtt['avg'])} ({least} to {most}){loss}"
    if any(name in result for name in ("requests", "iops", "packets_per_s")):
        return _served(result)
    if own := result.get("own"):
        return ", ".join(f"{name} {_own(**value)}" for name, value in own.items())
    return None


def _own(value: float, unit: str) -> str:
    """A number that the lab itself wanted read."""
    match unit:
        case "s":
            return numbers.duration(value)
        case "bit/s":
            return numbers.rate(value)
        case "1":
            return numbers.ratio(value)
    return numbers.significant(value)


def _carried(direction: Mapping[str, Any]) -> str:
    """What a direction of a test of throughput measured."""
    parts = [numbers.rate(direction["throughput"])]
    if direction.get("retransmits") is not None:
        parts.append(f"{direction['retransmits']} retransmitted")
    if direction.get("loss"):
        parts.append(f"loss {numbers.ratio(direction['loss'])}")
    return ", ".join(parts)


def _served(result: Mapping[str, Any]) -> str:
    """What a program that asks or serves measured."""
    parts = [numbers.counted(result["requests"], "request")] if result.get("requests") is not None else []
    parts += [
        f"{numbers.significant(result[name])} {word}"
        for name, word in (("requests_per_s", "requests/s"), ("iops", "IOPS"))
        if result.get(name) is not None
    ]
    if result.get("throughput"):
        parts.append(numbers.rate(result["throughput"]))
    latency = result.get("latency") or {}
    if latency.get("avg") is not None and latency.get("max") is not None:
        most = f" (to {numbers.duration(latency['max'])})" if latency["max"] > latency["avg"] else ""
        parts.append(f"latency {numbers.duration(latency['avg'])}{most}")
    if result.get("loss"):
        parts.append(f"loss {numbers.ratio(result['loss'])}")
    if errors := result.get("errors"):
        parts.append(numbers.counted(errors, "error"))
    return ", ".join(parts)


def from_outside(record: Record) -> str:
    """By what a run was influenced from outside; empty: by nothing."""
    each = [
        f"the network of {one.node} ({numbers.counted(one.connections, 'tunnel')})"
        if one.port is None
        else f"{one.node}:{one.port} ({numbers.counted(one.connections, 'connection')})"
        for one in record.from_outside
    ]
    return f"influenced from outside by {', '.join(each)}: no other run will have that" if each else ""


def subject(event: Event) -> str:
    """What an event is about: a process, link, fault, program, capture, table of samples, or node."""
    match event:
        case LinkChanged(link=whole) | LinkBecame(link=whole) | LinkSteered(link=whole):
            return whole
        case OfFault(fault=whole) | FaultSteered(fault=whole):
            return whole
        case SamplingEnded(table=table):
            return f"measure: {table}"
        case (
            OfProcess(node=node, process=part) | OfSession(node=node, program=part) | Spinning(node=node, program=part)
        ):
            return f"{node}/{part}"
        case CaptureEnded(node=node, interface=interface):
            return f"{node}:{interface}"
        case MemoryShort(node=node):
            return node
    return str(event.record().get("node", ""))


def happened(event: Event) -> str:
    """What an event says of its subject."""
    return f"{event.record()['kind']} {_detail(event)}".rstrip()


def _detail(event: Event) -> str:
    match event:
        case Exited(status=status):
            return f"status {status}{_end(event)}"
        case Signalled(signal=signal):
            return f"signal {signal}{_end(event)}"
        case SessionEnded(status=status):
            return "" if status is None else f"status {status}"
        case LoadUndone(what=what):
            return f"{what}: {came_of(event)}"
        case LinkBecame(what=what) | Began(what=what) | Undone(what=what):
            return what
        case LinkSteered(asked=asked) | FaultSteered(asked=asked):
            return asked
        case MemoryShort(memory=memory, times=times):
            return f"{memory} {times}"
    return str(event.record().get("reason", ""))


def came_of(load: LoadUndone) -> str:
    """What has come of a load, as far as there is something to say."""
    numbers = ((load.sent, "sent"), (load.refused, "not taken"), (load.answered, "answered"), (load.failed, "failed"))
    return ", ".join(f"{number} {what}" for number, what in numbers if number or what == "sent")


def _end(event: Ended) -> str:
    return " (stopped)" if event.stopped else " (timed out)" if event.timed_out else ""
