"""Routing daemons of routers find the paths that the plan would have set, and others when a link goes."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from tests.conftest import ROOT, Outcome, RunLab

GRAPH = ROOT / "examples" / "abilene" / "abilene.gml"

LAB = """
name: daemons
time: {{drive: work, tdf: 10}}
topology: {{gml: {graph}, names: label}}
routing: {routing}
addressing: {{loopback: 192.168.0.0/16, ipv6: "fd00::/48"}}
"""


def lab(routing: str) -> str:
    return LAB.format(graph=GRAPH, routing=routing)


def way_out(table: list[tuple[str, str]], to: str) -> str:
    """The interface that the longest prefix of a table gives an address."""
    fitting = [(ip_network(prefix), interface) for prefix, interface in table if ip_address(to) in ip_network(prefix)]
    return max(fitting, key=lambda entry: entry[0].prefixlen)[1]


def table_of(outcome: Outcome, router: str) -> list[tuple[str, str]]:
    text = outcome.stdout(router, f"table-{router}")
    return re.findall(r"^([\da-f.:/]+) .*?via \S+ dev (\S+)", text, re.MULTILINE)


@pytest.mark.parametrize("daemon", ["bird", "frr"])
def test_ospf_converges_to_the_cheapest_paths(run_lab: RunLab, daemon: str) -> None:
    planned = compile_plan(loads(lab("shortest-path"), str(ROOT / "lab.yaml")))
    show = "sh -c 'ip -4 route show; ip -6 route show'"
    tables = "".join(
        f"  - {{on: {node.name}, name: table-{node.name}, exec: {show}, start: 60s}}\n" for node in planned.nodes
    )
    outcome = run_lab(f"{lab(f'{{policy: ospf, daemon: {daemon}}}')}run:\n{tables}")
    assert outcome.status == 0
    for node in planned.nodes:
        static = [(route.to, route.hops[0].interface) for route in node.routes]
        found = table_of(outcome, node.name)
        for other in planned.nodes:
            for loopback in other.loopback if other is not node else []:
                to = loopback.partition("/")[0]
                assert way_out(found, to) == way_out(static, to), f"{node.name} to {other.name}, {to}"


BGP = """
name: bgp
time: {{tdf: 10}}
nodes: {{h: , r1: {{kind: router}}, r2: {{kind: router}}, r3: {{kind: router, as: 65001}}, k: }}
links: [h -- r1, r1 -- r2, r2 -- r3, r1 -- r3, r3 -- k]
routing: {{policy: bgp, daemon: {daemon}}}
addressing: {{ipv6: "fd00::/48"}}
faults:
  - {{name: around, at: 31s, link: r1 -- r3, down: true}}
  - {{name: out, at: 35s, for: 1s, link: h -- r1, down: true}}
run:
  - {{on: r1, name: before, exec: sh -c 'ip -4 route get 10.0.0.9; ip -6 route get fd00::9', start: 30s}}
  - {{on: r1, name: later, exec: sh -c 'ip -4 route get 10.0.0.9; ip -6 route get fd00::9', start: 34s}}
  - {{on: h, name: ping, exec: ping -i 0.1 -c 90 k, start: 30s}}
expect: [ping.outage within 0.15s of 1s]
"""


@pytest.mark.parametrize("daemon", ["bird", "frr"])
def test_bgp_finds_the_shortest_ways_and_others_when_a_link_goes(run_lab: RunLab, daemon: str) -> None:
    outcome = run_lab(BGP.format(daemon=daemon))
    assert outcome.status == 0, outcome.terminal
    assert re.findall(r"dev (\S+)", outcome.stdout("r1", "before")) == ["eth2", "eth2"]
    assert re.findall(r"dev (\S+)", outcome.stdout("r1", "later")) == ["eth1", "eth1"]


OWN = """
name: own
nodes: {{r1: {{kind: router, config: {directory}}}, b: }}
links: [r1 -- b]
run:
  - {{on: r1, name: routes, exec: ip route show 203.0.113.0/24, start: 8s}}
  - {{on: r1, name: vtysh, exec: vtysh -c 'show version', start: 8s}}
"""


def test_frr_runs_with_a_directory_of_its_own_configuration(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "daemons").write_text('bgpd=no\nzebra_options="  -A 127.0.0.1 -s 90000000"\n')
    (tmp_path / "frr.conf").write_text("hostname own\nip route 203.0.113.0/24 blackhole\n")
    outcome = run_lab(OWN.format(directory=tmp_path))
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("r1", "routes").startswith("blackhole 203.0.113.0/24")
    # Without its configuration vtysh would complain of that, on both its outputs.
    said = outcome.stdout("r1", "vtysh") + (outcome.path / "nodes/r1/vtysh.stderr").read_text()
    assert said.startswith("FRRouting")


CONVERGED = """
name: converged
time: {{drive: {drive}, tdf: 10}}
nodes: {{h: , r1: {{kind: router}}, r2: {{kind: router}}, r3: {{kind: router}}, k: }}
links: [h -- r1, r1 -- r2, r2 -- r3, r3 -- k]
routing: {{policy: {policy}, daemon: {daemon}}}
addressing: {{ipv6: "fd00::/48"}}
run:
  - {{on: h, name: early, exec: ping -c 1 -W 1 k, expect_exit: 1}}
  - {{on: h, name: ping, exec: ping -c 3 -i 0.2 k, after: converged}}
  - {{on: h, name: ping6, exec: ping -6 -c 3 -i 0.2 k, after: converged}}
  - {{on: h, name: to-the-end, exec: sleep 4, after: converged}}
faults:
  - {{name: cut, after: converged.end, wait: 2s, for: 1s, link: r2 -- r3, down: true}}
expect: [ping.loss == 0%, ping6.loss == 0%, converged.end > 0.1s, converged.end < 60s]
"""


@pytest.mark.parametrize(("policy", "daemon", "drive"), [("ospf", "bird", "event"), ("bgp", "frr", "work")])
def test_what_waits_for_routing_begins_when_the_last_route_is_there(
    run_lab: RunLab, policy: str, daemon: str, drive: str
) -> None:
    outcome = run_lab(CONVERGED.format(policy=policy, daemon=daemon, drive=drive))
    assert outcome.status == 0, outcome.terminal
    found = {process["name"]: process for process in outcome.record["processes"]}
    routers = [found[f"r{number}-converged"]["end_s"] for number in (1, 2, 3)]
    assert max(routers) <= found["ping"]["start_s"] <= max(routers) + 0.1
    assert len(set(routers)) > 1, "each ends with its own last route"


def test_a_network_to_which_no_route_comes_fails_the_run_and_is_named(run_lab: RunLab, tmp_path: Path) -> None:
    (tmp_path / "silent.conf").write_text("router id 10.0.0.9;\nprotocol device { }\n")
    config = tmp_path / "silent.conf"
    text = CONVERGED.format(policy="ospf", daemon="bird", drive="event")
    outcome = run_lab(text.replace("r2: {kind: router}", f"r2: {{kind: router, config: {config}}}"))
    assert outcome.status == 1
    said = (outcome.path / "nodes/r1/r1-converged.stderr").read_text()
    assert said.startswith("no route after 120 s to ")
    assert "/31" in said
