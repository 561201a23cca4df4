"""Links do to packets what the lab says. All nodes are around one hub, each with another kind of link."""

from __future__ import annotations

import itertools
import json
import statistics
from typing import Any

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.datagrams import SINK

BURST = """
import socket, struct, sys, time
host, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF + 25, 1 << 26)  # SO_SNDBUFFORCE
for number in range(count):
    sender.sendto(struct.pack("=QQ", number, time.monotonic_ns()).ljust(size), (host, 9))
"""
"""Sends datagrams as fast as it can: host, count, bytes. Each has its number and when it was sent."""

QUEUE_PACKETS = 20
FRAME_BYTES = 1000 + 28 + 14
"""1000 bytes of data, UDP and IP header, Ethernet header."""
SLOT_S = FRAME_BYTES * 8 / 1e6
"""What a frame takes on a link of 1 Mbit/s."""
BURST_PACKETS = 100
LOSSY_PACKETS = 4000
LOSS = 0.1

LAB = f"""
name: links
time: {{drive: work, tdf: 100}}  # a burst is sent before its first frame has left, on slow hosts too
nodes: {{hub: {{}}, plain: {{}}, lossy: {{}}, queue: {{}}, far-queue: {{}}, bytes: {{}}, skewed: {{}}, jumbo: {{}}, bulky: {{}}}}
links:
  - hub -- plain
  - {{endpoints: hub -- lossy, a_to_b: {{loss: {LOSS:%}}}}}
  - {{endpoints: hub -- queue, rate: 1Mbit, queue: {{limit: {QUEUE_PACKETS}}}}}
  - {{endpoints: hub -- far-queue, rate: 1Mbit, delay: 50ms, queue: {{limit: {QUEUE_PACKETS}}}}}
  - {{endpoints: hub -- bytes, rate: 1Mbit, queue: {{limit: 16KB}}}}
  - {{endpoints: hub -- skewed, a_to_b: {{delay: 10ms}}, b_to_a: {{delay: 30ms, rate: 10Mbit}}}}
  - {{endpoints: hub -- jumbo, mtu: 9000}}
  - {{endpoints: hub -- bulky, offload: true}}
run:
  - {{on: hub, name: ping-plain, exec: ping -c 3 -i 0.01 plain}}
  - {{on: hub, name: ping-skewed, exec: ping -c 5 -i 0.01 -s 1000 skewed}}
  - {{on: hub, name: largest, exec: ping -M do -c 1 -W 1 -s 1472 plain}}
  - {{on: hub, name: too-large, exec: ping -M do -c 1 -W 1 -s 1473 plain, expect_exit: 1}}
  - {{on: hub, name: jumbo-largest, exec: ping -M do -c 1 -W 1 -s 8972 jumbo}}
  - {{on: hub, name: jumbo-too-large, exec: ping -M do -c 1 -W 1 -s 8973 jumbo, expect_exit: 1}}
"""


def transfer(node: str, count: int, size: int, after: str) -> str:
    """The processes that send a burst of datagrams from the hub to a node, as lines of the lab."""
    sink, burst = ([str(PYTHON), "-c", code] for code in (SINK, BURST))
    exec_burst = [*burst, node, str(count), str(size)]
    return (
        f"  - {{on: {node}, name: sink-{node}, exec: {json.dumps(sink)}, ready: {{output: '^.]'}}}}\n"
        f"  - {{on: hub, name: burst-{node}, exec: {json.dumps(exec_burst)}, after: [sink-{node}, {after}]}}\n"
    )


