"""Results of curl, wrk, fio, D-ITG and web servers are read as these print them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dilaton.measure.results import parse

FIXTURES = Path(__file__).parent / "fixtures"


def result_of(command: list[str], fixture: str) -> dict[str, Any]:
    result = parse(command, (FIXTURES / fixture).read_text())
    assert result is not None
    return result


def test_curl_writes_json() -> None:
    result = result_of(["curl", "-s", "-w", "%{json}\n", "http://b/"], "curl-json.txt")
    assert (result["requests"], result["errors"]) == (1, 0)
    assert result["samples"] == [0.000837]
    assert result["throughput"] == 7168 * 8
    assert result["transfers"][0]["time_connect"] == 0.000411


def test_curl_writes_any_format() -> None:
    form = r"%{http_code} %{time_total} %{speed_download}\n"
    result = result_of(["curl", "-w", form, "http://b/", "http://b/"], "curl-format.txt")
    assert result["transfers"] == [
        {"http_code": 200, "time_total": 0.000788, "speed_download": 7614},
        {"http_code": 200, "time_total": 0.000298, "speed_download": 20134},
    ]
    assert result["latency"]["max"] == 0.000788


@pytest.mark.parametrize("option", [["-w", "%{time_total}"], ["--write-out=%{time_total}"], ["-w%{time_total}"]])
def test_every_way_to_give_curl_a_format_is_known(option: list[str]) -> None:
    result = parse(["curl", *option, "http://b/"], "0.25")
    assert result is not None
    assert result["samples"] == [0.25]


def test_curl_without_a_format_has_no_result_and_one_that_was_ended_an_error() -> None:
    assert parse(["curl", "http://b/"], "<html>") is None
    assert parse(["curl", "-w", "%{time_total}", "http://b/"], "") == {
        "error": "curl was ended before it wrote what -w asks for"
    }


def test_wrk_gives_rates_and_latencies() -> None:
    result = result_of(["wrk", "--latency", "http://b/"], "wrk-latency.txt")
    assert (result["requests"], result["requests_per_s"], result["errors"]) == (5004, 2489.69, 0)
    assert result["latency"] == {
        "avg": 0.00227,
        "stdev": 0.00294,
        "max": 0.03602,
        "p50": 0.00116,
        "p75": 0.00255,
        "p90": 0.00528,
        "p99": 0.014,
    }
    assert result["throughput"] == pytest.approx(0.98 * 2**20 * 8 / 2.01)


def test_wrk_tells_errors_and_an_early_end() -> None:
    assert result_of(["wrk", "http://b/"], "wrk-errors.txt")["errors"] == 2197
    assert parse(["wrk", "http://b/"], "Running 2s test @ http://b/\n") == {
        "error": "wrk was ended before it printed its results"
    }


def test_wrk_without_an_answer_has_no_latency() -> None:
    """wrk then prints zeros, which would meet every expectation."""
    printed = (
        "    Latency     0.00us    0.00us   0.00us    -nan%\n"
        "  0 requests in 1.01s, 0.00B read\n"
        "  Socket errors: connect 0, read 0, write 0, timeout 1\n"
        "Requests/sec:      0.00\n"
    )
    result = parse(["wrk", "http://b/"], printed)
    assert result == {"requests": 0, "requests_per_s": 0.0, "errors": 1, "throughput": 0.0, "latency": {}}


def test_fio_gives_each_job_and_the_sum() -> None:
    result = result_of(["fio", "--output-format=json", "job"], "fio.json")
    job = result["jobs"]["t"]
    assert job["read"]["bytes"] == 540672
    assert job["read"]["throughput"] == 41590153 * 8
    assert result["iops"] == pytest.approx(job["read"]["iops"] + job["write"]["iops"])
    assert 0 < job["read"]["latency"]["min"] <= job["read"]["latency"]["avg"] <= job["read"]["latency"]["max"]
    assert "p99" in job["read"]["latency"]


def test_fio_without_json_has_no_result_and_half_a_report_is_an_error() -> None:
    whole = (FIXTURES / "fio.json").read_text()
    assert parse(["fio", "job"], whole) is None
    assert parse(["fio", "--output-format=json", "job"], whole[:500]) == {"error": "the report of fio breaks off"}


def test_d_itg_gives_delay_jitter_loss_and_rate_of_each_flow() -> None:
    result = result_of(["ITGDec", "recv.log"], "itgdec.txt")
    assert (result["received"], result["bytes"], result["dropped"], result["loss"]) == (96, 49152, 0, 0.0)
    assert result["throughput"] == pytest.approx(393_833.925)
    assert result["latency"] == {"min": 0.000018, "avg": 0.000034, "max": 0.000139, "stdev": 0.000014}
    assert result["jitter_s"] == 0.000007
    assert [(flow["from"], flow["to"]) for flow in result["flows"]] == [("127.0.0.1:53475", "127.0.0.1:8999")]


def test_what_d_itg_has_no_number_for_is_none() -> None:
    text = (FIXTURES / "itgdec.txt").read_text().replace("393.833925", "-nan").replace("96.150861", "inf")
    result = parse(["ITGDec", "recv.log"], text)
    assert result is not None
    assert (result["received"], result["throughput"], result["packets_per_s"]) == (96, None, None)


def test_a_senders_log_has_no_delays() -> None:
    text = re.sub(
        r"(delay|jitter|deviation)( *)= +[0-9.]+ s", r"\1\2= 0.000000 s", (FIXTURES / "itgdec.txt").read_text()
    )
    result = parse(["ITGDec", "send.log"], text)
    assert result is not None
    assert result["received"] == 96
    for part in (result, *result["flows"]):
        assert {*part["latency"].values(), part["jitter_s"]} == {None}


def test_what_d_itg_prints_besides_a_summary_is_no_result() -> None:
    banner, flow, *_ = (FIXTURES / "itgdec.txt").read_text().split("Flow number")
    assert parse(["ITGDec", "recv.log", "-c", "500", "averages.dat"], banner) is None
    assert parse(["ITGDec", "recv.log"], f"{banner}Flow number{flow}".partition("TOTAL")[0]) == {
        "error": "ITGDec printed no totals"
    }


def test_an_access_log_may_name_the_virtual_host_first() -> None:
    result = parse(
        ["apache2"], 'www:80 10.0.0.0 - - [21/Nov/2026:08:35:13 +0000] "GET / HTTP/1.1" 200 612 "-" "curl"\n'
    )
    assert result is not None
    assert (result["requests"], result["bytes"]) == (1, 612)


def test_an_access_log_gives_statuses_and_requests_over_time() -> None:
    log = (
        '10.0.0.0 - - [21/Nov/2026:08:35:13 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/7.88.1"\n'
        '10.0.0.0 - - [21/Nov/2026:08:35:13 +0000] "GET /\\"x\\" HTTP/1.1" 404 153 "-" "curl/7.88.1"\n'
        '10.0.0.0 - bob [21/Nov/2026:08:35:15 +0000] "POST /a HTTP/1.1" 502 -\n'
        "something else\n"
    )
    assert parse(["nginx", "-g", "daemon off;"], log) == {
        "requests": 3,
        "errors": 1,
        "statuses": {"200": 1, "404": 1, "502": 1},
        "bytes": 765,
        "duration_s": 2,
        "per_second": [2, 0, 1],
    }
    assert parse(["nginx"], "started\n") is None


def test_an_access_log_over_years_is_not_told_second_by_second() -> None:
    line = '10.0.0.0 - - [21/Nov/{}:08:35:13 +0000] "GET / HTTP/1.1" 200 612\n'
    result = parse(["nginx"], line.format(1970) + line.format(2026))
    assert result is not None
    assert (result["requests"], result["per_second"]) == (2, [])
    assert result["duration_s"] > 50 * 365 * 24 * 3600


@pytest.mark.parametrize(
    ("program", "output"),
    [
        ("wrk", "10 requests in 1.2.3s, 5.0KB read\nRequests/sec: 10.0\n"),
        ("ITGDec", "TOTAL RESULTS\nTotal packets = nan\nPackets dropped = 0\nAverage bitrate = 1\nTotal time = 1\n"),
    ],
)
def test_output_that_only_looks_like_a_programs_own_is_an_error_of_its_result(program: str, output: str) -> None:
    result = parse([program], output)
    assert result is not None
    assert f"what {program} printed is not as expected" in result["error"]


@pytest.mark.parametrize("number", ["Infinity", "NaN", "9" * 400])
def test_a_number_that_is_none_is_an_error_of_the_result(number: str) -> None:
    sums = f'{{"sum_sent": {{"bits_per_second": {number}}}, "sum_received": {{"bits_per_second": 1}}, "streams": []}}'
    result = parse(["iperf3", "-J"], f'{{"end": {sums}, "intervals": []}}')
    assert result is not None
    assert "what iperf3 printed is not as expected" in result["error"]


def test_a_word_of_curl_that_looks_like_a_number_is_a_word() -> None:
    result = parse(["curl", "-w", "%{filename_effective} %{time_total}"], "infinity 0.25")
    assert result is not None
    assert result["transfers"] == [{"filename_effective": "infinity", "time_total": 0.25}]
