"""Single operations, taken out of what programs print."""

from __future__ import annotations

import json

import pytest

from dilaton.measure.operations.history import Interval, Operation
from dilaton.measure.operations.sources import history_of


def test_lines_of_json_are_operations_by_the_clock_of_the_program() -> None:
    lines = [
        "leader elected",
        '{"begin": 1002.5, "end": 1002.75, "ok": false, "key": 7}',
        '{"begin": 1001, "end": 1001.5, "ok": true}',
        '{"begin": 1003, "end": 1002, "ok": true}',
        '{"begin": 1003, "end": 1004}',
        '{"begin": true, "end": 1004, "ok": 1}',
        '{"begin": NaN, "end": 1004, "ok": true}',
        '{"begin": 1005, "e',
    ]
    found = history_of(["python3", "client.py"], "\n".join(lines), 0.5, 9.0, 1000.0)
    assert list(found.operations) == [Operation(1.0, 1.5, True), Operation(2.5, 2.75, False)]


def test_requests_of_ping_are_operations_and_what_has_no_answer_failed() -> None:
    output = (
        "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=40.0 ms\n64 bytes from 10.0.0.1: icmp_seq=3 ttl=64 time=20 ms\n"
        "\n3 packets transmitted, 2 received, 33% packet loss, time 400ms\n"
    )
    found = history_of(["timeout", "9", "ping", "-i", "0.2", "b"], output, 1.0, 2.0, 0.0)
    assert [(round(one.begin_s, 9), round(one.end_s, 9), one.ok) for one in found.operations] == [
        (1.0, 1.04, True),
        (1.2, 1.2, False),
        (1.4, 1.42, True),
    ]


def test_requests_of_an_access_log_are_operations_of_whole_seconds() -> None:
    line = '10.0.0.1 - - [01/Jan/2000:00:00:{:02} +0000] "GET / HTTP/1.1" {} 5 "-" "-"'
    log = "\n".join([line.format(3, 200), line.format(4, 503)])
    found = history_of(["nginx"], log, 0.0, 9.0, 946684800.0)
    assert list(found.operations) == [Operation(3.0, 3.0, True), Operation(4.0, 4.0, False)]


def test_intervals_of_iperf3_are_counted_back_from_its_end() -> None:
    def part(start: int, omitted: bool = False) -> dict[str, object]:
        return {"sum": {"start": start, "end": start + 1, "bits_per_second": 5e6, "omitted": omitted}}

    end = {"sum_sent": {"bits_per_second": 5e6}, "sum_received": {"bits_per_second": 5e6}, "streams": []}
    report = json.dumps({"end": end, "intervals": [part(0, omitted=True), part(0), part(1)]})
    found = history_of(["iperf3", "-c", "b", "-O", "1", "-J"], report, 0.0, 4.0, 0.0)
    assert list(found.intervals) == [Interval(2.0, 3.0, 5e6), Interval(3.0, 4.0, 5e6)]


@pytest.mark.parametrize("argv", [["ping", "b"], ["iperf3", "-c", "b", "-J"], ["nginx"], ["python3"]])
def test_of_what_printed_nothing_nothing_is_known(argv: list[str]) -> None:
    found = history_of(argv, "", 0.0, 1.0, 0.0)
    assert not found.operations
    assert not found.intervals
