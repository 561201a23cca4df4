"""What a lab asks of its links is what the kernel does: disciplines, losses of certain packets, traces, changes."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.datagrams import SINK

LINKS = {
    "codel": "rate: 10Mbit, delay: 1ms, queue: {discipline: codel, ecn: true, target: 2ms, interval: 50ms, limit: 77}",
    "fq-codel": "rate: 10Mbit, queue: {discipline: fq_codel, flows: 4096}",
    "pie": "rate: 10Mbit, queue: {discipline: pie}",
    "red": "rate: 10Mbit, delay: 10ms, queue: {discipline: red, limit: 100KB, min: 8KB, max: 24KB, ecn: true}",
    "cake": "rate: 10Mbit, queue: {discipline: cake, limit: 1MB}",
    "sfq": "rate: 10Mbit, queue: {discipline: sfq}",
    "fq": "rate: 10Mbit, queue: {discipline: fq}",
    "tbf": "rate: 10Mbit, queue: {discipline: tbf, burst: 10KB, limit: 20KB}",
    "htb": "rate: 10Mbit, queue: {discipline: htb, burst: 10KB, limit: 30}",
    "fast": "rate: 100Gbit, queue: {limit: 16000000B}",
    "gemodel": 'netem: "loss gemodel 1% 10% 90% 0.1%"',
    "state": 'netem: "loss state 1% 50% 2% 60% 0.5%"',
    "twice": "rate: 10Mbit, duplicate: 1%",
    "all": 'netem: "delay 10ms 2ms 25% distribution pareto loss 1% 25% duplicate 1% 10% corrupt 0.1% 5% reorder 2% 50% gap 5"',
}
"""A link to each of these nodes from the hub, in this order: the first is eth0."""

SHOWN = {
    "codel": [
        "netem 1: root limit 195389 delay 1ms",
        "hfsc 2: parent 1:1 default 1",
        "codel 3: parent 2:1 limit 77p target 2ms interval 50ms ecn",
    ],
    "fq-codel": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "hfsc 2: parent 1:1 default 1",
        "fq_codel 3: parent 2:1 limit 1000p flows 4096 quantum 1514 target 5ms interval 100ms memory_limit 32Mb drop_batch 64",
    ],
    "pie": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "hfsc 2: parent 1:1 default 1",
        "pie 3: parent 2:1 limit 1000p target 15ms tupdate 20ms alpha 2 beta 20",
    ],
    "red": [
        "netem 1: root limit 1953191 delay 10ms",
        "hfsc 2: parent 1:1 default 1",
        "red 3: parent 2:1 limit 100000b min 8000b max 24000b ecn",
    ],
    "cake": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "cake 2: parent 1:1 bandwidth 10Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw "
        "overhead 0 memlimit 1000000b",
    ],
    "sfq": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "hfsc 2: parent 1:1 default 1",
        "sfq 3: parent 2:1 limit 1000p quantum 1514b depth 127 divisor 1024",
    ],
    "tbf": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "tbf 2: parent 1:1 rate 10Mbit burst 10000b lat 3.44e+03s",
        "bfifo 3: parent 2:1 limit 20000b",
    ],
    "htb": [
        "netem 1: root limit 1000 rate 10000Tbit",
        "htb 2: parent 1:1 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000",
        "pfifo 3: parent 2:1 limit 30p",
    ],
    "gemodel": ["netem 1: root limit 1000 loss gemodel p 1% r 10% 1-h 90% 1-k 0.1%"],
    "state": ["netem 1: root limit 1000 loss state p13 1% p31 50% p32 2% p23 60% p14 0.5%"],
    "twice": [
        "netem 1: root limit 1000 duplicate 1% rate 10000Tbit",
        "hfsc 2: parent 1:1 default 1",
        "pfifo 3: parent 2:1 limit 1000p",
    ],
    "all": [
        "netem 1: root limit 3516625 delay 10ms 2ms 25% loss 1% 25% duplicate 1% 10% reorder 2% 50% corrupt 0.1% 5% gap 5"
    ],
}
"""How `tc qdisc show` prints the disciplines of a link."""

CHANGED_AT_S = 0.5

TRACE_MS = [1, 1, 2, 5, 5, 5, 9, 10]
TRACED_PACKETS = 300
SIZE_BYTES = 700

SEND = f"""
import socket, struct
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect(("traced", 9))
packets = [struct.pack("=QQ", number, 0).ljust({SIZE_BYTES - 28}) for number in range({TRACED_PACKETS})]
for packet in packets:
    sender.send(packet)
