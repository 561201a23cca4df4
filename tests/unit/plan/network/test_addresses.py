"""Addresses are unique, stable and known to the other end of the link; names mean one address."""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_interface

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.plan.network import addresses


def plan(nodes: list[str], links: list[str]) -> Plan:
    return compile_plan(Lab.model_validate({"name": "x", "nodes": {name: {} for name in nodes}, "links": links}))


RING = plan(["a", "b", "c", "d"], ["a -- b", "b -- c", "c -- d", "d -- a", "a -- b"])


def test_link_i_has_the_two_addresses_from_10_0_0_0_plus_2i() -> None:
    by_end = {(n.name, i.name): i.addresses for n in RING.nodes for i in n.interfaces}
    found = [[by_end[end.node, end.interface] for end in link.ends] for link in RING.links]
    assert found[0] == [["10.0.0.0/31"], ["10.0.0.1/31"]]
    assert found[4] == [["10.0.0.8/31"], ["10.0.0.9/31"]]


def test_ethernet_addresses_are_unique_local_and_unicast() -> None:
    macs = [interface.mac for node in RING.nodes for interface in node.interfaces]
    assert len(macs) == len(set(macs)) == 10
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs)
    assert addresses.mac(0x123456, 0x789A) == "02:12:34:56:78:9a"


def test_both_ends_of_a_link_know_each_other() -> None:
    interfaces = {(n.name, i.name): i for n in RING.nodes for i in n.interfaces}
    for link in RING.links:
        a, b = (interfaces[end.node, end.interface] for end in link.ends)
        for own, other in ((a, b), (b, a)):
            [neighbour] = own.neighbours
            assert neighbour.mac == other.mac
            assert neighbour.address == str(ip_interface(other.addresses[0]).ip)


def test_a_further_link_changes_no_address() -> None:
    more = plan(["a", "b", "c", "d"], ["a -- b", "b -- c", "c -- d", "d -- a", "a -- b", "a -- c"])
    assert [i for n in RING.nodes for i in n.interfaces] == [
        i for n, old in zip(more.nodes, RING.nodes, strict=True) for i in n.interfaces[: len(old.interfaces)]
    ]


def test_a_node_is_called_by_its_first_interface_and_each_interface_has_a_name() -> None:
    names = {name: entry.address for entry in RING.hosts for name in entry.names}
    assert names == {
        "a": "10.0.0.0", "a-eth0": "10.0.0.0", "a-eth1": "10.0.0.7", "a-eth2": "10.0.0.8",
        "b": "10.0.0.1", "b-eth0": "10.0.0.1", "b-eth1": "10.0.0.2", "b-eth2": "10.0.0.9",
        "c": "10.0.0.3", "c-eth0": "10.0.0.3", "c-eth1": "10.0.0.4",
        "d": "10.0.0.5", "d-eth0": "10.0.0.5", "d-eth1": "10.0.0.6",
    }  # fmt: skip


def test_a_node_without_links_has_no_address_and_no_name() -> None:
    found = plan(["a", "b", "alone"], ["a -- b"])
    assert found.nodes[2].interfaces == []
    assert "alone" not in [name for entry in found.hosts for name in entry.names]


def test_a_name_that_means_a_node_or_another_interface_is_not_given_twice() -> None:
    found = plan(["a", "A-ETH0", "b"], ["a -- A-ETH0", "a -- b"])
    names = {name: entry.address for entry in found.hosts for name in entry.names}
    assert names["A-ETH0"] == "10.0.0.1"
    assert "a-eth0" not in names
    both = plan(["a", "a-b"], ["a:b-c -- a-b:c"])
    count = Counter(name for entry in both.hosts for name in entry.names)
    assert count["a-b-c"] == 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((addresses.NODES_MAX + 1, 2), "nodes: 16777217: there can be at most 16777216 nodes"),
        ((2, addresses.INTERFACES_MAX + 1), "links: 65537: there can be at most 65536 interfaces of one node"),
    ],
)
def test_more_parts_than_addresses_is_an_error_that_names_the_limit(counts: tuple[int, int], message: str) -> None:
    with pytest.raises(LabError) as caught:
        addresses.check_counts(*counts)
    assert str(caught.value).startswith(message)
    addresses.check_counts(addresses.NODES_MAX, addresses.INTERFACES_MAX)
