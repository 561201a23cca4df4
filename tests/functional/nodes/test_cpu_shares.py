"""Nodes that share a guest compute as fast as their CPUs are, whatever the TDF and whoever else is in the guest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_TDF
from dilaton.run.control.requests import Client
from tests.conftest import Outcome, RunLab, held_run, outcome_of

COUNT = "for _ in range(3_000_000): pass"
CHILDREN = """
import os, subprocess, sys
if os.fork() == 0:
    for _ in range(1_000_000): pass
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-I", "-S", "-c", "for _ in range(1_000_000): pass"], check=True)
"""
HASHES = """
import hashlib, threading
def work():
    for _ in range({times}): hashlib.sha1(text).digest()
text = bytes(3000)
threads = [threading.Thread(target=work) for _ in range({threads})]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
"""Before and after a hash of more than two kilobytes Python's threads hand the one lock on."""
ENTER = "import os\nfor _ in range(20_000): os.getppid()"


SLEEPER = """
name: sleeper
time: {tdf: 5}
nodes: {a: {cpu: 1/2}, b: , c: }
links: [{endpoints: [b, c], rate: 100Mbit, delay: 1ms}]
run:
  - {on: c, name: sink, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: b, name: flood, exec: iperf3 -c c -u -b 50M -l 500 -t 1, after: sink}
  - on: c
    name: busy
    exec: [python3, -I, -S, -c, "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"]
    after: sink
  - on: a
    name: sleeper
    exec: [python3, -I, -S, -c, "import time\nfor _ in range(50): time.sleep(0.02)"]
    after: sink
"""


def lab(nodes: int, cpu: float, program: str, tdf: int) -> str:
    """A lab of packed nodes of one speed that all run a program of Python."""
    names = [f"n{number}" for number in range(nodes)]
    return json.dumps(
        {
            "name": "shares",
            "time": {"tdf": tdf},
            "nodes": {name: {"cpu": cpu} for name in names},
            "run": [{"on": name, "name": name, "exec": ["python3", "-I", "-S", "-c", program]} for name in names],
        }
    )


def lives_s(outcome: Outcome) -> float:
    """For how long the processes ran, virtual seconds, summed."""
    names = [process["name"] for process in outcome.record["processes"]]
    return sum(outcome.instant_s("exited", name) - outcome.instant_s("started", name) for name in names)


@pytest.mark.parametrize(("tdf", "within"), [(1, 0.06), (50, 0.03)])
def test_ten_nodes_that_compute_are_as_fast_as_their_cpus(run_lab: RunLab, tdf: int, within: float) -> None:
    """What programs cost the host, over the speed of their CPUs, is for how long they were there. At TDF 1 the starts of
    ten, which are nobody's work, are a noticeable part of the guest's CPU."""
    outcome = run_lab(lab(10, 0.05, COUNT, tdf))
    assert outcome.status == 0
    shares = outcome.record["fidelity"]["shares"]
    assert shares["busy_s"] == pytest.approx(shares["charged_s"] / 0.05, rel=1e-6)
    assert lives_s(outcome) == pytest.approx(shares["busy_s"], rel=within)


def test_programs_that_make_system_calls_lose_nothing_by_their_sleeps(run_lab: RunLab) -> None:
    """Twenty thousand system calls, with a sleep before each of them: at TDF 1 a sleep is long beside the call."""
    outcome = run_lab(lab(2, 0.2, ENTER, 1))
    shares = outcome.record["fidelity"]["shares"]
    assert lives_s(outcome) == pytest.approx(shares["busy_s"], rel=0.06)
    assert shares["uncharged_s"] > 0


def test_threads_that_wait_for_a_lock_do_not_take_turns_at_each_of_their_calls(run_lab: RunLab) -> None:
    """As often as one alone lets it go, they may hand it on: seven times as long, where who lets go sleeps."""
    one, two = (
        lives_s(run_lab(lab(2, 1, HASHES.format(times=60_000 // threads, threads=threads), 10))) for threads in (1, 2)
    )
    assert two < 2 * one


def test_a_node_loses_nothing_of_its_sleep_when_the_program_that_is_next_is_turned_back(run_lab: RunLab) -> None:
    """The kernel goes from the sleeper to a program that computes, and often finds that a packet is due before that runs."""
    shares = run_lab(SLEEPER).record["fidelity"]["shares"]
    # A second is slept, of which .28 s were lost where each such sleep counted.
    assert shares["busy_s"] > 0 and shares["lost_s"] < 0.1


def test_children_compute_on_the_cpu_of_their_parents_node(run_lab: RunLab) -> None:
    """One by fork, which computes in its parent's program, and one by vfork and exec."""
    outcome = run_lab(lab(2, 0.2, CHILDREN, 10))
    assert outcome.status == 0
    shares = outcome.record["fidelity"]["shares"]
    assert lives_s(outcome) == pytest.approx(shares["busy_s"], rel=0.06)


def test_a_change_of_the_tdf_changes_nothing_for_nodes(tmp_path: Path) -> None:
    """In the middle of their work the guest becomes 40 times as fast."""
    with held_run(tmp_path, lab(2, 0.2, COUNT, 1), "50ms") as (process, out):
        with Client(out) as client:
            client.request(CLOCK_TDF, tdf="40")
            client.request(CLOCK_RELEASE)
        outcome = outcome_of(process, out)
    assert outcome.status == 0
    shares = outcome.record["fidelity"]["shares"]
    assert {change["tdf"] for change in outcome.record["fidelity"]["tdf_trace"]} >= {1.0, 40.0}
    assert lives_s(outcome) == pytest.approx(shares["busy_s"], rel=0.06)