"""


def lab() -> str:
    """All links of this file around one hub."""
    nodes = ", ".join(f"{name}: {{}}" for name in (*LINKS, "every", "listed", "traced", "near", "changed"))
    links = "\n".join(f"  - {{endpoints: hub -- {name}, {fields}}}" for name, fields in LINKS.items())
    python = [str(PYTHON), "-c"]
    return f"""
name: impairments
time: {{drive: work, tdf: 40}}
nodes: {{hub: {{}}, {nodes}}}
links:
{links}
  - {{endpoints: hub -- every, a_to_b: {{loss: {{every: 3}}}}}}
  - {{endpoints: hub -- listed, a_to_b: {{loss: {{packets: [2, 4]}}}}}}
  - {{endpoints: hub -- traced, delay: 1ms, trace: {{file: trace}}}}
  - {{endpoints: hub -- near, a_to_b: {{trace: {{file: trace}}, queue: {{limit: 10}}}}}}
  - {{endpoints: hub -- changed, rate: 10Mbit, delay: {{mean: 10ms, jitter: 100us}}}}
changes:
  - {{at: {CHANGED_AT_S}s, link: changed -- hub, delay: 30ms, a_to_b: {{loss: {{every: 2}}}}}}
  - {{at: {CHANGED_AT_S}s, link: hub -- fq-codel, queue: {{target: 7ms}}}}
  - {{at: {CHANGED_AT_S}s, link: hub -- traced, delay: 3ms}}
  - {{at: {CHANGED_AT_S}s, link: hub -- near, a_to_b: {{queue: {{limit: 20}}}}}}
run:
  - {{on: hub, name: show, exec: tc qdisc show}}
  - {{on: hub, name: rates, exec: sh -c 'tc class show dev eth0; tc class show dev eth9'}}
  - {{on: hub, name: every, exec: ping -c 9 -i 0.01 -W 0.1 every}}
  - {{on: hub, name: listed, exec: ping -c 6 -i 0.01 -W 0.1 listed}}
  - {{on: hub, name: before, exec: ping -c 4 -i 0.05 changed}}
  - {{on: hub, name: after, start: 0.6s, exec: ping -c 4 -i 0.05 -W 0.2 changed}}
  - {{on: hub, name: later, start: 0.6s, exec: sh -c 'tc -s qdisc show dev eth{len(LINKS) + 4}; tc qdisc show dev eth1'}}
  - {{on: traced, name: sink, exec: {json.dumps([*python, SINK])}, ready: {{output: "^.]"}}}}
  - {{on: hub, name: send, exec: {json.dumps([*python, SEND])}, after: [sink, later]}}
  - {{on: near, name: sink-near, exec: {json.dumps([*python, SINK])}, ready: {{output: "^.]"}}}}
  - {{on: hub, name: send-near, exec: {json.dumps([*python, SEND.replace("traced", "near")])}, after: [sink-near, send]}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The one run that all tests look at."""
    directory = tmp_path_factory.mktemp("lab")
    (directory / "trace").write_text("".join(f"{instant}\n" for instant in TRACE_MS))
    path = directory / "lab.yaml"
    path.write_text(lab())
    outcome = run_lab_once(path)
    assert outcome.status == 0
    return outcome


@pytest.mark.parametrize("node", SHOWN)
def test_tc_shows_what_was_asked_for(outcome: Outcome, node: str) -> None:
    device = f" dev eth{list(LINKS).index(node)}"
    lines = outcome.stdout("hub", "show").splitlines()
    found = [line.replace(device, "").replace(" refcnt 2", "") for line in lines if f"{device} " in line]
    # Pie's 15 ms in ticks of the kernel: of 10 ms in the stock one, of 1 ms in ours.
    found = [line.replace("tupdate 15ms", "tupdate 20ms") for line in found]
    assert [re.sub(" +", " ", line).strip().removeprefix("qdisc ") for line in found] == SHOWN[node]


def test_shapers_have_the_rate_of_the_link(outcome: Outcome) -> None:
    shown = outcome.stdout("hub", "rates")
    assert "class hfsc 2:1 parent 2: leaf 3: ls m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 10Mbit" in shown
    assert re.search(r"class htb 2:1 root leaf 3: prio 0 rate 100Gbit ceil 100Gbit burst \d+b", shown)


def test_a_shaper_that_was_down_while_packets_waited_carries_again(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: waiting
nodes: {a: , b: }
links: [{endpoints: a -- b, rate: 1Mbit, queue: {limit: 200kB}}]
run:
  - {on: a, name: fill, exec: ping -i 0.001 -c 200 -s 1400 -W 0.1 b, expect_exit: any}
  - {on: a, name: ping, exec: ping -c 2 -i 0.1 b, start: 2s}
changes:
  - {at: 1s, link: a -- b, down: true}
  - {at: 1500ms, link: a -- b, down: false}
"""
    )
    assert outcome.process("ping")["result"]["loss"] == 0


