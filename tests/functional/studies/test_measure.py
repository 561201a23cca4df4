"""What is measured agrees with what the programs say, to the byte and to the instant."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest

import dilaton
from dilaton.run.loading import Run
from dilaton.service.conduct import FIGURES
from tests.conftest import Outcome, RunLab

BYTES_SENT = 5_000_000
SINK = """
import socket
door = socket.create_server(("", 5201))
peer, _ = door.accept()
print(sum(map(len, iter(lambda: peer.recv(65536), b""))))
"""
BULK = f"""
import socket
plug = socket.create_connection(("b", 5201))
plug.sendall(bytes({BYTES_SENT}))
plug.shutdown(socket.SHUT_WR)
plug.recv(1)
"""
"""Waits until all has arrived, for which the end of a test of iperf3 does not."""
BURSTS, BURST_PACKETS = 150, 50
"""More at once than the queue holds, and again before it is half empty."""
FLOOD = f"""
import socket, time
plug = socket.socket(type=socket.SOCK_DGRAM)
for _ in range({BURSTS}):
    for _ in range({BURST_PACKETS}):
        plug.sendto(bytes(1000), ("c", 9))
    time.sleep(0.005)
"""
END_NS = 3 * 10**9
QUEUE_PACKETS = 20
LOSS_PERIOD, PINGS = 10, 45
PERIODS_NS = {"interfaces": 100_000_000, "tcp": 10_000_000, "nodes": 250_000_000}

LAB = f"""
name: measure
time: {{drive: work, tdf: 20}}
nodes: {{a: {{}}, b: {{}}, c: {{}}, d: {{}}}}
links:
  - {{endpoints: "a:eth0 -- b:eth0", rate: 100Mbit, delay: 5ms, queue: {{limit: 1000}}}}
  - {{endpoints: "b:eth1 -- c:eth0", rate: 10Mbit, delay: 1ms, queue: {{limit: {QUEUE_PACKETS}}}}}
  - {{endpoints: "a:eth1 -- d:eth0", delay: 1ms, a_to_b: {{loss: {{every: {LOSS_PERIOD}}}}}}}
run:
  - {{on: b, name: server, exec: [python3, -c, {json.dumps(SINK)}], ready: {{tcp: 5201}}, background: true}}
  - {{on: a, name: bulk, exec: [python3, -c, {json.dumps(BULK)}], after: server, start: 100ms}}
  - {{on: b, name: flood, exec: [python3, -c, {json.dumps(FLOOD)}]}}
  - {{on: a, name: ping, exec: ping -c 3 -i 0.1 b, start: 2500ms}}
  - {{on: a, name: losses, exec: ping -c {PINGS} -i 0.01 d}}
  - {{on: c, name: last, exec: sleep 3.5}}
