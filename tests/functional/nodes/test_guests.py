"""Labs over several guests: what they measure does not show how many there are, and runs are one run all the same."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dilaton
from dilaton.run.control.answers import CLOCK_HOLD, CLOCK_RELEASE, CLOCK_SHOW, CLOCK_STEP, CLOCK_TDF, CLOCK_UNTIL, STOP
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, PYTHON, Outcome, RunLab, held_run, outcome_of, started
from tests.host.processes import kernels

CHAIN = """
name: chain
time: {drive: DRIVE, tdf: 20}
guests: GUESTS
nodes: {a: {}, r: {}, b: {}}
links:
  - {endpoints: [a, r], rate: 100Mbit, delay: 5ms}
  - {endpoints: [r, b], rate: 20Mbit, delay: 10ms, queue: {limit: 20}}
run:
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: ping, exec: ping -c 5 -i 0.2 b}
  - {on: a, name: bulk, exec: iperf3 -c b -t 2 -J, after: [server, ping]}
  - {on: b, name: last, exec: echo done, after: bulk}
"""

APART = """
name: apart
time: {tdf: 2}
guests: per-node
nodes: {a: {}, b: {}, c: {}}
links: [{endpoints: [a, b], delay: 1ms}]
run:
  - {on: a, name: ping, exec: ping -i 1 -c 100000 b}
  - {on: c, name: sleep, exec: sleep 100000}
"""

CONTROL_DELAY_S = 0.01
"""What one guest tells another takes so long; by way of the first guest twice."""


def chain(guests: str, drive: str = "work") -> str:
    return CHAIN.replace("GUESTS", guests).replace("DRIVE", drive)


@pytest.fixture(scope="module")
def per_node(run_lab_once: RunLab) -> Outcome:
    """A run of the chain, each node in a guest of its own."""
    return run_lab_once(chain("per-node"))


@pytest.mark.parametrize("guests", ["1", "auto", "per-node"])
def test_what_is_measured_does_not_show_how_many_guests_there_are(
    run_lab: RunLab, per_node: Outcome, guests: str
) -> None:
    outcome = per_node if guests == "per-node" else run_lab(chain(guests))
    assert outcome.status == 0
    ping = outcome.process("ping")["result"]
    # Serialisation of 98 bytes on both links and back.
    assert ping["rtt"]["min"] == pytest.approx(0.030094, abs=20e-6)
    assert statistics.median(ping["samples"]) == pytest.approx(0.030094, abs=110e-6), "in steps of 0.1 ms"
    assert outcome.process("bulk")["result"]["throughput"] == pytest.approx(18.2e6, rel=0.02)
    assert outcome.process("bulk")["result"]["retransmits"] > 0, "the queue of 20 overflows"


def test_guests_come_to_their_end_where_a_cpu_is_a_thousand_times_too_slow(run_lab: RunLab) -> None:
    lab = APART.replace("{tdf: 2}", "{tdf: 0.0007}").replace("ping -i 1 -c 100000 b", "sleep 100000")
    # What reads the frames by which guests tell of their ends gets 95 % of a CPU, and has not done so when its guest idles.
    outcome = run_lab(lab + "stop_after: 30s\n")
    assert outcome.record["state"] == "finished", outcome.record["reason"]


def test_every_frame_keeps_the_promise_of_the_wire_and_is_counted(per_node: Outcome) -> None:
    record = per_node.record
    assert [guest["name"] for guest in record["guests"]] == ["a", "r", "b"]
    waits = {guest["name"]: guest["waits"] for guest in record["guests"]}
    assert waits["r"]["frames_sent"] > 1000
    assert all(found["windows"] > 0 for found in waits.values())
    assert all(guest["fidelity"]["timers"] > 0 for guest in record["guests"])


def test_what_waits_for_another_guest_starts_when_it_can_know(per_node: Outcome) -> None:
    assert per_node.record["guests"][0]["name"] == "a", "the first guest passes on what the others tell"
    known = per_node.instant_s("ready", "server") + CONTROL_DELAY_S
    assert per_node.instant_s("started", "bulk") > max(known, per_node.instant_s("exited", "ping"))
    late = per_node.instant_s("started", "last") - per_node.instant_s("exited", "bulk")
    assert CONTROL_DELAY_S <= late < 1.8 * CONTROL_DELAY_S, "once, and what a start takes of the CPU"


OFFLOADED = """
name: offloaded
time: {tdf: 10}  # no acknowledgement is so late by its CPU that a segment goes once more
guests: per-node
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 1ms, offload: OFFLOAD}]
run:
  - {on: b, name: server, exec: iperf3 -s -1, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -n 10M -J, after: server}
