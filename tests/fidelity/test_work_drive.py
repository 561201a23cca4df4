"""The work drive: idle time is jumped over, and virtual time is CPU time divided by the TDF."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import RunLab


def test_an_idle_hour_takes_next_to_nothing_and_is_an_hour(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: hour
time: {drive: work}
nodes: {a: {}}
run: [{on: a, name: sleep, exec: sleep 3600}]
"""
    )
    process = outcome.process("sleep")
    assert process["end_s"] - process["start_s"] == pytest.approx(3600, abs=1)
    times = outcome.record["time"]
    # Waiting for it would give a ratio of 1: jumping gives one in the thousands on any machine.
    assert times["virtual_s"] / times["host_s"] > 100


COMPUTE = """
name: compute
time: {{drive: work, tdf: {tdf}}}
nodes: {{a: {{}}}}
run:
  - on: a
    name: loop
    exec: [sh, -c, "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done"]
"""


def test_the_same_computation_takes_a_tenth_of_the_virtual_time_at_tdf_10(run_lab: RunLab) -> None:
    took = []
    for tdf in (1, 10):
        process = run_lab(COMPUTE.format(tdf=tdf)).process("loop")
        took.append(process["end_s"] - process["start_s"])
    # A core's speed varies with what its neighbours do, by a factor of two within minutes: nearer to 10 than to 1 or 100.
    assert 3.2 < took[0] / took[1] < 31


RATE_BIT_PER_S = 5e6
"""So little that the guest's CPU idles for most of the time at TDF 1, also where it is a slow one."""
RTT_S = 0.04 + 2 * 98 * 8 / RATE_BIT_PER_S
"""Twice the delay, and two packets of 98 bytes."""
PING_STEP_S = 0.1e-3
"""ping writes samples that long with three digits."""

LINK = """
name: link
time: {{drive: work, tdf: {tdf}}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 5Mbit, delay: 20ms, queue: {{limit: 50}}}}]
run:
  - {{on: a, name: ping, exec: ping -c 50 -i 0.1 b}}
  - {{on: b, name: server, exec: iperf3 -s, background: true, ready: {{tcp: 5201}}}}
  - {{on: a, name: bulk, exec: iperf3 -c b -t 3 -O 1 -J, after: [server, ping]}}
"""


@contextmanager
def busy_host() -> Iterator[None]:
    """Keeps every core of the host busy, twice."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(run_lab: RunLab, tdf: int) -> tuple[float, float, float]:
    """The least and the median RTT in seconds, the latter in steps of 0.1 ms, and goodput in bit/s."""
    outcome = run_lab(LINK.format(tdf=tdf))
    assert outcome.status == 0
    ping, bulk = (outcome.process(name)["result"] for name in ("ping", "bulk"))
    return ping["rtt"]["min"], statistics.median(ping["samples"]), bulk["throughput"]


@pytest.mark.parametrize("tdf", [1, 10])
def test_a_link_is_as_configured(run_lab: RunLab, tdf: int) -> None:
    least, median, throughput = measure(run_lab, tdf)
    # What is more than the delay and the serialisation of two packets is the hosts' own work: some 30 us of this machine's at TDF 1.
    assert RTT_S <= least <= RTT_S + 0.5e-3 / tdf
    assert median <= RTT_S + 1e-3 / tdf + PING_STEP_S
    assert 0.92 * RATE_BIT_PER_S <= throughput <= RATE_BIT_PER_S


def test_load_on_the_host_does_not_change_the_results(run_lab: RunLab) -> None:
    *rtts, throughput = measure(run_lab, 4)
    with busy_host():
        *loaded_rtts, loaded_throughput = measure(run_lab, 4)
    assert loaded_rtts == pytest.approx(rtts, rel=0.005)
    assert loaded_throughput == pytest.approx(throughput, rel=0.01)
