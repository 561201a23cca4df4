"""What kinds of nodes bring with them: configurations and daemons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dilaton.lab import LabError, load
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan, ReadyTcp
from tests.unit.plan.network.test_network import SQUARE, addresses, mistakes, node, plan


def file_of(found: Plan, name: str, path: str) -> str:
    return next(file.text or "" for file in node(found, name).files if file.path == path)


OSPF = SQUARE.replace("a -- b", "{endpoints: a -- b, cost: 5}") + "routing: {policy: ospf, daemon: %s}\n"


def test_a_process_that_is_named_like_a_daemon_is_refused() -> None:
    text = OSPF % "bird" + "\nrun: [{on: a, name: b-bird, exec: 'true'}]"
    assert mistakes(text) == ["run[0].name: b-bird: a daemon of b has this name; choose another one"]


def test_routers_with_bird_speak_ospf_to_routers_and_tell_of_their_hosts() -> None:
    found = plan(OSPF % "bird")
    text = file_of(found, "d", "/etc/dilaton/bird.conf")
    assert "router id 192.168.0.4;" in text
    assert 'interface "eth0" { cost 1; type ptp; };' in text
    assert 'interface "eth2" { cost 1; type ptp; stub on; };' in text
    assert 'interface "eth0" { cost 5; type ptp; };' in file_of(found, "a", "/etc/dilaton/bird.conf")
    assert [process.name for process in found.processes] == ["a-bird", "b-bird", "c-bird", "d-bird"]
    assert node(found, "d").routes == []
    assert [route.to for route in node(found, "h").routes] == ["default"]


def test_routers_speak_ospf_for_ipv6_where_there_are_such_addresses() -> None:
    pool = "addressing: {ipv6: 'fd00::/48'}\n"
    text = file_of(plan(OSPF % "bird" + pool), "a", "/etc/dilaton/bird.conf")
    head, _, ospf = text.partition("protocol ospf v3")
    assert "ipv6 { import none;" in head and "stubnet fd00:0:0:ffff::1/128 { cost 0; };" in ospf
    assert 'interface "eth0" { cost 5; type ptp; };' in ospf
    found = plan(OSPF % "frr" + pool)
    assert [(one.name, [awaited.name for awaited in one.after]) for one in found.processes][2:3] == [
        ("a-ospf6d", ["a-zebra"])
    ]
    assert "interface eth0\n ipv6 ospf6 area 0\n ipv6 ospf6 cost 5\n" in file_of(found, "a", "/etc/dilaton/ospf6d.conf")
    assert "v3" not in file_of(plan(OSPF % "bird"), "a", "/etc/dilaton/bird.conf")


def test_routers_with_frr_have_zebra_and_then_ospfd() -> None:
    found = plan(OSPF % "frr")
    text = file_of(found, "a", "/etc/dilaton/ospfd.conf")
    assert "interface eth0\n ip ospf area 0\n ip ospf cost 5\n ip ospf network point-to-point\n" in text
    assert "passive" in file_of(found, "d", "/etc/dilaton/ospfd.conf")
    assert [(one.name, [awaited.name for awaited in one.after]) for one in found.processes][:2] == [
        ("a-zebra", []),
        ("a-ospfd", ["a-zebra"]),
    ]


def test_a_configuration_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "own.conf").write_text("router id 1.2.3.4;\n")
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: x\nnodes: {a: {kind: router, config: own.conf}, b: {}}\nlinks: [a -- b]\nrouting: ospf\n")
    assert file_of(compile_plan(load(lab)), "a", "/etc/dilaton/bird.conf") == "router id 1.2.3.4;\n"


BGP = SQUARE + "routing: {policy: bgp, daemon: %s}\n"


def test_routers_with_bird_have_a_session_with_each_neighbour_and_a_private_number_each() -> None:
    found = plan(BGP % "bird")
    text = file_of(found, "d", "/etc/dilaton/bird.conf")
    neighbours = re.findall(r"neighbor (\S+) as (\d+);", text)
    assert "local as 64515;" in text and [number for _, number in neighbours] == ["64513", "64514"]
    ends = addresses(found)
    for (address, _), name in zip(neighbours, ("b", "c"), strict=True):
        assert any(f"{address}/31" in given for end, given in ends.items() if end.startswith(f"{name}:"))
    assert "ospf" not in text and node(found, "d").routes == []
    assert [route.to for route in node(found, "h").routes] == ["default"]


def test_routers_with_frr_speak_bgp_over_both_versions_of_ip_and_keep_a_number_that_they_are_given() -> None:
    lab = BGP.replace("a: {", "a: {as: 65001, ") % "frr" + "addressing: {ipv6: 'fd00::/48'}\n"
    assert "as: 65001" in lab
    found = plan(lab)
    text = file_of(found, "a", "/etc/dilaton/bgpd.conf")
    assert "router bgp 65001\n" in text
    sessions = re.findall(r"neighbor (\S+) remote-as (\d+)", text)
    assert len(sessions) == 4 and {number for _, number in sessions} == {"64512", "64513"}
    assert sum(":" in address for address, _ in sessions) == 2
    v4, v6 = text.split("address-family ipv4")[1].split("address-family ipv6")
    assert v4.count("activate") == v6.count("activate") == 2 and v4.count(":") == 0


def test_neighbours_in_one_autonomous_system_are_refused_and_others_are_not() -> None:
    lab = "nodes: {a: {kind: router, as: 1}, b: {kind: router%s}, c: {kind: router, as: 1}}\nlinks: [a -- b, b -- c]\n"
    assert plan(lab % "" + "routing: bgp\n")
    assert mistakes(lab % ", as: 1" + "routing: bgp\n")[0].startswith("nodes.b.as: 1: a, which")
    assert "nodes.a.as: only routers with BGP" in mistakes(lab % "")[0]


def own_lab(tmp_path: Path, daemons: str | None) -> Path:
    directory = tmp_path / "frr"
    directory.mkdir()
    (directory / "frr.conf").write_text("router bgp 1\n")
    if daemons is not None:
        (directory / "daemons").write_text(daemons)
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: x\nnodes: {a: {kind: router, config: frr}, b: {}}\nlinks: [a -- b]\n")
    return lab


def test_a_directory_of_frr_is_taken_as_it_is(tmp_path: Path) -> None:
    found = compile_plan(load(own_lab(tmp_path, 'bgpd=yes\nospfd=no\nbgpd_options="-A 127.0.0.1 -M rpki"\n')))
    assert file_of(found, "a", "/etc/dilaton/frr/frr.conf") == "router bgp 1\n"
    assert [process.name for process in found.processes] == ["a-zebra", "a-staticd", "a-bgpd", "a-vtysh"]
    assert found.processes[2].argv[1:] == ["-A", "127.0.0.1", "-M", "rpki", "-P", "2605", "--log", "stdout"]
    assert [awaited.name for awaited in found.processes[3].after] == ["a-zebra", "a-staticd", "a-bgpd"]
    assert node(found, "a").routes == []


@pytest.mark.parametrize(
    ("daemons", "message"),
    [(None, "no file daemons in this directory"), ("xyzd=yes\n", "daemons: xyzd: not a daemon that is known")],
)
def test_a_directory_of_frr_that_does_not_say_what_runs_is_refused(
    tmp_path: Path, daemons: str | None, message: str
) -> None:
    with pytest.raises(LabError, match=f"nodes.a.config: {message}"):
        compile_plan(load(own_lab(tmp_path, daemons)))


OPENFLOW = """
nodes: {a: , b: , c0: {kind: host}, s1: {kind: ovs, controller: "tcp:c0:6654"}, s2: {kind: ovs}}
links: [a -- s1, s1 -- s2, s2 -- b, "c0 -- s1:mgmt0"]
"""


def test_open_vswitch_has_all_ports_but_the_one_to_its_controller_and_leaves_their_queues_alone() -> None:
    found = plan(OPENFLOW)
    text = file_of(found, "s1", "/etc/dilaton/ovs.sh")
    assert "add-port br0 eth0 -- set port eth0 qos=@links -- add-port br0 eth1" in text
    assert "mgmt0" not in text
    assert "set-controller br0 tcp:10.0.0.0:6654" in text and "set-fail-mode br0 secure" in text
    assert "set-fail-mode br0 standalone" in file_of(found, "s2", "/etc/dilaton/ovs.sh")
    assert addresses(found)["s1:mgmt0"] == ["10.0.0.1/31"]
    assert addresses(found)["s1:eth0"] == []
    assert "openvswitch" in found.guests[0].modules


def test_a_controller_by_kind_listens_where_switches_look_for_it() -> None:
    found = plan(
        """
