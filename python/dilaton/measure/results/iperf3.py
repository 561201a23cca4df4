"""What iperf3 prints with `-J`, taken from its client.

A test has one direction: from client to server, or with `-R` from server to client. iperf3 calls both `sum`, and
adds the second direction of `--bidir` with the ending `_bidir_reverse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from dilaton.measure.results.fairness import fairness

# Short options without a value may be written together, as in -uJ.
_JSON = re.compile(r"--json|-[146DNRVZdsuv]*J.*")
_SERVER = re.compile(r"--server|-[146DJNRVZduv]*s.*")
_REVERSE = "_bidir_reverse"


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what an iperf3 client printed.

    Args:
        arguments: Of iperf3.
        stdout: Its standard output.

    Returns:
        - `throughput`: what was received, and `sent_throughput`: what was sent, in bit/s of payload.
        - `retransmits`: TCP segments sent again; None where the sender could not tell.
        - `told_throughput`: what this end was told to send (`-b`), all streams together; only where it alone sends,
          by TCP without a buffer of its own (`-w`). UDP only: `datagram_bytes`: of how much payload each was to be.
        - UDP only: `loss`: the ratio of datagrams that did not arrive, 0..1; `jitter_s`: as RFC 3550 defines it.
        - `streams`: what each stream received (UDP: sent), in bit/s; `fairness`, of two or more: Jain's index of these.
        - `intervals`: a list of `start_s`, `end_s`, `throughput` (as this end of the test saw it) and `retransmits`;
          without those that `-O` omits.
        - `--bidir` only: `reverse`: the same for the direction from server to client.

        `{"error": …}` when iperf3 reported an error or its report is incomplete; None without `-J` and for a server,
        which knows half of a test only.
    """
    if not any(map(_JSON.fullmatch, arguments)) or any(map(_SERVER.fullmatch, arguments)):
        return None
    if not stdout.strip():
        return {"error": "iperf3 was ended before it printed its report"}
    try:
        report = json.loads(stdout)
        if "error" in report:
            return {"error": str(report["error"])}
        return _result(report)
    except json.JSONDecodeError as error:
        return {"error": f"the report of iperf3 breaks off or is damaged in line {error.lineno}"}
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        return {"error": f"the report of iperf3 is not as expected: {type(error).__name__}: {error}"}


def _result(report: dict[str, Any]) -> dict[str, Any]:
    result = _direction(report, "")
    if f"sum_received{_REVERSE}" in report["end"]:
        return result | {"reverse": _direction(report, _REVERSE)}
    return result | _told(report.get("start", {}))


def _told(start: dict[str, Any]) -> dict[str, Any]:
    """The rate that was asked for, where it says what this end should have sent."""
    test = start.get("test_start", {})
    rate = test.get("target_bitrate")
    # With a buffer of its own (-w) a connection may not be able to.
    if not rate or test["reverse"] or (test.get("protocol") != "UDP" and start.get("sock_bufsize")):
        return {}
    told = {"told_throughput": _number(rate) * _number(test["num_streams"])}
    return told | ({"datagram_bytes": _number(test["blksize"])} if test.get("protocol") == "UDP" else {})


def _direction(report: dict[str, Any], ending: str) -> dict[str, Any]:
    end = report["end"]
    sent, received = end[f"sum_sent{ending}"], end[f"sum_received{ending}"]
    sums = [interval[f"sum{ending}"] for interval in report["intervals"]]
    direction: dict[str, Any] = {
        "throughput": _number(received["bits_per_second"]),
        "sent_throughput": _number(sent["bits_per_second"]),
        "retransmits": sent.get("retransmits"),
    }
    if "jitter_ms" in received:
        packets = received["packets"]
        direction["loss"] = received["lost_packets"] / packets if packets else None
        direction["jitter_s"] = received["jitter_ms"] / 1000
    direction["streams"] = _streams(end, ending)
    if len(direction["streams"]) > 1:
        direction["fairness"] = fairness(direction["streams"])
    direction["intervals"] = [_interval(part) for part in sums if not part.get("omitted")]
    return direction


def _streams(end: dict[str, Any], ending: str) -> list[float]:
    """What the streams of a direction carried, each; with `--bidir` the client sends those of the first one."""
    ends = [stream.get("receiver") or stream["udp"] for stream in end["streams"]]
    if f"sum_received{_REVERSE}" in end:
        ends = [part for part in ends if part["sender"] is (ending == "")]
    return [_number(part["bits_per_second"]) for part in ends]


def _interval(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "start_s": _number(part["start"]),
        "end_s": _number(part["end"]),
        "throughput": _number(part["bits_per_second"]),
        "retransmits": part.get("retransmits"),
    }


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value
