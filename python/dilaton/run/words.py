"""What became of a process, in a few words, for the terminal and for reports."""

from __future__ import annotations

from dilaton.measure import numbers
from dilaton.run.model import ProcessRecord


def outcome(process: ProcessRecord) -> str:
    """What a process measured, or else how it ended."""
    result = process.result or {}
    if "error" in result:
        return str(result["error"])
    if "throughput" in result:
        text = numbers.rate(result["throughput"])
        sent = result.get("retransmits")
        return text if sent is None else f"{text}, {sent} retransmitted"
    if "rtt" in result:
        loss = f", loss {numbers.ratio(result['loss'])}" if result["loss"] else ""
        rtt = result["rtt"]
        if rtt is None:
            return f"no reply{loss}"
        least, most = numbers.duration(rtt["min"]), numbers.duration(rtt["max"])
        return f"RTT {numbers.duration(rtt['avg'])} ({least} to {most}){loss}"
    if process.expected and process.exit == 0:
        return "done"
    if process.expected:
        return "stopped with the run" if process.exit is not None else process.outcome
    return process.outcome if process.exit is None else f"{process.outcome} with {process.exit}"