def missing(outcome: Outcome, process: str, sent: int) -> list[int]:
    """The numbers of the packets of a ping that had no reply."""
    got = {int(number) for number in re.findall(r"icmp_seq=(\d+)", outcome.stdout("hub", process))}
    return sorted(set(range(1, sent + 1)) - got)


def test_exactly_the_packets_that_are_named_are_lost(outcome: Outcome) -> None:
    assert missing(outcome, "every", 9) == [3, 6, 9]
    assert missing(outcome, "listed", 6) == [2, 4]


def test_a_change_comes_at_its_instant_and_leaves_alone_what_it_does_not_name(outcome: Outcome) -> None:
    before, after = (outcome.process(name)["result"]["rtt"]["min"] for name in ("before", "after"))
    assert (before, after) == (pytest.approx(0.020, abs=0.0005), pytest.approx(0.060, abs=0.0005))
    assert missing(outcome, "after", 4) == [2, 4]
    events = [event for event in outcome.events if event["kind"] == "link-changed"]
    changed = ["eth1--fq-codel", "eth16--traced", "eth17--near", "eth18--changed"]
    assert sorted(event["link"] for event in events) == [f"hub:{name}:eth0" for name in changed]
    assert all(event["t_ns"] == pytest.approx(CHANGED_AT_S * 1e9, abs=1_000_000) for event in events)
    shown = outcome.stdout("hub", "later")
    # tc prints what the kernel keeps, in steps of 64 ns.
    assert re.search("delay 30ms  (99.*|100)us", shown)
    assert "rate 10Mbit" in shown
    assert re.search("fq_codel .* flows 4096 .* target 7ms ", shown)
    # The disciplines are the same ones: what they have counted is still there.
    assert [int(count) for count in re.findall(r"Sent \d+ bytes (\d+) pkt", shown)][:2] != [0, 0]


def arrivals_ms(outcome: Outcome, node: str, process: str) -> dict[int, float]:
    """When each packet arrived, in ms of virtual time."""
    got = json.loads(outcome.stdout(node, process).splitlines()[-1])
    # Instants of the guest's date, which begins the run at some date: the first opportunity of a cycle aligns them.
    return {number: instant / 1e6 for number, _, instant in got}


@pytest.mark.parametrize(("node", "process"), [("traced", "sink"), ("near", "sink-near")])
def test_each_millisecond_delivers_the_bytes_of_its_opportunities(outcome: Outcome, node: str, process: str) -> None:
    """The queue is never empty between its first and last packet, so each opportunity is used to its last byte."""
    arrived = sorted(arrivals_ms(outcome, node, process).items())
    # The first packet is a little late: its way through the kernel is cold.
    phase = statistics.median_low(instant % 1 for _, instant in arrived)
    first = round(arrived[0][1] - phase) + phase
    by_ms = Counter(round(instant - first) for _, instant in arrived)
    off = [abs(instant - first - round(instant - first)) for _, instant in arrived]
    # But for a few in whose moment the host charges the guest for what it did not have.
    assert sum(late >= 0.05 for late in off) <= 3, f"on whole milliseconds: {sorted(off)[-10:]}"
    # Where in the trace the first packet left is unknown; exactly one place explains all arrivals.
    places = [place for place in range(len(TRACE_MS)) if explains(by_ms, place)]
    assert places, by_ms


def explains(by_ms: Counter[int], place: int) -> bool:
    """Whether packets that leave from opportunity number `place` on arrive as they did."""
    period = TRACE_MS[-1]
    total = sum(by_ms.values())
    expected: Counter[int] = Counter()
    for number in range(total):
        opportunity = place + ((number + 1) * SIZE_BYTES - 1) // 1500
        expected[opportunity // len(TRACE_MS) * period + TRACE_MS[opportunity % len(TRACE_MS)] - TRACE_MS[place]] += 1
    return expected == by_ms


def test_a_full_queue_before_a_trace_drops_from_its_end(outcome: Outcome) -> None:
    assert len(arrivals_ms(outcome, "traced", "sink")) == TRACED_PACKETS
    numbers = list(arrivals_ms(outcome, "near", "sink-near"))
    assert numbers[:20] == list(range(20))
    assert 20 <= len(numbers) < TRACED_PACKETS


def test_a_congestion_control_that_no_kernel_has_is_refused_before_anything_starts(run_lab: RunLab) -> None:
    outcome = run_lab("name: x\nnodes: {a: {sysctls: {net.ipv4.tcp_congestion_control: nosuch}}}\n")
    assert (outcome.status, outcome.path.exists()) == (2, False)
    assert ":2:22: nodes.a.sysctls: nosuch: the guest's kernel has no such congestion control" in outcome.terminal
