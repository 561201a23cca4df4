"""Kinds of nodes, segments, pools, IPv6 and equal paths, as the plan has them."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_interface
from typing import Any

import pytest

from dilaton.cli.labs.addressing import rows
from dilaton.lab import Lab, LabError, loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.course.entries import ChangeLink
from dilaton.plan.links.queues import Netem, RandomLoss
from dilaton.plan.model import Node, Plan


def plan(text: str) -> Plan:
    return compile_plan(loads(f"name: x\n{text}", "lab.yaml"))


def node(found: Plan, name: str) -> Node:
    return next(one for one in found.nodes if one.name == name)


def addresses(found: Plan) -> dict[str, list[str]]:
    return {f"{n.name}:{i.name}": i.addresses for n in found.nodes for i in n.interfaces}


def mistakes(text: str) -> list[str]:
    with pytest.raises(LabError) as caught:
        plan(text)
    return [str(problem) for problem in caught.value.problems]


SEGMENT = "nodes: {a: , b: , r: {kind: router}, c: }\nlinks:\n  - {endpoints: [a, b, r], rate: 10Mbit, delay: 5ms, loss: 1%}\n  - r -- c\n"


def test_a_link_of_three_nodes_is_a_switch_with_a_link_to_each() -> None:
    found = plan(SEGMENT)
    assert [one.name for one in found.nodes] == ["a", "b", "r", "c", "lan0"]
    assert node(found, "lan0").bridge is not None
    assert [link.name for link in found.links][:3] == ["a:eth0--lan0:eth0", "b:eth0--lan0:eth1", "r:eth0--lan0:eth2"]


def test_delay_and_loss_of_a_segment_happen_once_and_its_rate_on_both_ways() -> None:
    found = plan(SEGMENT)
    loss = RandomLoss(probability=0.01)
    queue = Netem(rate_bit_per_s=10**7, limit_packets=1001)
    up, down = (node(found, name).interfaces[0].egress.qdiscs for name in ("a", "lan0"))
    assert [(one.delay_ns, one.loss) for one in up if isinstance(one, Netem)] == [(5_000_000, loss), (0, None)]
    assert up[1:] == down[1:] == [queue]


def test_a_change_of_a_segment_is_one_of_each_of_its_ports_with_delay_and_loss_once() -> None:
    change = "changes: [{at: 1s, link: b -- r -- a, rate: 1Mbit, loss: 2%, netem: delay 7ms}]\n"
    found = [entry.effect for entry in plan(SEGMENT + change).course if isinstance(entry.effect, ChangeLink)]
    assert [change.link for change in found] == ["a:eth0--lan0:eth0", "b:eth0--lan0:eth1", "r:eth0--lan0:eth2"]
    up, down = (end.egress for end in found[0].ends)
    first = up.qdiscs[0]
    assert isinstance(first, Netem)
    assert (first.delay_ns, first.loss) == (7_000_000, RandomLoss(probability=0.02))
    assert (down.delay_ns, up.rate_bit_per_s, down.rate_bit_per_s) == (0, 10**6, 10**6)


def test_a_segment_has_one_prefix_and_no_addresses_on_its_switch() -> None:
    found = addresses(plan(SEGMENT))
    assert found["a:eth0"] == ["172.16.0.1/24"]
    assert found["r:eth0"] == ["172.16.0.3/24"]
    assert found["lan0:eth0"] == []
    assert found["r:eth1"] == ["10.0.0.0/31"]


def test_hosts_of_a_segment_go_out_by_its_router_and_reach_each_other_directly() -> None:
    found = plan(SEGMENT)
    [route] = node(found, "a").routes
    assert (route.to, [hop.via for hop in route.hops]) == ("default", ["172.16.0.3"])
    assert node(found, "a").interfaces[0].neighbours == []
    assert node(found, "r").routes == []


def test_connected_switches_are_one_segment_whatever_lies_between() -> None:
    found = plan(
        "nodes: {s1: {kind: switch}, s2: {kind: switch}, a: , b: , c: }\nlinks: [a -- s1, s1 -- s2, s2 -- b, s2 -- c]\n"
    )
    assert [found for found in addresses(found).values() if found] == [
        ["172.16.0.1/24"],
        ["172.16.0.2/24"],
        ["172.16.0.3/24"],
    ]


def test_a_segment_takes_a_larger_prefix_if_it_needs_one() -> None:
    names = [f"n{number}" for number in range(300)]
    found = plan(
        f"nodes: {{{', '.join(f'{name}: ' for name in names)}}}\nlinks:\n  - {{endpoints: [{', '.join(names)}]}}\n"
    )
    assert addresses(found)["n299:eth0"] == ["172.16.1.44/23"]


POOLS = "addressing: {p2p: {ipv4: 10.9.0.0/24, prefix: 30}, loopback: 192.168.5.0/24, ipv6: fd00:1::/48}\n"


def test_pools_say_where_addresses_come_from() -> None:
    found = plan(POOLS + "nodes: {a: , r: {kind: router}, b: }\nlinks: [a -- r, r -- b]\n")
    assert addresses(found) == {
        "a:eth0": ["10.9.0.1/30", "fd00:1::/127"],
        "r:eth0": ["10.9.0.2/30", "fd00:1::1/127"],
        "r:eth1": ["10.9.0.5/30", "fd00:1::2/127"],
        "b:eth0": ["10.9.0.6/30", "fd00:1::3/127"],
    }
    assert node(found, "r").loopback == ["192.168.5.1/32", "fd00:1:0:ffff::1/128"]
    assert [(route.to, route.hops[0].via) for route in node(found, "a").routes] == [
        ("default", "10.9.0.2"),
        ("default", "fd00:1::1"),
    ]
    assert node(found, "r").sysctls["net/ipv6/conf/all/forwarding"] == "1"


def test_where_packets_are_too_small_for_ipv6_there_is_nothing_to_disable() -> None:
    found = plan("nodes: {a: , r: , b: }\nlinks: [{endpoints: a -- r, mtu: 1279}, {endpoints: r -- b, mtu: 1280}]\n")
    assert [key for key in node(found, "r").sysctls if "disable_ipv6" in key] == ["net/ipv6/conf/eth1/disable_ipv6"]


def test_a_node_is_called_by_its_loopback_if_it_has_one() -> None:
    found = plan(POOLS + "nodes: {a: , r: {kind: router}}\nlinks: [a -- r]\n")
    names = {(name, ":" in entry.address): entry.address for entry in found.hosts for name in entry.names}
    assert names["r", False] == "192.168.5.1"
    assert names["r", True] == "fd00:1:0:ffff::1"
    assert names["r-eth0", False] == "10.9.0.2"
    assert names["a", False] == names["a-eth0", False] == "10.9.0.1"


def test_given_addresses_are_kept_and_what_they_overlap_is_left_out() -> None:
    found = plan(
        "nodes: {a: , b: , c: }\nlinks:\n"
        "  - {endpoints: [{node: a, address: 10.0.0.1/24}, b]}\n"
        "  - {endpoints: [b, {node: c, address: [192.0.2.7/31, fd00::7/64]}]}\n"
        "  - a -- c\n"
    )
    assert addresses(found) == {
        "a:eth0": ["10.0.0.1/24"], "b:eth0": ["10.0.0.2/24"],
        "b:eth1": ["192.0.2.6/31", "fd00::1/64"], "c:eth0": ["192.0.2.7/31", "fd00::7/64"],
        "a:eth1": ["10.0.1.0/31"], "c:eth1": ["10.0.1.1/31"],
    }  # fmt: skip


def test_loopbacks_leave_out_what_given_addresses_overlap() -> None:
    found = plan(
        "nodes: {a: {kind: router}, b: {kind: router}}\nrouting: ospf\n"
        "links: [{endpoints: [{node: a, address: 192.168.0.1/30}, b]}]\n"
    )
    assert addresses(found) == {"a:eth0": ["192.168.0.1/30"], "b:eth0": ["192.168.0.2/30"]}
    assert [node.loopback for node in found.nodes] == [["192.168.0.4/32"], ["192.168.0.5/32"]]


def test_a_node_and_its_links_at_the_end_change_no_other_address() -> None:
    text = "topology: {generate: leaf-spine}\n"
    before, after = addresses(plan(text)), addresses(plan(text + "nodes: {more: }\nlinks: [more -- leaf1]\n"))
    assert before.items() <= after.items()
    assert after["more:eth0"] == ["10.0.0.32/31"]


def test_no_address_is_given_twice_in_a_large_network() -> None:
    found = addresses(plan("topology: {generate: fat-tree, k: 8}\naddressing: {ipv6: fd00::/48}\n"))
    count = Counter(ip_interface(address).ip for own in found.values() for address in own)
    assert set(count.values()) == {1}


SQUARE = "nodes: {a: {kind: router}, b: {kind: router}, c: {kind: router}, d: {kind: router}, h: {kind: host}}\nlinks: [a -- b, a -- c, b -- d, c -- d, d -- h]\n"


def hops(found: Plan, name: str, to: str) -> list[str]:
    [route] = [route for route in node(found, name).routes if route.to == to]
    return [hop.interface for hop in route.hops]


def test_ecmp_keeps_all_cheapest_paths_and_shortest_path_the_first() -> None:
    assert hops(plan(SQUARE + "routing: ecmp\n"), "a", "10.0.0.8/31") == ["eth0", "eth1"]
    assert hops(plan(SQUARE), "a", "10.0.0.8/31") == ["eth0"]


def test_the_cheapest_path_is_taken_if_links_cost_something() -> None:
    text = SQUARE.replace("a -- b", "{endpoints: a -- b, cost: 5}") + "routing: ecmp\n"
    assert hops(plan(text), "a", "10.0.0.8/31") == ["eth1"]


def test_flows_are_dealt_equally_and_at_each_node_by_an_order_of_its_own_that_the_seed_decides() -> None:
    def shares(seed: int, name: str) -> list[int]:
        found = plan(f"topology: {{generate: fat-tree, k: 4}}\nrouting: ecmp\nseed: {seed}\n")
        return next(route.shares for route in node(found, name).routes if len(route.hops) == 2)

    assert Counter(shares(1, "edge1")) == {0: 32, 1: 32}
    assert shares(1, "edge1") == shares(1, "edge1")
    assert len({tuple(shares(1, "edge1")), tuple(shares(1, "edge2")), tuple(shares(2, "edge1"))}) == 3


def test_what_a_flow_is_can_be_chosen() -> None:
    key = "net/ipv4/fib_multipath_hash_policy"
    assert node(plan(SQUARE + "routing: {policy: ecmp, hash: l4}\n"), "a").sysctls[key] == "1"
    assert key not in node(plan(SQUARE + "routing: {policy: ecmp, hash: l3}\n"), "a").sysctls


def test_without_routing_there_are_no_routes() -> None:
    assert all(one.routes == [] for one in plan(SQUARE + "routing: none\n").nodes)


def test_a_host_with_two_links_is_no_way_through() -> None:
    found = plan("nodes: {a: , h: {kind: host}, b: }\nlinks: [a -- h, h -- b]\n")
    assert "net/ipv4/ip_forward" not in node(found, "h").sysctls
    assert node(found, "h").routes == []


def test_a_switch_forwards_frames_and_not_packets() -> None:
    found = node(plan("nodes: {a: , s: {kind: switch, stp: true}, b: }\nlinks: [a -- s, s -- b]\n"), "s")
    assert found.bridge is not None and found.bridge.stp
    assert "net/ipv4/ip_forward" not in found.sysctls
    assert found.routes == []


def test_hosts_of_a_fat_tree_make_few_routes() -> None:
    found = plan("topology: {generate: fat-tree, k: 8}\nrouting: ecmp\n")
    by_group = {
        name: max(len(n.routes) for n in found.nodes if n.name.startswith(name))
        for name in ("core", "agg", "edge", "h")
    }
    links = 8**3 // 4 * 3
    assert by_group["h"] == 1
    assert by_group["core"] < by_group["agg"] < by_group["edge"] < links / 2


INHERITING = """
defaults: {sysctls: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_timestamps: 0}}
kinds:
  router: {sysctls: {net.ipv4.tcp_sack: 1}}
  leaf: {kind: router, sysctls: {net.ipv4.tcp_sack: 2}}
