"""What iperf3 prints becomes a result. The fixtures are what iperf 3.12 printed, on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dilaton.measure.results import parse

FIXTURES = Path(__file__).parent / "fixtures"
CLIENT = ["iperf3", "-c", "b", "-J"]


def text(fixture: str) -> str:
    return (FIXTURES / "iperf3" / fixture).read_text()


def result(fixture: str) -> dict[str, Any]:
    found = parse(CLIENT, text(fixture))
    assert found is not None
    return found


def test_tcp_gives_received_and_sent_throughput_and_intervals() -> None:
    assert result("tcp.json") == {
        "told_throughput": 50_000_000,
        "throughput": 50309562.10223711,
        "sent_throughput": 50328276.005507626,
        "retransmits": 0,
        "streams": [50309562.10223711],
        "intervals": [
            {"start_s": 0, "end_s": 0.500055, "throughput": 50326110.609280065, "retransmits": 0},
            {"start_s": 0.500055, "end_s": 1.000067, "throughput": 50330442.028896354, "retransmits": 0},
        ],
    }


def test_parallel_flows_are_summed() -> None:
    found = result("tcp-parallel.json")
    assert found["throughput"] == pytest.approx(2 * 20e6, rel=0.1)
    one, other = found["streams"]
    assert found["fairness"] == pytest.approx((one + other) ** 2 / (2 * (one**2 + other**2)))


def test_reverse_is_one_direction_whose_retransmits_the_other_end_tells() -> None:
    found = result("tcp-reverse.json")
    assert found["throughput"] == 50328225.68065372
    assert found["retransmits"] == 0
    assert [interval["retransmits"] for interval in found["intervals"]] == [None, None]
    assert "reverse" not in found


@pytest.mark.parametrize(("fixture", "rate"), [("tcp-bidir.json", 20e6), ("udp-bidir.json", 5e6)])
def test_both_directions_at_once_give_two_results(fixture: str, rate: float) -> None:
    found = result(fixture)
    assert found["throughput"] == pytest.approx(rate, rel=0.1)
    assert found["reverse"]["throughput"] == pytest.approx(rate, rel=0.1)
    assert len(found["intervals"]) == len(found["reverse"]["intervals"]) == 2


def test_omitted_intervals_are_left_out() -> None:
    assert len(json.loads(text("tcp-omit.json"))["intervals"]) == 4
    assert [round(interval["start_s"], 1) for interval in result("tcp-omit.json")["intervals"]] == [0, 0.5]


@pytest.mark.parametrize("fixture", ["udp.json", "udp-reverse.json", "udp-parallel.json"])
def test_udp_tells_loss_and_jitter_and_no_retransmits(fixture: str) -> None:
    found = result(fixture)
    assert found["loss"] == 0
    assert 0 < found["jitter_s"] < 0.001
    assert found["retransmits"] is None


@pytest.mark.parametrize("fixture", ["udp-lossy.json", "udp-lossy-reverse.json"])
def test_lost_datagrams_are_no_throughput(fixture: str) -> None:
    found = result(fixture)
    assert 0.6 < found["loss"] < 0.8
    assert found["throughput"] == pytest.approx((1 - found["loss"]) * found["sent_throughput"], rel=0.01)


def test_an_error_document_is_an_error() -> None:
    assert result("refused.json") == {"error": "unable to connect to server: Connection refused"}
    assert result("interrupted.json") == {"error": "interrupt - the client has terminated"}


def test_a_report_cut_anywhere_is_an_error_and_never_a_crash() -> None:
    whole = text("tcp.json").rstrip()
    for length in range(len(whole)):
        found = parse(CLIENT, whole[:length])
        assert found is not None and list(found) == ["error"]


@pytest.mark.parametrize(
    "report",
    [
        "[]",
        "1",
        "null",
        '{"end": {}}',
        '{"end": {"sum_sent": 1, "sum_received": 2}, "intervals": []}',
        '{"end": {"sum_sent": {"bits_per_second": "fast"}, "sum_received": {"bits_per_second": 1}}, "intervals": []}',
        "9" * 5000,
        "[" * 100_000,
    ],
)
def test_a_report_of_another_shape_is_an_error(report: str) -> None:
    found = parse(CLIENT, report)
    assert found is not None and list(found) == ["error"]


def test_without_json_there_is_no_result() -> None:
    assert parse(["iperf3", "-c", "b"], text("text.txt")) is None


@pytest.mark.parametrize(
    "argv", [["iperf3", "-s"], ["iperf3", "-s", "-J"], ["iperf3", "-sJ", "-1"], ["iperf3", "--server", "--json"]]
)
def test_a_server_has_no_result(argv: list[str]) -> None:
    assert parse(argv, text("server.json" if "J" in "".join(argv) else "server.txt")) is None


@pytest.mark.parametrize(
    "argv", [["iperf3", "--json", "-c", "b"], ["iperf3", "-uJ", "-c", "b"], ["iperf3", "-Jc", "servers"]]
)
def test_json_is_recognised_however_it_is_asked_for(argv: list[str]) -> None:
    assert parse(argv, text("tcp.json")) is not None


def test_what_a_sender_was_told_is_known_where_it_alone_sends() -> None:
    told = {
        name: result(f"{name}.json").get("told_throughput") for name in ("udp", "udp-parallel", "udp-reverse", "tcp")
    }
    assert told == {"udp": 5_000_000, "udp-parallel": 4_000_000, "udp-reverse": None, "tcp": 50_000_000}
    assert "told_throughput" not in result("udp-bidir.json")
    narrow = text("tcp.json").replace('"sock_bufsize":\t0', '"sock_bufsize":\t4096')
    assert "told_throughput" not in (parse(["iperf3", "-c", "b", "-J"], narrow) or {})