def stream(node: str, after: str) -> str:
    """The processes that send 2 MB by TCP from the hub to a node and then read the node's counters."""
    count = "cat /sys/class/net/eth0/statistics/rx_bytes /sys/class/net/eth0/statistics/rx_packets"
    return (
        f"  - {{on: {node}, name: server-{node}, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}\n"
        f"  - {{on: hub, name: tcp-{node}, exec: iperf3 -c {node} -n 2M -J, after: [server-{node}, {after}]}}\n"
        f"  - {{on: {node}, name: count-{node}, exec: {count}, after: tcp-{node}}}\n"
    )


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that all tests look at; what loads the guest goes one after the other."""
    lab = LAB
    lab += transfer("queue", BURST_PACKETS, 1000, after="ping-skewed")
    lab += transfer("far-queue", BURST_PACKETS, 1000, after="burst-queue")
    lab += transfer("bytes", BURST_PACKETS, 1000, after="burst-far-queue")
    lab += transfer("lossy", LOSSY_PACKETS, 100, after="burst-bytes")
    lab += stream("plain", after="burst-lossy") + stream("bulky", after="tcp-plain")
    outcome = run_lab_once(lab)
    assert outcome.status == 0
    return outcome


def received(outcome: Outcome, node: str) -> list[list[int]]:
    """The `[number, sent, received]` of a node's sink."""
    got: list[list[int]] = json.loads(outcome.stdout(node, f"sink-{node}").splitlines()[-1])
    return got


def plan_of(outcome: Outcome, node: str) -> list[dict[str, Any]]:
    """The queue disciplines of the hub's interface towards a node, as planned."""
    plan = json.loads((outcome.path / "plan.json").read_text())
    number = next(number for number, link in enumerate(plan["links"]) if link["ends"][1]["node"] == node)
    found: list[dict[str, Any]] = plan["nodes"][0]["interfaces"][number]["egress"]["qdiscs"]
    return found


def test_a_link_with_nothing_said_is_there_and_does_nothing(outcome: Outcome) -> None:
    ping = outcome.process("ping-plain")["result"]
    assert (ping["received"], ping["loss"]) == (3, 0)
    assert ping["rtt"]["min"] < 0.001
    assert plan_of(outcome, "plain") == []


def test_a_packet_is_as_large_as_the_mtu_and_no_larger(outcome: Outcome) -> None:
    found = {
        name: outcome.process(name)["exit"] for name in ("largest", "too-large", "jumbo-largest", "jumbo-too-large")
    }
    assert found == {"largest": 0, "too-large": 1, "jumbo-largest": 0, "jumbo-too-large": 1}


def test_the_two_directions_have_delays_and_rates_of_their_own(outcome: Outcome) -> None:
    rtt = outcome.process("ping-skewed")["result"]["rtt"]
    # Back, 1000 + 8 + 20 + 14 bytes take 0.8336 ms at 10 Mbit/s.
    assert 0.040 + FRAME_BYTES * 8 / 10e6 <= rtt["min"] <= 0.040 + FRAME_BYTES * 8 / 10e6 + 0.001


@pytest.mark.parametrize("node", ["queue", "far-queue", "bytes"])
def test_a_burst_fills_the_queue_and_what_does_not_fit_is_dropped_from_its_end(outcome: Outcome, node: str) -> None:
    waiting = 16_000 // FRAME_BYTES if node == "bytes" else QUEUE_PACKETS
    # The one that is being sent does not wait.
    assert [number for number, _, _ in received(outcome, node)] == list(range(waiting + 1))


@pytest.mark.parametrize("node", ["queue", "far-queue", "bytes"])
def test_a_queue_empties_at_the_rate_of_the_link(outcome: Outcome, node: str) -> None:
    instants_s = [instant / 1e9 for _, _, instant in received(outcome, node)]
    gaps_s = [later - earlier for earlier, later in itertools.pairwise(instants_s)]
    # The median: one timer that the host delayed makes one gap too long and the next too short.
    assert statistics.median(gaps_s) == pytest.approx(SLOT_S, rel=0.03)


