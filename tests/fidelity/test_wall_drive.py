"""The wall drive against the host's clock: what a node measures, and what it costs."""

from __future__ import annotations

import statistics

import pytest

from tests.conftest import RunLab

SLEEP = """
name: sleep
time: {{drive: wall, tdf: {tdf}}}
nodes: {{a: {{}}}}
run:
  - {{on: a, name: sleep, exec: sleep 2}}
"""


@pytest.mark.parametrize(("tdf", "factor"), [("1", 1.0), ("3", 3.0), ("1/4", 0.25), ("2.5", 2.5)])
def test_two_virtual_seconds_of_sleep_take_two_times_tdf_host_seconds(run_lab: RunLab, tdf: str, factor: float) -> None:
    outcome = run_lab(SLEEP.format(tdf=tdf))
    process = outcome.process("sleep")
    virtual_s = process["end_s"] - process["start_s"]
    # The exec and exit of the program itself cost host time, which a TDF below 1 magnifies: milliseconds, more where the
    # host does much else, or stands still for a moment.
    assert 2.0 <= virtual_s <= 2.0 + 1.5 / factor
    # Both clocks begin at one instant, and the host hears of the end of the other some milliseconds later: 15 on a slow one.
    times = outcome.record["time"]
    assert times["host_s"] == pytest.approx(factor * times["virtual_s"], rel=0.005, abs=0.04)


RTT_S = 0.040031
"""Twice the delay, and 31 us that two packets of 98 bytes need at 50 Mbit/s."""
ROUNDED_S = 0.05e-3
"""By how much ping rounds up a round trip of 10 to 100 ms, of which it prints three digits."""

PING = """
name: ping
time: {{drive: wall, tdf: {tdf}}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: a -- b, rate: 50Mbit, delay: 20ms}}]
run: [{{on: a, name: ping, exec: ping -i {interval_s} -c {count} b}}]
"""


@pytest.mark.parametrize(("tdf", "interval_s", "count"), [(1, 0.1, 21), (10, 0.02, 21), (100, 0.01, 5)])
def test_a_round_trip_takes_twice_the_delay_at_every_tdf(
    run_lab: RunLab, tdf: int, interval_s: float, count: int
) -> None:
    outcome = run_lab(PING.format(tdf=tdf, interval_s=interval_s, count=count))
    assert outcome.status == 0
    result = outcome.process("ping")["result"]
    assert result["received"] == count
    # Never early. Late by what waking and processing cost the host: 0.12 to 0.28 ms of its time on a quiet one, divided by
    # the TDF, and up to 7 ms where its own timers come late; and by what the run says of its timers, two of which are on the way.
    # Whatever else the host does now and then makes a round trip later, so the median has more room; the average would be
    # that of the few that met it.
    told_s = outcome.record["guests"][0]["fidelity"]["lateness_us"]["max"] * 1e-6
    assert RTT_S <= result["rtt"]["min"] <= RTT_S + 10e-3 / tdf + 2 * told_s
    assert statistics.median(result["samples"]) <= RTT_S + 15e-3 / tdf + ROUNDED_S


RATE_BIT_PER_S = 10e6
"""So little that a slow host forwards it at TDF 1 too."""

BULK = """
name: bulk
time: {{drive: wall, tdf: {tdf}}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: a -- b, rate: 10Mbit, delay: 2ms, queue: {{limit: 50}}}}]
run:
  - {{on: b, name: server, exec: iperf3 -s, background: true, ready: {{tcp: 5201}}}}
  - {{on: a, name: bulk, exec: iperf3 -c b -t 1 -l 8K -J, after: server}}
"""


def test_a_link_carries_the_same_at_tdf_1_and_10_or_the_verdict_says_that_it_did_not(run_lab: RunLab) -> None:
    trusted = []
    for tdf in (1, 10):
        outcome = run_lab(BULK.format(tdf=tdf))
        assert outcome.status == 0
        throughput = outcome.process("bulk")["result"]["throughput"]
        assert throughput <= RATE_BIT_PER_S
        # While the host does much else, the wall drive cannot be right.
        if outcome.record["verdict"]["level"] != "invalid":
            assert throughput >= 0.92 * RATE_BIT_PER_S
            trusted.append(throughput)
    # For a hundredth of the time packets may wait in each of them before the verdict is `invalid`.
    assert max(trusted, default=0.0) <= 1.03 * min(trusted, default=0.0)
