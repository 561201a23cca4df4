"""Segments, switches, equal paths and IPv6 carry packets as planned."""

from __future__ import annotations

import json

import pytest

from tests.conftest import PYTHON, RunLab

MIXED = """
name: mixed
time: {drive: work}
addressing: {ipv6: fd00::/48, loopback: 192.168.7.0/24}
routing: ecmp
nodes: {a: , b: , c: , d: , r1: {kind: router}, r2: {kind: router}, r3: {kind: router}, s1: {kind: switch}, s2: {kind: switch}}
links:
  - {endpoints: [a, b, r1], rate: 100Mbit, delay: 5ms}
  - r1 -- r2
  - r1 -- r3
  - r2 -- s1
  - r3 -- s1
  - s1 -- s2
  - s2 -- c
  - s2 -- d
run:
  - {on: a, name: segment, exec: ping -4 -c 3 -i 0.1 b}
  - {on: a, name: far, exec: ping -4 -c 3 -i 0.1 c}
  - {on: a, name: far6, exec: ping -6 -c 3 -i 0.1 d}
  - {on: c, name: loopback, exec: ping -4 -c 3 -i 0.1 r1}
  - {on: c, name: loopback6, exec: ping -6 -c 3 -i 0.1 r3}
expect: [segment.loss == 0%, far.loss == 0%, far6.loss == 0%, loopback.loss == 0%, loopback6.loss == 0%]
"""


def test_segments_switches_and_loopbacks_are_reached_by_both_versions_of_ip(run_lab: RunLab) -> None:
    outcome = run_lab(MIXED)
    assert outcome.status == 0
    assert "ttl=64" in outcome.stdout("a", "segment")
    assert "ttl=62" in outcome.stdout("a", "far")
    # 5 ms each way, not 5 ms into the segment and 5 ms out of it.
    assert 0.010 <= outcome.process("segment")["result"]["rtt"]["min"] < 0.015


NAT = """
name: nat
nodes: {laptop: , home: {kind: nat, outside: eth1}, server: }
addressing: {ipv6: fd00::/48}
links: [laptop -- home, home -- server]
run:
  - {on: server, name: web, exec: python3 -m http.server 80 -b ::, ready: {tcp: 80}, background: true}
  - {on: laptop, name: private, exec: python3 -m http.server 80 -b ::, ready: {tcp: 80}, background: true}
  - {on: laptop, name: outwards, exec: curl -sS4 -o /dev/null server, start: 1s, after: [web, private]}
  - {on: laptop, name: outwards6, exec: curl -sS6 -o /dev/null server, start: 1s, after: [web, private]}
  - {on: server, name: inwards, exec: curl -sS4 --max-time 5 laptop, start: 1s, after: [web, private], expect_exit: 28}
  - {on: server, name: inwards6, exec: curl -sS6 --max-time 5 laptop, start: 1s, after: [web, private], expect_exit: 28}
"""


def test_a_nat_shows_its_own_address_and_lets_nobody_in(run_lab: RunLab) -> None:
    outcome = run_lab(NAT)
    assert outcome.status == 0
    plan = json.loads((outcome.path / "plan.json").read_text())
    home = next(node for node in plan["nodes"] if node["name"] == "home")
    own = {address.partition("/")[0] for address in home["interfaces"][1]["addresses"]}
    log = (outcome.path / "nodes/server/web.stderr").read_text()
    assert {line.split()[0].removeprefix("::ffff:") for line in log.splitlines()} == own


MORE = """  - {on: laptop, name: echo, exec: ping -4 -c 1 -W 2 server, start: 10s}
  - {on: laptop, name: echo6, exec: ping -6 -c 1 -W 2 server, start: 10s}
  - {on: laptop, name: expired, exec: ping -4 -c 1 -W 2 -t 1 server, start: 10s, expect_exit: 1}
  - {on: home, name: fragments, exec: ping -4 -c 1 -W 2 -s 3000 server, start: 10s}
  - {on: laptop, name: large, exec: ping -4 -c 3 -i 0.1 -W 2 -s 3000 server, start: 11s}
  - {on: laptop, name: large6, exec: ping -6 -c 3 -i 0.1 -W 2 -s 3000 server, start: 12s}
"""
"""What finds back to who is behind the node, and what the node itself sends."""

