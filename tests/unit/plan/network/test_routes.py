"""Every node reaches every address that a path leads to, by a shortest path, with few routes.

Packets are forwarded here as the kernel does it: own addresses, then the longest matching prefix among the connected
/31s and the routes of the plan.
"""

from __future__ import annotations

import math
from collections import deque
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.lab import Lab
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Node, Plan

Edges = list[tuple[int, int]]


def lab(nodes: int, edges: Edges) -> Lab:
    return Lab.model_validate(
        {"name": "graph", "nodes": {f"n{i}": {} for i in range(nodes)}, "links": [f"n{a} -- n{b}" for a, b in edges]}
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    """Any graph without loops at a node: connected or not, with parallel links and cycles."""
    nodes = draw(st.integers(1, 9))
    if nodes == 1:
        return nodes, []
    pair = st.lists(st.integers(0, nodes - 1), min_size=2, max_size=2, unique=True)
    return nodes, [(a, b) for a, b in draw(st.lists(pair, max_size=18))]


class Forwarding:
    """The tables of a node."""

    def __init__(self, node: Node) -> None:
        self.own = {ip_interface(address).ip for interface in node.interfaces for address in interface.addresses}
        self.table: list[tuple[IPv4Network | IPv6Network, object]] = [
            (ip_interface(address).network, None) for i in node.interfaces for address in i.addresses
        ]
        for route in node.routes:
            [hop] = route.hops
            self.table.append((ip_network("0.0.0.0/0" if route.to == "default" else route.to), ip_address(hop.via)))
        self.table.sort(key=lambda entry: -entry[0].prefixlen)

    def next_hop(self, to: object) -> object:
        """The address of the next node; None: no route."""
        for network, via in self.table:
            if to in network:
                return via or to
        return None


def distances(nodes: int, edges: Edges, source: int) -> dict[int, int]:
    found = {source: 0}
    waiting = deque([source])
    while waiting:
        node = waiting.popleft()
        for a, b in edges:
            for here, there in ((a, b), (b, a)):
                if here == node and there not in found:
                    found[there] = found[node] + 1
                    waiting.append(there)
    return found


def owners(plan: Plan) -> dict[object, int]:
    return {
        ip_interface(address).ip: number
        for number, node in enumerate(plan.nodes)
        for interface in node.interfaces
        for address in interface.addresses
    }


@given(graphs())
def test_every_address_is_reached_by_a_shortest_path_and_no_packet_goes_in_circles(graph: tuple[int, Edges]) -> None:
    nodes, edges = graph
    plan = compile_plan(lab(nodes, edges))
    tables = [Forwarding(node) for node in plan.nodes]
    owner = owners(plan)
    for source in range(nodes):
        reachable = distances(nodes, edges, source)
        for to, at in owner.items():
            here, hops = source, 0
            while to not in tables[here].own:
                hop = tables[here].next_hop(to)
                forwards = here == source or plan.nodes[here].sysctls.get("net/ipv4/ip_forward") == "1"
                if hop is None or not forwards:
                    break
                here, hops = owner[hop], hops + 1
                assert hops <= nodes, f"from {source} to {to}: a loop"
            if at in reachable:
                # A connected link is used whatever is shorter: its other end is a hop away at most.
                assert (here, hops) == (at, reachable[at]), f"from {source} to {to}"
            else:
                assert here != at


@given(graphs())
def test_routes_are_usable_and_do_not_overlap(graph: tuple[int, Edges]) -> None:
    for node in compile_plan(lab(*graph)).nodes:
        connected = {i.name: ip_interface(address).network for i in node.interfaces for address in i.addresses}
        networks = [ip_network(route.to) for route in node.routes if route.to != "default"]
        assert len(networks) == len(set(networks))
        assert not any(a.overlaps(b) for a in networks for b in networks if a is not b)
        assert not set(networks) & set(connected.values())
        for route in node.routes:
            assert all(ip_address(hop.via) in connected[hop.interface] for hop in route.hops)
        if len(node.interfaces) == 1:
            assert [route.to for route in node.routes] == ["default"]


def test_a_line_of_500_nodes_needs_a_number_of_routes_that_grows_with_the_logarithm() -> None:
    nodes = 500
    plan = compile_plan(lab(nodes, [(i, i + 1) for i in range(nodes - 1)]))
    # A range of 2n addresses is at most 2 log2(2n) prefixes, and one of the two ranges begins at a power of two.
    assert max(len(node.routes) for node in plan.nodes) <= 3 * math.log2(2 * nodes)


@pytest.mark.parametrize("leaves", [2, 50])
def test_the_centre_of_a_star_needs_no_routes(leaves: int) -> None:
    plan = compile_plan(lab(leaves + 1, [(0, i + 1) for i in range(leaves)]))
    assert plan.nodes[0].routes == []


def test_of_equal_paths_the_one_by_the_first_link_is_taken() -> None:
    square = compile_plan(lab(4, [(0, 2), (0, 1), (1, 3), (2, 3)]))
    for opposite in ("10.0.0.5", "10.0.0.7"):
        assert Forwarding(square.nodes[0]).next_hop(ip_address(opposite)) == ip_address("10.0.0.1")


def test_only_nodes_with_two_links_or_more_forward() -> None:
    plan = compile_plan(lab(4, [(0, 1), (1, 2)]))
    assert [node.sysctls.get("net/ipv4/ip_forward") for node in plan.nodes] == [None, "1", None, None]
