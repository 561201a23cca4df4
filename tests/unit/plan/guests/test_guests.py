"""Nodes come into guests as the lab says, and wires take over exactly what is constant of their links' delays."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.guests.kernels import MIB
from dilaton.plan.links.queues import ORPHANING_RATE_BIT_PER_S, Netem
from dilaton.plan.machine import Machine
from dilaton.plan.model import Plan
from tests.course import ends

DELAYED = {"endpoints": "a -- b", "rate": "100Mbit", "delay": "5ms"}


def plan(cores: int = 2, **fields: Any) -> Plan:
    return compile_plan(Lab.model_validate({"name": "x", "nodes": {"a": {}, "b": {}}, **fields}), Machine(cores))


def guests_of(found: Plan) -> dict[str, str]:
    return {node.name: node.guest for node in found.nodes}


def netem(found: Plan, node: int = 0) -> Netem:
    first = found.nodes[node].interfaces[0].egress.qdiscs[0]
    assert isinstance(first, Netem)
    return first


def refused(**fields: Any) -> str:
    with pytest.raises(LabError) as error:
        plan(**fields)
    return str(error.value)


def line(count: int, delay: str = "1ms") -> dict[str, Any]:
    nodes = {f"n{number}": {} for number in range(count)}
    links = [{"endpoints": f"n{number} -- n{number + 1}", "delay": delay} for number in range(count - 1)]
    return {"nodes": nodes, "links": links}


def test_a_link_with_packets_that_are_too_large_for_a_guests_device_is_not_cut() -> None:
    link = DELAYED | {"mtu": 65_522}
    large = "but between guests packets have at most 65521 bytes; lower its mtu, or put its ends into one guest"
    assert f"guests: link a:eth0--b:eth0: its ends are apart, {large}" in refused(guests="per-node", links=[link])
    by_hand = {"a": {"guest": "x"}, "b": {"guest": "y"}}
    assert f"nodes.a.guest: link a:eth0--b:eth0: its ends are in the guests x and y, {large}" in refused(
        nodes=by_hand, links=[link]
    )
    assert set(guests_of(plan(guests="auto", links=[link])).values()) == {"guest0"}
    assert len(plan(guests="per-node", links=[DELAYED | {"mtu": 65_521}]).guests) == 2


def test_a_link_with_offloads_is_cut_like_any_other() -> None:
    assert len(plan(guests="per-node", links=[DELAYED | {"offload": True}]).guests) == 2


def test_all_nodes_are_in_one_guest_unless_something_else_is_asked_for() -> None:
    found = plan(links=[DELAYED])
    assert guests_of(found) == {"a": "guest0", "b": "guest0"}
    assert found.wires == []
    assert netem(found).delay_ns == found.nodes[0].interfaces[0].delay_ns == 5_000_000


def test_every_node_gets_a_guest_of_its_name_per_node() -> None:
    found = plan(guests="per-node", links=[DELAYED])
    assert guests_of(found) == {"a": "a", "b": "b"}
    assert [guest.name for guest in found.guests] == ["a", "b"]
    assert all(guest.memory_bytes < 256 * MIB for guest in found.guests)


def test_the_wire_takes_over_the_delay_and_leaves_the_rest_to_the_interface() -> None:
    found = plan(guests="per-node", links=[DELAYED])
    wire, control = found.wires
    assert (wire.link, wire.delays_ns, wire.mtu) == ("a:eth0--b:eth0", (5_000_000, 5_000_000), 1500)
    assert [(end.guest, end.device) for end in wire.ends] == [("a", "vec0"), ("b", "vec0")]
    assert (control.link, [(end.guest, end.device) for end in control.ends]) == (None, [("a", "vec1"), ("b", "vec1")])
    interface = found.nodes[0].interfaces[0]
    assert (interface.egress.delay_ns, interface.wire_delay_ns, interface.delay_ns) == (0, 5_000_000, 5_000_000)
    assert netem(found).rate_bit_per_s == ORPHANING_RATE_BIT_PER_S, "what queues is hidden from its sender as before"
    assert interface.egress.rate_bit_per_s == 10**8


def test_a_ring_holds_what_the_link_can_have_under_way() -> None:
    fast = {"endpoints": "a -- b", "rate": "10Gbit", "delay": "50ms"}
    wire = plan(guests="per-node", links=[fast]).wires[0]
    assert wire.ring_bytes[0] > 10**10 * 0.1 / 8


def test_a_ring_holds_what_large_buffers_of_tcp_can_have_under_way() -> None:
    large = {"sysctls": {"net.ipv4.tcp_wmem": "4096 16384 268435456"}}
    usual, wide = (
        plan(guests="per-node", nodes={"a": node, "b": {}}, links=[{"endpoints": "a -- b", "delay": "1ms"}]).wires[0]
        for node in ({}, large)
    )
    assert wide.ring_bytes[0] - usual.ring_bytes[0] == 268435456


def test_what_varies_of_a_delay_stays_with_the_interface() -> None:
    found = plan(guests="per-node", links=[{"endpoints": "a -- b", "netem": "delay 5ms 1ms"}])
    assert found.wires[0].delays_ns == (4_000_000, 4_000_000)
    assert (netem(found).delay_ns, netem(found).jitter_ns) == (1_000_000, 1_000_000)
    normal = {"endpoints": "a -- b", "netem": "delay 5ms 1ms distribution normal"}
    assert plan(guests="per-node", links=[normal]).wires[0].delays_ns == (1_000_000, 1_000_000)


def test_a_wire_never_delays_more_than_the_link_will_at_any_time() -> None:
    changes = [{"at": "1s", "link": "a -- b", "delay": "2ms"}]
    found = plan(guests="per-node", links=[DELAYED], changes=changes)
    assert found.wires[0].delays_ns == (2_000_000, 2_000_000)
    assert netem(found).delay_ns == 3_000_000
    assert [end.egress.delay_ns for end in ends(found.course[0])] == [0, 0]


@pytest.mark.parametrize(
    "link",
    [
        {"endpoints": "a -- b"},
        {"endpoints": "a -- b", "delay": "1ms", "b_to_a": {"delay": "0s"}},
        {"endpoints": "a -- b", "delay": "1ns"},
        {"endpoints": "a -- b", "netem": "delay 1ms 1ms"},
        {"endpoints": "a -- b", "netem": "delay 1ms reorder 1%"},
    ],
)
def test_a_link_that_may_have_no_delay_is_not_cut(link: dict[str, Any]) -> None:
    assert "link a:eth0--b:eth0: its ends are apart" in refused(guests="per-node", links=[link])
    by_hand = {"a": {"guest": "x"}, "b": {"guest": "y"}}
    assert "nodes.a.guest: link a:eth0--b:eth0: its ends are in the guests x and y" in refused(
        nodes=by_hand, links=[link]
    )
    assert set(guests_of(plan(guests="auto", links=[link])).values()) == {"guest0"}
    assert "2: the lab falls into only 1 part" in refused(guests=2, links=[link])


def test_a_number_divides_evenly_where_it_is_cheapest() -> None:
    lab = line(16, "1ms")
    lab["links"][7]["delay"] = "50ms"
    found = guests_of(plan(guests=2, **lab))
    assert Counter(found.values()) == {"guest0": 8, "guest1": 8}
    assert found["n7"] != found["n8"], "the longest delay is where guests wait for each other least"


def test_auto_takes_as_many_guests_as_there_are_cores_and_parts() -> None:
    assert len(plan(cores=4, guests="auto", **line(8)).guests) == 4
    assert len(plan(cores=4, guests="auto", **line(3)).guests) == 3
    assert len(plan(cores=4, guests="auto", **line(3, "10us")).guests) == 1, "so short a delay is not worth a cut"
    assert len(plan(cores=4, guests="per-node", **line(3, "10us")).guests) == 3, "unless it is asked for"


def test_a_guest_that_is_named_holds_what_names_it_and_what_cannot_be_apart_from_that() -> None:
    lab = line(4)
    lab["links"].append("n0 -- n2")
    lab["nodes"]["n0"] = {"guest": "x"}
    assert guests_of(plan(**lab)) == {"n0": "x", "n1": "guest0", "n2": "x", "n3": "guest0"}
    lab["nodes"]["n2"] = {"guest": "guest0"}
    lab["links"].pop()
    assert guests_of(plan(**lab)) == {"n0": "x", "n1": "guest1", "n2": "guest0", "n3": "guest1"}


def test_names_of_guests_that_exclude_each_other_are_refused() -> None:
    nodes = {"a": {"guest": "x"}, "b": {}, "c": {"guest": "y"}}
    assert "c cannot be apart from a, which is in guest x" in refused(nodes=nodes, links=["a -- b", "b -- c"])
    nodes = {"a": {"guest": "b"}, "b": {}}
    assert "per-node: a guest is already named b" in refused(guests="per-node", nodes=nodes)


def test_named_guests_have_their_own_tdf_and_memory() -> None:
    nodes = {"a": {"guest": "x"}, "b": {}}
    found = plan(nodes=nodes, guests={"x": {"tdf": 5, "memory": "512MiB"}})
    assert found.guests[0].tdf
    assert (found.guests[0].tdf.numerator, found.guests[0].memory_bytes) == (5, 512 * MIB)


def test_agents_hear_of_each_other_by_a_star_around_the_first_guest() -> None:
    found = plan(
        guests="per-node", nodes={name: {} for name in "abcd"}, links=[{"endpoints": "c -- d", "delay": "1ms"}]
    )
    ends = [[end.guest for end in wire.ends] for wire in found.wires if wire.link is None]
    assert ends == [["a", "b"], ["a", "c"], ["a", "d"]]
    devices = [end.device for wire in found.wires for end in wire.ends if end.guest == "a"]
    assert devices == ["vec0", "vec1", "vec2"]


def test_a_guest_with_more_wires_than_its_kernel_can_be_told_of_is_refused() -> None:
    assert len(plan(guests="per-node", **line(100)).guests) == 100
    assert "guests: guest n0 would have 111 wires to other guests" in refused(guests="per-node", **line(111))


def test_connections_have_the_same_buffers_in_guests_of_any_size() -> None:
    packed, apart = plan(links=[DELAYED]), plan(guests="per-node", links=[DELAYED])
    assert packed.guests[0].memory_bytes > apart.guests[0].memory_bytes
    for key in ("net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"):
        assert len({guest.sysctls[key] for guest in (*packed.guests, *apart.guests)}) == 1
