"""Who talks to whom, over which links, and what these mind."""

from __future__ import annotations

import pytest

from dilaton.plan.model import Plan
from dilaton.plan.network.bounds import network_of
from dilaton.plan.network.conversations import Path, directions, egresses, pairs, paths, spoken, talks
from tests.unit.measure.made import plan

WAN = """
name: x
nodes: {a: , r: {kind: router}, s: {kind: router}, b: , c: }
links:
  - {endpoints: a -- r, rate: 10Gbit, delay: 100us}
  - {endpoints: r -- s, rate: 10Mbit, delay: 40ms, queue: {limit: 100}}
  - {endpoints: s -- b, rate: 1Gbit, delay: 100us}
  - {endpoints: s -- c, rate: 1Gbit, delay: 10us}
run:
"""

FRAME_NS = 1514 * 8 * (0.1 + 100 + 1)
"""What a full frame takes from a to b."""


def talking(plan: Plan) -> list[Path]:
    """The paths of a plan."""
    known = directions(plan.nodes, plan.links, egresses(plan.course))
    return list(paths(known, pairs(talks(plan.processes, plan.hosts, plan.nodes), plan.processes)))


@pytest.mark.parametrize(
    "run",
    [
        "  - {on: a, exec: iperf3 -c b -t 3}",
        "  - {on: a, exec: curl http://b:8080/x}",
        "  - {on: a, exec: ping 10.0.0.5}",
        "  - {on: a, exec: [sh, -c, 'sleep 1; ping -c 3 b']}",
        "  - {on: b, name: one, exec: nc -l 5}\n  - {on: a, name: two, exec: nc -l 5}",
    ],
)
def test_who_names_a_node_or_its_address_talks_to_it_and_else_all_that_have_programs(run: str) -> None:
    planned = plan(WAN + run + "\n")
    (path,) = talking(planned)
    assert set(path.ends) == {"a", "b"}
    assert path.delay_ns == 2 * 40_200_000
    assert (len(path.there), len(path.back)) == (3, 3)


def test_a_fast_access_link_before_a_slow_way_asks_for_nothing() -> None:
    network = network_of(plan(WAN + "  - {on: a, exec: iperf3 -c b}\n"))
    assert network.delay_ns_min == pytest.approx(40_200_000 / 3)
    assert network.frame_ns_min == pytest.approx(1514 * 8 * 100)
    assert network.wait_ns_max == pytest.approx((80_400_000 + FRAME_NS) / 4)
    assert (network.wait_path, network.wait_why) == ("a and b", "a full frame and its answer take 81.6 ms")


@pytest.mark.parametrize(
    ("program", "is_full"),
    [
        ("iperf3 -c b -n 50K", True),
        ("iperf3 -c b -R", True),
        ("iperf3 -c b -u -b 1M", False),
        ("iperf3 -c b -M 200", False),
        ("curl http://b/", False),
        ("ping b", False),
    ],
)
def test_a_round_trip_of_flows_of_tcp_has_a_full_frame_in_it(program: str, is_full: bool) -> None:
    network = network_of(plan(WAN + f"  - {{on: a, exec: {program}}}\n"))
    assert network.wait_ns_max == pytest.approx((80_400_000 + is_full * FRAME_NS) / 4)
    beside = network_of(plan(WAN + f"  - {{on: a, exec: {program}}}\n  - {{on: a, name: other, exec: ping b}}\n"))
    assert beside.wait_ns_max == pytest.approx(80_400_000 / 4), "of a ping nobody knows how large it is"


def test_the_shortest_queue_is_the_one_that_the_bottleneck_fills_first() -> None:
    network = network_of(plan(WAN.replace("limit: 100}", "limit: 20}") + "  - {on: a, exec: iperf3 -c b}\n"))
    # A packet more is being sent.
    assert network.wait_ns_max == pytest.approx(21 * 1514 * 8 * 100 / 4)
    assert network.wait_why == "the queue of r:eth1 fills in 25.4 ms"


def test_a_program_talks_over_the_links_to_those_it_names_and_back() -> None:
    run = "  - {on: a, name: far, exec: curl http://b/}\n  - {on: b, name: near, exec: ping c}\n  - {on: c, name: none, exec: date}"
    made = plan(WAN + run)
    found = spoken(made.processes, made.hosts, made.nodes, made.links, made.course)
    over = {key: {each.name for path in paths for each in path.directions} for key, paths in found.items()}
    assert over.keys() == {("a", "far"), ("b", "near")}
    assert {name.split(":")[0] for name in over["a", "far"]} == {"a", "r", "s", "b"} and len(over["a", "far"]) == 6
    assert {name.split(":")[0] for name in over["b", "near"]} == {"b", "s", "c"} and len(over["b", "near"]) == 4
    assert over["a", "far"] & over["b", "near"], "the link of b"


def test_the_nearest_that_talk_decide() -> None:
    network = network_of(plan(WAN + "  - {on: a, name: far, exec: ping b}\n  - {on: b, name: near, exec: ping c}\n"))
    assert network.wait_path == "b and c"
    assert network.wait_ns_max == 100_000


def test_changes_of_a_link_count() -> None:
    changes = "changes: [{at: 1s, link: r -- s, delay: 1ms}]\n"
    assert network_of(plan(WAN + "  - {on: a, exec: ping b}\n" + changes)).wait_ns_max == 600_000


def test_where_nobody_talks_each_link_counts() -> None:
    network = network_of(plan(WAN.replace("run:\n", "")))
    assert (network.delay_ns_min, network.delay_link) == (10_000, "c:eth0")
    assert network.wait_ns_max is None


def test_a_path_that_leads_through_a_guest_is_judged_there_too() -> None:
    planned = plan(WAN.replace("name: x", "name: x\nguests: per-node") + "  - {on: a, exec: ping b}\n")
    by_node = {node.name: node.guest for node in planned.nodes}
    assert network_of(planned, by_node["r"]).wait_path == "a and b"
    assert network_of(planned, by_node["c"]).wait_ns_max is None


def test_programs_of_one_node_talk_to_nobody() -> None:
    assert talking(plan(WAN + "  - {on: a, exec: ping 127.0.0.1}\n")) == []


def test_paths_lead_through_routers_and_ports_of_switches_not_through_hosts_and_their_controllers_links() -> None:
    text = """
    name: x
    nodes:
      c: {kind: controller}
      s: {kind: ovs, controller: "tcp:c:6653"}
      m: {kind: switch}
      t: {kind: ovs, controller: "tcp:c:6653"}
      a:
      b:
      between: {kind: host}
    links: [a -- s, s -- m, m -- t, t -- b, a -- between, between -- b, {endpoints: [c, "s:mgmt0", "t:mgmt0"]}]
    run: [{on: a, exec: ping b}]
    """
    (path,) = talking(plan(text))
    assert [direction.node for direction in path.there] == ["a", "s", "m", "t"]


def test_where_only_a_host_is_between_two_others_the_path_leads_through_it() -> None:
    text = "name: x\nnodes: {a: , b: , h: {kind: host}}\nlinks: [a -- h, h -- b]\nrun: [{on: a, exec: ping b}]\n"
    (path,) = talking(plan(text))
    assert [direction.node for direction in path.there] == ["a", "h"]
