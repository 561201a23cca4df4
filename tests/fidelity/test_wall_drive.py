"""The wall drive against the host's clock: what a node measures, and what it costs."""

from __future__ import annotations

import pytest

from tests.conftest import RunLab

SLEEP = """
name: sleep
time: {{tdf: {tdf}}}
nodes: {{a: {{}}}}
run:
  - {{on: a, name: sleep, exec: sleep 2}}
"""


@pytest.mark.parametrize(("tdf", "factor"), [("1", 1.0), ("3", 3.0), ("1/4", 0.25), ("2.5", 2.5)])
def test_two_virtual_seconds_of_sleep_take_two_times_tdf_host_seconds(run_lab: RunLab, tdf: str, factor: float) -> None:
    outcome = run_lab(SLEEP.format(tdf=tdf))
    process = outcome.process("sleep")
    virtual_s = process["end_s"] - process["start_s"]
    # The exec and exit of the program itself cost CPU: milliseconds of host time, which a TDF below 1 magnifies.
    assert 2.0 <= virtual_s <= 2.0 + 0.05 / factor
    # Both clocks were read at the same two instants, so their ratio is the TDF whatever the host was doing.
    times = outcome.record["time"]
    assert times["host_s"] / times["virtual_s"] == pytest.approx(factor, rel=0.02)


RTT = """
name: rtt
time: {{tdf: {tdf}}}
nodes: {{a: {{}}, b: {{}}}}
links:
  - {{endpoints: ["a:eth0", "b:eth0"], rate: 50Mbit, delay: 20ms}}
run:
  - {{on: a, name: ping, exec: ping -i 0.05 -c 10 b}}
  - {{on: b, name: server, exec: iperf3 -s, background: true, ready: {{tcp: 5201}}}}
  - {{on: a, name: bulk, exec: iperf3 -c b -t 2 -O 1 -J, after: [server, ping]}}
"""


def test_the_same_lab_measures_the_same_at_tdf_1_and_10(run_lab: RunLab) -> None:
    throughput = []
    for tdf, tolerance in ((1, 0.0005), (10, 0.00005)):
        outcome = run_lab(RTT.format(tdf=tdf))
        assert outcome.status == 0
        rtt = outcome.process("ping")["result"]["rtt"]
        # Never early; the median is robust against the host taking the core away for a moment.
        samples = sorted(outcome.process("ping")["result"]["samples"])
        assert rtt["min"] >= 0.040
        assert samples[len(samples) // 2] <= 0.040 + tolerance
        throughput.append(outcome.process("bulk")["result"]["throughput"])
    assert throughput[0] == pytest.approx(throughput[1], rel=0.02)
    assert min(throughput) >= 0.94 * 50e6