"""


@pytest.mark.parametrize("offload", ["true", "false"])
def test_segments_go_from_guest_to_guest_as_packets_unless_offload_is_asked_for(run_lab: RunLab, offload: str) -> None:
    outcome = run_lab(OFFLOADED.replace("OFFLOAD", offload))
    assert outcome.status == 0
    assert outcome.process("bulk")["result"]["retransmits"] == 0, "also the longest segment has room"
    # Of what iperf3 was told to send it has written all; the last of that it may have thrown away when the test was over.
    packets = json.loads(outcome.stdout("a", "bulk"))["end"]["sum_received"]["bytes"] / 1448
    frames = outcome.record["guests"][0]["waits"]["frames_sent"]
    assert frames < packets / 3 if offload == "true" else frames > packets


COMPUTE = """
import time
loops, end = 0, time.monotonic() + 0.4
while time.monotonic() < end:
    sum(range(8_000))
    loops += 1
print(loops)
"""

NEAR_AND_FAR: dict[str, Any] = {
    "name": "near-and-far",
    "guests": "per-node",
    "nodes": {name: {} for name in "abcd"},
    "links": [{"endpoints": "a -- b", "delay": "10us"}, {"endpoints": "c -- d", "delay": "10ms"}],
    "run": [{"on": node, "name": node, "exec": ["python3", "-I", "-S", "-c", COMPUTE]} for node in "abcd"],
}


def test_a_cpu_is_as_fast_with_a_short_lookahead_as_with_a_long_one(run_lab: RunLab) -> None:
    outcome = run_lab(json.dumps(NEAR_AND_FAR))
    loops = {node: int(outcome.stdout(node, node)) for node in "abcd"}
    near = next(guest for guest in outcome.record["guests"] if guest["name"] == "a")
    assert near["waits"]["agreements"] > 10_000, "it agrees with its neighbour every few microseconds"
    # Charged to the guest, its agreements would take longer than what it computes. All compute at the same time, as cores of
    # the host are not always equally fast.
    assert 2 * (loops["a"] + loops["b"]) > loops["c"] + loops["d"]


ONE_CORE = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
"""To let one another run takes guests that share a core longer than the lookahead is, and yet they come to run."""


@pytest.mark.parametrize("wrapper", [[], ONE_CORE], ids=["cores", "one core"])
def test_waiting_for_others_on_the_wall_drive_is_lateness_and_spoils_the_verdict(
    run_lab: RunLab, wrapper: list[str]
) -> None:
    near = NEAR_AND_FAR | {"time": {"drive": "wall"}, "nodes": {"a": {}, "b": {}}}
    near |= {"links": NEAR_AND_FAR["links"][:1], "run": NEAR_AND_FAR["run"][:2]}
    outcome = run_lab(json.dumps(near), wrapper=wrapper)
    assert outcome.status == 0
    assert outcome.record["verdict"]["level"] == "invalid"
    ticks = outcome.record["time"]["virtual_s"] * 100 * 2
    assert outcome.record["fidelity"]["timers"] > 5 * ticks, "no host keeps two guests together every 10 us"


def test_events_are_in_the_order_of_their_instants(per_node: Outcome) -> None:
    instants = [event["t_ns"] for event in per_node.events]
    assert instants == sorted(instants)


@pytest.fixture
def going(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run of three guests, held at 2 s, and its directory."""
    with held_run(tmp_path, APART, "2s") as held:
        yield held