stop_after: {END_NS}ns
measure:
  interfaces: 100ms
  tcp: 10ms
  nodes: 250ms
  capture:
    - a:eth0
    - {{interface: "b:eth0", filter: icmp, snaplen: 60}}
    - {{interface: "c:eth0", filter: udp, snaplen: 60}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """A run with a TCP flow, a flood of UDP through a small queue, and a ping, which draws figures at its end."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(FIGURES)
        return run_lab_once(LAB)


@pytest.fixture(scope="module")
def run(outcome: Outcome) -> Run:
    """Its tables."""
    assert outcome.status == 0
    return dilaton.load(outcome.path)


def costs(outcome: Outcome) -> list[dict[str, str]]:
    """The rows of sampler.csv."""
    return list(csv.DictReader((outcome.path / "measure" / "guest0" / "sampler.csv").read_text().splitlines()))


def test_what_measured_something_has_figures_unless_they_are_to_come_later(outcome: Outcome, run_lab: RunLab) -> None:
    assert "<svg" in (outcome.path / "report.html").read_text()
    later = run_lab("name: x\nnodes: {a: {}}\nmeasure: {nodes: 1ms}\nrun: [{on: a, exec: sleep 0.1}]\n")
    assert any(later.path.glob("measure/*/nodes.csv"))
    assert "<svg" not in (later.path / "report.html").read_text()


@pytest.mark.parametrize("name", PERIODS_NS)
def test_samples_are_taken_at_every_multiple_of_the_period_or_counted_as_missed(outcome: Outcome, name: str) -> None:
    rows = [row for row in costs(outcome) if row["kind"] == name]
    instants = [int(row["t_ns"]) for row in rows]
    period_ns = PERIODS_NS[name]
    assert all(instant % period_ns == 0 for instant in instants)
    assert instants == sorted(set(instants))
    assert len(rows) + sum(int(row["missed"]) for row in rows) == END_NS // period_ns + 1
    assert all(0 <= int(row["late_ns"]) < period_ns for row in rows)


def test_what_measuring_took_is_in_the_record(outcome: Outcome, run: Run) -> None:
    fidelity = run.record.fidelity
    assert fidelity is not None
    assert fidelity.measuring_share is not None
    assert fidelity.busy is not None
    cost_s = sum(int(row["cpu_ns"]) for row in costs(outcome)) / 1e9
    assert fidelity.measuring_share == pytest.approx(cost_s / (fidelity.busy * run.record.time.virtual_s))


def test_every_table_has_as_many_rows_as_the_sampler_says(outcome: Outcome, run: Run) -> None:
    for name, table in {"interfaces": run.interfaces, "tcp": run.tcp, "nodes": run.nodes}.items():
        assert len(table) == sum(int(row["count"]) for row in costs(outcome) if row["kind"] == name)
    assert set(zip(run.interfaces["node"], run.interfaces["interface"], strict=True)) == {
        ("a", "eth0"),
        ("b", "eth0"),
        ("b", "eth1"),
        ("c", "eth0"),
        ("a", "eth1"),
        ("d", "eth0"),
    }


def test_a_capture_without_a_filter_has_what_the_interface_has_counted(run: Run) -> None:
    counted = run.interfaces.query("node == 'a' and interface == 'eth0'").iloc[-1]
    packets = run.packets("a:eth0")
    for direction, prefix in (("out", "tx"), ("in", "rx")):
        found = packets[packets["direction"] == direction]
        assert len(found) == counted[f"{prefix}_packets"]
        assert found["length_bytes"].sum() == counted[f"{prefix}_bytes"]
    (interface,) = run.capture("a:eth0").interfaces
    assert (interface.name, interface.received, interface.dropped) == ("a:eth0", len(packets), 0)


def test_the_bytes_of_a_flow_are_those_that_its_programs_have_sent_and_received(outcome: Outcome, run: Run) -> None:
    assert int(outcome.stdout("b", "server")) == BYTES_SENT
    packets = run.packets("a:eth0")
    assert packets[packets["destination_port"] == 5201]["payload_bytes"].sum() == BYTES_SENT
    flow = run.tcp[(run.tcp["node"] == "b") & (run.tcp["source_port"] == 5201)]
    # The kernel counts the end of a flow as a byte.
    assert 0 < flow["bytes_received"].max() <= BYTES_SENT + 1
    assert flow["rtt_us"].min() >= 10_000


def test_packets_that_a_queue_drops_are_counted_and_its_depth_never_exceeds_the_limit(
    outcome: Outcome, run: Run
) -> None:
    queue = run.interfaces.query("node == 'b' and interface == 'eth1'")
    lost = BURSTS * BURST_PACKETS - (run.packets("c:eth0")["direction"] == "in").sum()
    assert queue["queue_drops"].iloc[-1] == lost > 0
    assert QUEUE_PACKETS / 2 < queue["queue_packets"].max() <= QUEUE_PACKETS + 1
    assert (queue["lost_packets"] == 0).all()


def test_packets_that_a_link_loses_are_no_drops_of_its_queue(outcome: Outcome, run: Run) -> None:
    ends = run.interfaces.query("node == 'a' and interface == 'eth1'").iloc[-1]
    assert ends["lost_packets"] == PINGS // LOSS_PERIOD
    assert ends["queue_drops"] == 0
    assert outcome.process("losses")["result"]["received"] == PINGS - PINGS // LOSS_PERIOD


def test_filter_and_snaplen_decide_what_is_kept(run: Run) -> None:
    packets = run.packets("b:eth0")
    assert list(packets["protocol"].unique()) == ["icmp"]
    assert list(packets["direction"]) == ["in", "out"] * 3
    assert (packets["length_bytes"] == 98).all()


def test_packets_have_the_virtual_instant_at_which_they_passed(run: Run) -> None:
    """A request arrives at b when it has left the link of a; its answer leaves at once, and takes the delay to a."""
    here, there = run.packets("a:eth0"), run.packets("b:eth0")
    here = here[here["protocol"] == "icmp"]
    request, answer = (here[here["direction"] == direction]["t_ns"].to_numpy() for direction in ("out", "in"))
    assert abs(request - there[there["direction"] == "in"]["t_ns"].to_numpy()).max() < 100_000
    assert ((answer - request) >= 5_000_000).all() and ((answer - request) < 5_200_000).all()
    assert (abs(request - [2_505_000_000, 2_605_000_000, 2_705_000_000]) < 50_000_000).all()


@pytest.mark.parametrize(
    "program", [["capinfos", "-M", "-c", "-T", "-r"], ["tshark", "-T", "fields", "-e", "frame.time_epoch", "-r"]]
)
def test_the_fields_tools_read_captures(outcome: Outcome, run: Run, program: list[str]) -> None:
    file = outcome.path / "captures" / "a.eth0.pcapng"
    command = [*program[:-1], str(file)] if program[0] == "capinfos" else [*program, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    packets = run.packets("a:eth0")
    if program[0] == "capinfos":
        assert str(len(packets)) in done.stdout.split()
    else:
        instants = [round(float(line) * 1e9) for line in done.stdout.splitlines()]
        assert abs(packets["t_ns"].to_numpy() - instants).max() < 1000


def test_what_a_node_has_done_is_seen(run: Run) -> None:
    node = run.nodes.query("node == 'a'")
    assert node["cpu_ns"].is_monotonic_increasing and node["cpu_ns"].iloc[-1] > 0
    assert node["processes"].max() >= 1 and node["memory_bytes"].max() > 0


def test_a_full_disk_ends_the_capture_and_not_the_run(run_lab: RunLab, tmp_path: Path) -> None:
    """The run directory is on a disk of 40 MiB that vanishes with its command, so what is in it is copied out."""
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    copy.mkdir()
    script = f'"$@"; status=$?; cp -r {disk}/run/. {copy}; exit $status'
    small_disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(40 << 20), "--tmpfs", disk]
    outcome = run_lab(
        """
name: full-disk
time: {drive: work}
nodes: {a: {}, b: {}}
links: [{endpoints: "a:eth0 -- b:eth0", rate: 1Gbit}]
run:
  - {on: b, name: server, exec: iperf3 -s, ready: {tcp: 5201}, background: true}
  - {on: a, name: bulk, exec: iperf3 -c b -n 70M -J, after: server}
measure: {capture: ["a:eth0"]}
""",
        "--out",
        disk / "run",
        "--max-disk",
        "1GB",
        wrapper=[*small_disk, "sh", "-c", script, "sh"],
    )
    assert outcome.status == 0
    outcome.path = copy
    (event,) = [event for event in outcome.events if event["kind"] == "capture-ended"]
    assert (event["node"], event["interface"]) == ("a", "eth0")
    assert event["reason"] == "write captures/a.eth0.pcapng: No space left on device"
    capture = dilaton.load(copy).capture("a:eth0")
    assert capture.is_whole
    (interface,) = capture.interfaces
    assert interface.received == len(capture.table) + (interface.dropped or 0)
    assert (interface.dropped or 0) > 0


def test_a_capture_outlives_that_its_interface_is_down_and_rests_meanwhile(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: down
time: {drive: work}
nodes: {a: {}, b: {}}
links: [{endpoints: "a:eth0 -- b:eth0", delay: 1ms}]
changes:
  - {at: 1s, link: a -- b, down: true}
  - {at: 9s, link: a -- b, down: false}
run:
  - {on: a, name: before, exec: ping -c 1 b}
  - {on: a, name: after, exec: ping -c 1 b, start: 9500ms}
measure: {capture: ["a:eth0", "b:eth0"]}
"""
    )
    assert outcome.status == 0
    for capture in ("a:eth0", "b:eth0"):
        packets = dilaton.load(outcome.path).packets(capture)
        assert len(packets[packets.protocol == "icmp"]) == 4
    # One that asks again and again whether there is something would take all of the guest's CPU for eight of ten seconds.
    assert outcome.record["fidelity"]["busy"] < 0.4


def test_samples_that_take_longer_than_there_is_let_programs_begin_and_end(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: too-often
nodes: {a: {}, b: {}}
links: [a -- b]
run: [{on: a, name: sleep, exec: sleep 0.05}]
measure: {interfaces: 10us}
stop_after: 10s
"""
    )
    # It took for ever. A program that was to end at 10 s would be late by what is sampled meanwhile.
    [process] = outcome.record["processes"]
    assert process["outcome"] == "exited" and process["end_s"] < 10
    assert any("samples could not be taken" in reason["what"] for reason in outcome.record["verdict"]["reasons"])