FILTERS = "  - {on: home, name: filters, exec: sh -c '/proc/1/exe masquerade eth1'}\n"
"""What the recipe has where the kernel has no iptables."""


def check_without_iptables(run_lab: RunLab) -> None:
    """Makes sure that filters of packets hide who is behind a node as a node of the kind `nat` does."""
    far = "{endpoints: [home, server], delay: 5ms}"
    lab = NAT.replace("name: nat\n", "name: nat\ntime: {drive: event}\n").replace("home -- server]", f"{far}]") + MORE
    with_filters = lab.replace("{kind: nat, outside: eth1}", "{kind: router}").replace("run:\n", f"run:\n{FILTERS}")
    shown = []
    for one in (lab, with_filters):
        outcome = run_lab(one)
        assert outcome.status == 0
        log = (outcome.path / "nodes/server/web.stderr").read_text()
        shown.append(sorted(line.split()[0] for line in log.splitlines()))
        assert "Time to live exceeded" in outcome.stdout("laptop", "expired")
        for name in ("echo", "echo6", "fragments", "large", "large6"):
            assert outcome.process(name)["result"]["rtt"]["min"] == pytest.approx(0.01, abs=20e-6)
    assert shown[0] == shown[1]


def test_a_nat_does_the_same_without_iptables(run_lab: RunLab) -> None:
    check_without_iptables(run_lab)


LOOP = """
name: loop
time: {drive: work}
nodes: {a: , b: , s1: {kind: switch, stp: true}, s2: {kind: switch, stp: true}, s3: {kind: switch, stp: true}}
links: [a -- s1, b -- s2, s1 -- s2, s2 -- s3, s3 -- s1]
run:
  - {on: a, exec: ping -c 3 b, start: 40s}
expect: [ping.loss == 0%]
"""


def test_a_loop_of_switches_is_opened_by_its_spanning_tree(run_lab: RunLab) -> None:
    outcome = run_lab(LOOP)
    assert outcome.status == 0
    assert "DUP" not in outcome.stdout("a", "ping")


FLOWS = 64

SEND = f"""
import socket
for port in range({FLOWS}):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("h16", 10000 + port))
"""


def test_flows_are_spread_over_all_equal_paths_of_a_fat_tree(run_lab: RunLab) -> None:
    """64 flows over 4 paths, at 2 nodes one after the other: one path stays empty once in 10 million runs.

    It is the second choice that would fail if nodes did not choose each in its own way.
    """
    count = ["sh", "-c", "cat /sys/class/net/eth[0123]/statistics/tx_packets"]
    watched = ["edge1", "agg1", "agg2"]
    runs = [{"on": "h1", "name": "send", "exec": [str(PYTHON), "-c", SEND]}]
    runs += [{"on": node, "name": f"count-{node}", "exec": count, "after": "send"} for node in watched]
    lab = {
        "name": "flows",
        "time": {"drive": "work"},
        "topology": {"generate": "fat-tree", "k": "4"},
        "routing": "ecmp",
    }
    outcome = run_lab(json.dumps(lab | {"run": runs}))
    assert outcome.status == 0
    # Interfaces of an edge switch: two hosts, then two up; of an aggregation switch: two down, then two up.
    sent = {node: [int(text) for text in outcome.stdout(node, f"count-{node}").split()][2:] for node in watched}
    assert sum(sent["edge1"]) == sum(sent["agg1"]) + sum(sent["agg2"]) == FLOWS
    assert min(sent["agg1"] + sent["agg2"]) > 0