nodes: {c0: {kind: controller}, s1: {kind: ovs, controller: "tcp:c0"}}
links: ["c0 -- s1:mgmt0"]
"""
    )
    assert "set-controller br0 tcp:10.0.0.0:6653" in file_of(found, "s1", "/etc/dilaton/ovs.sh")
    controller = found.processes[0]
    assert (controller.name, controller.argv[-1], controller.ready) == (
        "c0-controller",
        "ptcp:6653",
        ReadyTcp(port=6653),
    )


def test_routers_wait_for_routes_only_where_something_waits_for_them() -> None:
    text = "nodes: {h: , r1: , r2: , k: }\nlinks: [h -- r1, r1 -- r2, r2 -- k]\nrouting: ospf\n"
    waits = "run: [{on: h, exec: ping -c 1 k, after: converged}]\n"
    assert not [
        one for one in plan(text + waits.replace(", after: converged", "")).processes if "converged" in one.name
    ]
    own = waits.replace("exec: ping -c 1 k", "name: own, exec: ls") + "  - {on: h, name: converged, exec: ls}\n"
    own = own.replace("run: [", "run:\n  - ").replace("}]", "}")
    assert [one.name for one in plan(text + own).processes] == ["r1-bird", "r2-bird", "own", "converged"]
    found = plan(text + waits)
    processes = {one.name: one for one in found.processes}
    assert [*processes] == ["r1-bird", "r2-bird", "ping", "r1-converged", "r2-converged", "converged"]
    # r1 is on the links to h and r2; it is the third link and the other router's own address that it has to learn.
    assert processes["r1-converged"].argv == ["/proc/1/exe", "converged", "120", "/etc/dilaton/networks"]
    assert file_of(found, "r1", "/etc/dilaton/networks") == "10.0.0.4/31\n192.168.0.2/32\n"
    assert file_of(found, "r2", "/etc/dilaton/networks") == "10.0.0.0/31\n192.168.0.1/32\n"
    assert [one.name for one in processes["converged"].after] == ["r1-converged", "r2-converged"]
    assert [one.name for one in processes["ping"].after] == ["converged"]


def test_a_lab_without_routers_cannot_wait_for_routes() -> None:
    with pytest.raises(LabError, match="converged: is waited for, and no node of this lab is a router"):
        plan(
            "nodes: {a: , b: }\nlinks: [a -- b]\nrouting: bgp\nexpect: [converged.end < 9s]\nrun: [{on: a, exec: ls}]\n"
        )