def kernels_by_name(process: subprocess.Popen[str]) -> dict[str, int]:
    """The kernels' processes by the names of their guests."""
    return {Path(os.readlink(f"/proc/{pid}/fd/1")).name.removesuffix(".log"): pid for pid in kernels(process.pid)}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_guest_that_is_lost_ends_the_run_and_is_named(
    going: tuple[subprocess.Popen[str], Path], how: signal.Signals
) -> None:
    process, out = going
    assert set(kernels_by_name(process)) == {"a", "b", "c"}
    os.kill(kernels_by_name(process)["b"], how)
    assert process.wait(PATIENCE_HOST_S) == 1
    outcome = Outcome(1, "", out)
    assert outcome.record["state"] == "failed"
    assert "guest b" in outcome.record["reason"]
    assert outcome.record["reason"].endswith("at 2.000000 virtual seconds")


def test_a_guest_whose_kernel_panics_ends_the_run_and_is_named(run_lab: RunLab) -> None:
    outcome = run_lab(APART + "  - {on: b, name: crash, exec: sh -c 'sleep 2; echo c > /proc/sysrq-trigger'}\n")
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert "guest b" in outcome.record["reason"]
    found = re.search(r"at (\d+\.\d+) virtual seconds", outcome.record["reason"])
    assert found and 2.0 <= float(found[1]) < 3.0


def test_all_guests_are_held_and_stepped_as_one(going: tuple[subprocess.Popen[str], Path]) -> None:
    _, out = going
    with Client(out) as client:
        assert client.request(CLOCK_SHOW)["virtual_s"] == 2.0
        stepped = client.request(CLOCK_STEP)["virtual_s"]
        assert stepped > 2.0
        assert client.request(CLOCK_UNTIL, at="7.25s")["virtual_s"] == 7.25
        client.request(CLOCK_RELEASE)
        held = client.request(CLOCK_HOLD)
        assert held["held"]
        assert client.request(CLOCK_SHOW)["virtual_s"] == held["virtual_s"]
        assert client.request(CLOCK_TDF, tdf="4")["tdf"] == 4
        client.request(STOP)


@pytest.mark.parametrize("drive", ["work", "event", "wall"])
def test_who_works_in_a_clock_that_was_held_by_hand_sends_nothing_into_the_past(tmp_path: Path, drive: str) -> None:
    time = f"{{drive: {drive}, max_speed: 4}}"
    lab = APART.replace("{tdf: 2}", time).replace("-c 100000 b", "-c 5 b").replace("sleep 100000", "sleep 8")
    with held_run(tmp_path, lab, "2s") as (process, out), Client(out) as client:
        # Each guest idles until long after the instant at which all are held.
        client.request(CLOCK_RELEASE)
        held = client.request(CLOCK_HOLD)["virtual_s"]
        shell = ("shell", out, "b", "sh", "-c", "echo begun; exec ping -c 3 -i 0.2 a")
        with started(*shell, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as typed:
            assert typed.stdout and typed.stdout.readline() == "begun\n"
            assert client.request(CLOCK_SHOW)["virtual_s"] == held
            client.request(CLOCK_RELEASE)
            assert "3 received" in typed.stdout.read()
        outcome = outcome_of(process, out)
    assert outcome.status == 0, outcome.record["reason"]


def test_what_somebody_does_in_a_guest_that_waits_for_the_host_is_not_answered_in_its_past(tmp_path: Path) -> None:
    lab = {
        "name": "watched",
        "time": {"drive": "work", "max_speed": 20},
        "nodes": {"a": {"guest": "a"}, "b": {}},
        "links": [{"endpoints": ["a", "b"], "rate": "100Mbit", "delay": "5ms"}],
        "run": [
            {
                "on": "b",
                "name": "web",
                "exec": f"{PYTHON} -m http.server 8000",
                "ready": {"tcp": 8000},
                "background": True,
            },
            {"on": "a", "name": "ping", "exec": "ping -q -i 0.1 b", "after": "web", "background": True},
            {"on": "a", "name": "stays", "exec": "sleep 10000", "after": "web"},
        ],
    }
    with dilaton.start(lab, out=tmp_path / "run") as run:
        run.execute("a", "curl -s -o /dev/null --retry 20 --retry-delay 1 --retry-connrefused http://b:8000/")
        for _ in range(6):
            run.fault({"load": {"from": "a", "to": "b", "http": "20/s", "port": 8000}, "for": "500ms"})
            run.execute("a", "sleep 1")
        ended = run.stop()
    assert ended.record.state == "aborted", ended.record.reason
