"""Routing daemons of routers find the paths that the plan would have set, and others when a link goes."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

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
