"""What ping prints becomes a result. The fixtures are what iputils 20221126 and busybox 1.35 printed, on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.measure.results import parse

FIXTURES = Path(__file__).parent / "fixtures"


def result(fixture: str) -> dict[str, object] | None:
    return parse(["ping", "x"], (FIXTURES / fixture).read_text())


def test_iputils_gives_counts_seconds_and_samples() -> None:
    assert result("iputils/ping.txt") == {
        "sent": 3,
        "received": 3,
        "duplicates": 0,
        "errors": 0,
        "loss": 0.0,
        "rtt": {"min": 0.000038, "avg": 0.000043, "max": 0.000053, "mdev": 0.000006}
        | {"p50": 0.000039, "p95": 0.0000516, "p99": 0.00005272},
        "outage": 0.0,
        "samples": [0.000053, 0.000039, 0.000038],
        "requests": [0, 1, 2],
    }


def test_busybox_gives_the_same_without_a_deviation() -> None:
    assert result("busybox/ping.txt") == {
        "sent": 3,
        "received": 3,
        "duplicates": 0,
        "errors": 0,
        "loss": 0.0,
        "rtt": {"min": 0.000055, "avg": 0.000064, "max": 0.000080, "mdev": None}
        | {"p50": 0.000058, "p95": 0.0000778, "p99": 0.00007956},
        "outage": 0.0,
        "samples": [0.000055, 0.000080, 0.000058],
        "requests": [0, 1, 2],
    }


@pytest.mark.parametrize(
    ("fixture", "received", "samples"),
    [
        ("iputils/ping-quiet.txt", 3, []),
        ("busybox/ping-quiet.txt", 3, []),
        ("iputils/ping-timestamps.txt", 2, [0.000010, 0.000042]),
        ("iputils/ping-ipv6.txt", 2, [0.000037, 0.000045]),
        ("iputils/ping-adaptive.txt", 5, [0.000018, 0.000002, 0.000001, 0.0, 0.000001]),
        ("iputils/ping-flood.txt", 20, []),
    ],
)
def test_options_of_ping_do_not_confuse(fixture: str, received: int, samples: list[float]) -> None:
    found = result(fixture)
    assert found is not None
    assert (found["received"], found["samples"]) == (received, samples)
    assert found["rtt"] is not None


@pytest.mark.parametrize("fixture", ["iputils/ping-no-reply.txt", "busybox/ping-no-reply.txt"])
def test_no_reply_at_all_is_a_loss_of_one_and_no_rtt(fixture: str) -> None:
    found = result(fixture)
    assert found is not None
    assert (found["sent"], found["received"], found["loss"], found["rtt"]) == (2, 0, 1.0, None)


def test_errors_are_counted_and_are_no_replies() -> None:
    found = result("iputils/ping-errors.txt")
    assert found is not None
    assert (found["received"], found["errors"], found["loss"]) == (0, 3, 1.0)


@pytest.mark.parametrize(
    ("fixture", "duplicates"), [("iputils/ping-duplicates.txt", 2), ("busybox/ping-duplicates.txt", 1)]
)
def test_duplicates_are_counted_apart(fixture: str, duplicates: int) -> None:
    found = result(fixture)
    assert found is not None
    assert (found["duplicates"], found["loss"]) == (duplicates, 0.0)
    assert isinstance(found["samples"], list) and len(found["samples"]) == found["received"] + duplicates  # type: ignore[operator]


def test_packets_too_small_for_a_time_have_no_rtt() -> None:
    found = result("iputils/ping-untimed.txt")
    assert found is not None
    assert (found["received"], found["rtt"]) == (2, None)


def test_a_ping_ended_before_its_statistics_is_an_error() -> None:
    assert result("iputils/ping-terminated.txt") == {"error": "ping was ended before it printed its statistics"}


def test_a_ping_that_printed_nothing_has_no_result() -> None:
    assert parse(["ping", "no-such-host"], "") is None


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("40.0 ms", 0.04), ("123 ms", 0.123), ("1.5 s", 1.5), ("250 usec", 0.00025), ("7 us", 0.000007)],
)
def test_every_unit_becomes_seconds_exactly_as_printed(written: str, seconds: float) -> None:
    text = f"64 bytes from b: icmp_seq=1 ttl=64 time={written}\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
    found = parse(["ping", "b"], text)
    assert found is not None and found["samples"] == [seconds]


def test_part_of_the_packets_lost_is_the_exact_ratio() -> None:
    found = parse(["ping", "b"], "3 packets transmitted, 2 received, 33.3333% packet loss, time 0ms\n")
    assert found is not None and found["loss"] == 1 / 3


def ping(options: list[str], sent: int, answered: list[int]) -> dict[str, object]:
    lines = [f"64 bytes from b: icmp_seq={number % 65536} ttl=64 time=1.00 ms" for number in answered]
    lines.append(f"{sent} packets transmitted, {len(answered)} received, time 0ms")
    found = parse(["ping", *options, "b"], "\n".join(lines) + "\n")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "sent", "answered", "outage"),
    [
        ([], 5, [1, 2, 5], 2.0),
        (["-i", "0.1"], 5, [1, 2, 5], 0.2),
        (["-ni0.1", "-c", "5"], 9, [1, 4, 9], 0.4),  # of two outages the longest
        (["-i", "0.1"], 4, [1, 2, 3, 4], 0.0),
        (["-i", "0.1"], 7, [1, 2, 3], 0.4),  # to the end
        (["-i", "0.1"], 7, [], 0.7),
        (["-i", "0.1"], 5, [1, 2, 5, 4], 0.1),  # an answer that was late
        (["-i", "0.001"], 65540, [*range(1, 65530), 65540], 0.01),  # the numbers begin again
        (["-A"], 5, [1, 5], None),
        (["--odd"], 5, [1, 5], None),
    ],
)
def test_an_outage_is_the_longest_time_without_an_answer(
    options: list[str], sent: int, answered: list[int], outage: float | None
) -> None:
    assert ping(options, sent, answered)["outage"] == outage


def test_without_single_answers_an_outage_is_only_known_not_to_be() -> None:
    assert parse(["ping", "-q", "b"], "3 packets transmitted, 2 received, time 0ms\n")["outage"] is None  # type: ignore[index]
    assert parse(["ping", "-q", "b"], "3 packets transmitted, 3 received, time 0ms\n")["outage"] == 0  # type: ignore[index]
