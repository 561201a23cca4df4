"""What became of a process is told in words that fit what it measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dilaton.host.messages import (
    Began,
    CaptureEnded,
    Event,
    Exited,
    LinkChanged,
    MemoryShort,
    SamplingEnded,
    Signalled,
    Started,
)
from dilaton.measure.results import parse
from dilaton.run.record.events import FaultSteered, LinkBecame, LinkSteered, SessionEnded, Unknown
from dilaton.run.record.model import ProcessRecord
from dilaton.run.record.words import command, happened, outcome, subject

IPERF3 = Path(__file__).parents[2] / "measure" / "results" / "fixtures" / "iperf3"


@pytest.mark.parametrize(
    ("fixture", "words"),
    [
        ("tcp.json", "50.31 Mbit/s, 0 retransmitted"),
        ("tcp-parallel.json", "41.92 Mbit/s, 0 retransmitted"),
        ("tcp-bidir.json", "20.96 Mbit/s, 0 retransmitted; back 20.96 Mbit/s, 0 retransmitted"),
        ("udp.json", "5.242 Mbit/s"),
        ("udp-lossy.json", "1.96 Gbit/s, loss 71.3 %"),
        ("refused.json", "unable to connect to server: Connection refused"),
    ],
)
def test_a_test_of_throughput_is_told_by_what_arrived_and_what_was_lost_each_way(fixture: str, words: str) -> None:
    argv = ["iperf3", "-c", "b", "-J"]
    result = parse(argv, (IPERF3 / fixture).read_text())
    assert outcome(ProcessRecord(name="bulk", node="a", argv=argv, result=result)) == words


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"requests": 3, "errors": 1}, "3 requests, 1 error"),
        ({"requests": 1, "latency": {"avg": 0.5, "max": 0.5}}, "1 request, latency 500 ms"),
        ({"requests": 0, "requests_per_s": 0.0, "errors": 2, "latency": {}}, "0 requests, 0 requests/s, 2 errors"),
        (
            {"packets_per_s": None, "throughput": None, "latency": {"avg": 0.02, "max": 0.03}, "loss": 0.5},
            "latency 20 ms (to 30 ms), loss 50 %",
        ),
    ],
)
def test_only_what_was_measured_is_told(result: dict[str, Any], words: str) -> None:
    assert outcome(ProcessRecord(name="ask", node="a", argv=["ask"], result=result)) == words


END: dict[str, Any] = {"t_ns": 0, "node": "a", "process": "ask", "expected": False}


@pytest.mark.parametrize(
    ("event", "about", "what"),
    [
        (Started(t_ns=0, node="a", process="ask", pid=2), "a/ask", "started"),
        (Exited(**END, status=1, stopped=True, timed_out=False), "a/ask", "exited status 1 (stopped)"),
        (Signalled(**END, signal=9, stopped=False, timed_out=True), "a/ask", "exited signal 9 (timed out)"),
        (SessionEnded(t_ns=0, node="a", program="sh", status=None, host_s=1.0), "a/sh", "session-ended"),
        (LinkChanged(t_ns=0, link="a--b", at_ns=0), "a--b", "link-changed"),
        (
            LinkBecame(t_ns=0, link="a--b", at_ns=0, what="rate 5Mbit", up=True),
            "a--b",
            "link-changed rate 5Mbit",
        ),
        (
            LinkSteered(t_ns=0, link="a--b", asked="delay=1ms", at_ns=0, file="x", host_s=1.0),
            "a--b",
            "link-steered delay=1ms",
        ),
        (Began(t_ns=0, fault="cut", what="a from b"), "cut", "began a from b"),
        (FaultSteered(t_ns=0, fault="cut", asked="undo", file="x", host_s=1.0), "cut", "fault-steered undo"),
        (SamplingEnded(t_ns=0, table="tcp", reason="disk full"), "measure: tcp", "sampling-ended disk full"),
        (MemoryShort(t_ns=0, node="a", memory="tcp", times=3), "a", "memory-short tcp 3"),
        (
            CaptureEnded(t_ns=0, node="a", interface="eth0", reason="disk full"),
            "a:eth0",
            "capture-ended disk full",
        ),
        (Unknown(t_ns=0, kind="melted", fields={"node": "a", "reason": "heat"}), "a", "melted heat"),
    ],
)
def test_events_are_told_alike_in_the_terminal_and_in_reports(event: Event, about: str, what: str) -> None:
    assert (subject(event), happened(event)) == (about, what)


def test_a_command_is_quoted_as_a_shell_would_need_it() -> None:
    argv = ["sh", "-c", "while :; do echo $HOME; done", ""]
    assert command(ProcessRecord(name="loop", node="a", argv=argv)) == "sh -c 'while :; do echo $HOME; done' ''"