groups:
  edge: {kind: leaf, sysctls: {net.ipv4.tcp_ecn: 1}}
nodes:
  a: {group: edge}
  b: {kind: router, group: edge, sysctls: {net.ipv4.tcp_ecn: 2}}
  c:
links: [a -- b, b -- c]
"""


def test_a_node_inherits_from_its_group_then_its_kind_then_the_defaults() -> None:
    found = plan(INHERITING)

    def sysctls(name: str) -> list[str | None]:
        own = node(found, name).sysctls
        return [own.get(f"net/ipv4/{key}") for key in ("tcp_sack", "tcp_timestamps", "tcp_ecn", "ip_forward")]

    assert sysctls("a") == ["2", "0", "1", "1"]
    assert sysctls("b") == ["1", "0", "2", "1"]
    assert sysctls("c") == ["0", "0", None, None]


MISTAKES: list[tuple[str, str, str]] = [
    ("an unknown kind", "nodes: {a: {kind: ruoter}}\n", "nodes.a.kind: unknown kind ruoter; did you mean router?"),
    ("an unknown group", "nodes: {a: {group: x}}\n", "nodes.a.group: unknown group x; the lab defines no group"),
    (
        "a kind of an unknown kind",
        "kinds: {leaf: {kind: swich}}\nnodes: {a: }\n",
        "kinds.leaf.kind: unknown kind swich; did you mean switch?",
    ),
    (
        "a built-in kind with a kind",
        "kinds: {host: {kind: router}}\nnodes: {a: }\n",
        "kinds.host.kind: host is a kind by itself",
    ),
    ("a spanning tree of a host", "nodes: {a: {stp: true}}\n", "nodes.a.stp: a is no switch"),
    ("an odd k", "topology: {generate: fat-tree, k: 5}\n", "topology.k: 5: the k of a fat tree must be even"),
    (
        "an unknown generator",
        "topology: {generate: fattree}\n",
        "topology: fattree: not a generator; did you mean fat-tree?",
    ),
    (
        "an unknown field of a generator",
        "topology: {generate: ring, node: 5}\n",
        "topology: node: ring has no such field; did you mean nodes?",
    ),
    ("no source", "topology: {k: 4}\n", "topology: no source; write exactly one of generate"),
    (
        "a pool that overlaps the loopbacks that routing daemons need",
        "nodes: {a: {kind: router}}\naddressing: {p2p: 192.168.0.0/24}\nrouting: ospf",
        "addressing.p2p: the pools p2p (192.168.0.0/24) and loopback (192.168.0.0/16) overlap",
    ),
    (
        "overlapping pools",
        "addressing: {lan: 10.2.0.0/16}\nnodes: {a: }\n",
        "addressing.lan: the pools p2p (10.0.0.0/8) and lan (10.2.0.0/16) overlap",
    ),
    (
        "an address as pool",
        "addressing: {lan: 10.2.0.1/16}\nnodes: {a: }\n",
        "addressing.lan.ipv4: 10.2.0.1/16: is an address, not a prefix; write 10.2.0.0/16",
    ),
    (
        "a pool too small",
        "addressing: {p2p: 10.0.0.0/30}\ntopology: {generate: line, nodes: 5}\n",
        "addressing.p2p: 10.0.0.0/30: too small: the lab needs 8 of its addresses; write a prefix length of 29 or less",
    ),
    (
        "an address twice",
        "nodes: {a: , b: , c: }\nlinks: [{endpoints: [{node: a, address: 192.0.2.0/31}, b]}, {endpoints: [{node: c, address: 192.0.2.0/31}, b]}]\n",
        "links[1].endpoints[0]: 192.0.2.0 is already the address of a:eth0",
    ),
    (
        "an address of another network",
        "nodes: {a: , b: }\nlinks: [{endpoints: [{node: a, address: 192.0.2.0/31}, {node: b, address: 192.0.3.1/31}]}]\n",
        "links[0].endpoints[1]: 192.0.3.1/31 is not in 192.0.2.0/31",
    ),
    (
        "overlapping given networks",
        "nodes: {a: , b: , c: }\nlinks: [{endpoints: [{node: a, address: 192.0.2.1/24}, b]}, {endpoints: [{node: c, address: 192.0.2.9/28}, b]}]\n",
        "links[1].endpoints[0]: 192.0.2.0/28 overlaps 192.0.2.0/24",
    ),
    (
        "an address without its length",
        "nodes: {a: , b: }\nlinks: [{endpoints: [{node: a, address: 192.0.2.1}, b]}]\n",
        "links[0].endpoints[0].address[0]: 192.0.2.1: an address needs its prefix length",
    ),
    (
        "nodes apart with a policy",
        "routing: ecmp\nnodes: {a: , b: }\n",
        "routing: ecmp: no path leads from a to b; link them, or write none",
    ),
    (
        "a loop of switches",
        "nodes: {s: {kind: switch}, t: {kind: switch}}\nlinks: [s -- t, s -- t]\n",
        "links[1]: closes a loop of switches by joining s and t; give them stp: true",
    ),
    (
        "a direction of a segment",
        "nodes: {a: , b: , c: }\nlinks: [{endpoints: [a, b, c], a_to_b: {loss: 1%}}]\n",
        "links[0].a_to_b: a segment has no such direction",
    ),
    (
        "a change of a direction of a segment",
        "nodes: {a: , b: , c: }\nlinks: [{endpoints: [a, b, c]}]\n"
        "changes: [{at: 1s, link: a -- b -- c, b_to_a: {loss: 1%}}]\n",
        "changes[0].b_to_a: a segment has no such direction",
    ),
    (
        "a lookahead of a segment",
        "nodes: {a: , b: , c: }\nlinks: [{endpoints: [a, b, c], delay: 1ms, lookahead: 1ms}]\n",
        "links[0].lookahead: a segment keeps its nodes in one guest",
    ),
    (
        "a lookahead of more than the delay",
        "nodes: {a: , b: }\nlinks: [{endpoints: [a, b], delay: 10ms, lookahead: 5ms}]\n"
        "changes: [{at: 1s, link: a -- b, delay: 2ms}]\n",
        "links[0].lookahead: 5ms: more than the link's delay is, or becomes; write at most 2ms",
    ),
    (
        "a controller that no link leads to",
        "nodes: {c: , s: {kind: ovs, controller: tcp:c}}\nlinks: [c -- s]\n",
        "nodes.s.controller: no link leads from s to c; write one, such as c -- s:mgmt0",
    ),
    (
        "a controller of a bridge",
        "nodes: {c: , s: {kind: switch, controller: tcp:c}}\nlinks: [c -- s]\n",
        "nodes.s.controller: s is no Open vSwitch",
    ),
    (
        "a controller by kind on another port",
        "nodes: {c: {kind: controller}, s: {kind: ovs, controller: tcp:c:7}}\nlinks: ['c -- s:mgmt0']\n",
        "nodes.s.controller: c is of kind controller, which listens on port 6653; write tcp:c",
    ),
    (
        "a NAT without an outside",
        "nodes: {a: , b: , n: {kind: nat}}\nlinks: [a -- n, n -- b]\n",
        "nodes.n: a NAT needs to know which interface is outside; write one of eth0, eth1",
    ),
    (
        "a NAT whose outside is not there",
        "nodes: {a: , n: {kind: nat, outside: eth7}}\nlinks: [a -- n]\n",
        "nodes.n.outside: unknown interface eth7; did you mean eth0?",
    ),
    (
        "an outside of a host",
        "nodes: {a: {outside: eth0}, b: }\nlinks: [a -- b]\n",
        "nodes.a.outside: a is no NAT; only the kind nat has an outside",
    ),
    (
        "a controller without a node",
        "nodes: {s: {kind: ovs, controller: c0}}\n",
        "nodes.s.controller: c0: a controller is written as tcp:NODE:PORT",
    ),
    (
        "a configuration that is not there",
        "nodes: {a: {kind: router, config: no.conf}}\n",
        "nodes.a.config: no.conf: cannot be read: No such file",
    ),
    ("an unknown policy", "routing: rip\nnodes: {a: }\n", "routing.policy: rip: not a routing policy"),
]


@pytest.mark.parametrize(("text", "message"), [case[1:] for case in MISTAKES], ids=[case[0] for case in MISTAKES])
def test_a_mistake_is_told_with_its_fix(text: str, message: str) -> None:
    [found] = mistakes(text)
    place, _, told = (found if found.startswith("lab") else f"lab.yaml:: {found}").partition(": ")
    assert told.startswith(message)
    assert place.startswith("lab.yaml:")


def test_a_mistake_in_a_link_counts_links_as_they_are_written() -> None:
    [found] = mistakes("topology: {generate: line, nodes: 3}\nlinks:\n  - n0 -- n2\n  - n0 -- n9\n")
    assert found == "lab.yaml:5:5: links[1].endpoints[1]: unknown node n9; known: n0, n1, n2"


def test_a_lab_from_python_may_bring_its_own_topology() -> None:
    import networkx

    from dilaton.lab.topology import Topology

    graph: Any = networkx.path_graph(3)
    graph.nodes[1]["kind"] = "router"
    graph.edges[0, 1]["delay"] = "5ms"
    lab = Lab.model_validate({"name": "x", "topology": Topology.from_networkx(graph)})
    assert list(lab.nodes) == ["n0", "n1", "n2"]
    assert lab.nodes["n1"].kind == "router"
    assert lab.links[0].delay_ns == 5_000_000


def test_all_addresses_can_be_printed() -> None:
    found = rows(plan(POOLS + "nodes: {a: , r: {kind: router}, b: }\nlinks: [a -- r, r -- b]\n"))
    assert found[1] == ("r", "lo", "192.168.5.1/32", "fd00:1:0:ffff::1/128", "", "")
    assert found[2][:4] == ("r", "eth0", "10.9.0.2/30", "fd00:1::1/127")
    assert found[2][5] == "a:eth0"