def test_packets_are_lost_at_random_with_the_probability_asked_for(outcome: Outcome) -> None:
    numbers = [number for number, _, _ in received(outcome, "lossy")]
    lost = LOSSY_PACKETS - len(numbers)
    # Five standard deviations of the binomial distribution: wrong once in two million runs.
    deviation = (LOSSY_PACKETS * LOSS * (1 - LOSS)) ** 0.5
    rows = sorted((after - before - 1 for before, after in itertools.pairwise(numbers)), reverse=True)
    assert abs(lost - LOSSY_PACKETS * LOSS) <= 5 * deviation, f"the longest rows of lost ones: {rows[:5]}"
    # Each on its own: as many neighbours are lost together as chance has it, not in rows.
    gone = set(range(LOSSY_PACKETS)) - set(numbers)
    pairs = sum(number + 1 in gone for number in gone)
    # Pairs may share a packet, and few of them are not spread like a normal distribution: six deviations are as seldom.
    deviation = (LOSSY_PACKETS * LOSS**2 * (1 + 2 * LOSS - 3 * LOSS**2)) ** 0.5
    assert abs(pairs - LOSSY_PACKETS * LOSS**2) <= 6 * deviation
    assert numbers == sorted(numbers)


def test_segments_cross_a_link_one_by_one_unless_offload_is_asked_for(outcome: Outcome) -> None:
    sizes = {}
    for node in ("plain", "bulky"):
        received_bytes, packets = map(int, outcome.stdout(node, f"count-{node}").split())
        sizes[node] = received_bytes / packets
    assert sizes["plain"] <= 1514
    assert sizes["bulky"] > 3 * 1514


LINE_DELAY_MS = 5

LINE = f"""
name: line
time: {{drive: work, tdf: 20}}
nodes: {{n1: {{}}, n2: {{}}, n3: {{}}, n4: {{}}}}
links:
  - {{endpoints: n1 -- n2, delay: {LINE_DELAY_MS}ms}}
  - {{endpoints: n2 -- n3, delay: {LINE_DELAY_MS}ms}}
  - {{endpoints: n3 -- n4, delay: {LINE_DELAY_MS}ms}}
run:
  - {{on: n1, name: ends, exec: ping -c 3 -i 0.01 n4}}
  - {{on: n4, name: back, exec: ping -c 3 -i 0.01 n1}}
  - {{on: n1, name: middle, exec: ping -c 3 -i 0.01 n3-eth1}}
  - {{on: n2, name: loopback, exec: ping -c 1 n2}}
"""


def test_packets_are_routed_over_a_line_of_nodes_and_add_up_its_delays(run_lab: RunLab) -> None:
    outcome = run_lab(LINE)
    assert outcome.status == 0
    for node, process, hops in (("n1", "ends", 3), ("n4", "back", 3), ("n1", "middle", 2)):
        result = outcome.process(process)["result"]
        assert result["received"] == 3
        assert 2 * hops * LINE_DELAY_MS / 1e3 <= result["rtt"]["min"] <= 2 * hops * LINE_DELAY_MS / 1e3 + 0.001
        assert f"ttl={64 - hops + 1}" in outcome.stdout(node, process)


NODES = 100


def test_a_line_of_a_hundred_nodes_is_built_and_crossed_by_the_first_packet(run_lab: RunLab) -> None:
    """The default TTL of 64 does not reach across, so both ends send with a larger one."""
    nodes = "\n".join(f"  n{number}: {{sysctls: {{net.ipv4.ip_default_ttl: '255'}}}}" for number in range(NODES))
    links = "\n".join(f"  - {{endpoints: n{number} -- n{number + 1}, delay: 1ms}}" for number in range(NODES - 1))
    last = f"n{NODES - 1}"
    outcome = run_lab(
        f"name: hundred\ntime: {{drive: work, tdf: 40}}\nnodes:\n{nodes}\nlinks:\n{links}\n"
        f"run: [{{on: n0, name: ping, exec: ping -c 2 -i 0.5 {last}}}]\n"
    )
    assert outcome.status == 0
    samples = outcome.process("ping")["result"]["samples"]
    assert len(samples) == 2
    # No address had to be resolved on the way: the first packet is as fast as the second.
    assert all(2 * (NODES - 1) * 1e-3 <= sample <= 2 * (NODES - 1) * 1e-3 + 0.010 for sample in samples)
