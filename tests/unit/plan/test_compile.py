"""A plan says everything, always the same, and survives being written and read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dilaton.lab import Lab, load, loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.guests.kernels import MEMORY_MAX, MIB
from dilaton.plan.model import Plan, Process

GOLDEN = Path(__file__).parent / "golden"


def lab(**fields: Any) -> Lab:
    return Lab.model_validate({"name": "x", "nodes": {"a": {}, "b": {}}, **fields})


def test_the_golden_lab_compiles_to_the_golden_plan() -> None:
    """After a wanted change: `dilaton plan tests/unit/plan/golden/lab.yaml > tests/unit/plan/golden/plan.json`."""
    assert (
        compile_plan(load(GOLDEN / "lab.yaml")).model_dump_json(indent=1) + "\n" == (GOLDEN / "plan.json").read_text()
    )


def test_compiling_twice_gives_the_same_plan() -> None:
    text = (GOLDEN / "lab.yaml").read_text()
    first, second = (compile_plan(loads(text, "lab.yaml")).model_dump_json() for _ in range(2))
    assert first == second


def test_a_plan_survives_json() -> None:
    plan = compile_plan(load(GOLDEN / "lab.yaml"))
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_lab_of_one_node_and_nothing_else_has_a_plan() -> None:
    plan = compile_plan(Lab.model_validate({"name": "x", "nodes": {"a": {}}}))
    assert (plan.nodes[0].interfaces, plan.nodes[0].routes, plan.hosts, plan.links) == ([], [], [], [])


def test_the_tdf_stays_exact() -> None:
    tdf = compile_plan(lab(time={"tdf": "1/3"})).time.tdf
    assert Fraction(tdf.numerator, tdf.denominator) == Fraction(1, 3)


def test_sysctls_of_the_lab_win() -> None:
    nodes = {"a": {"sysctls": {"net.ipv4.ip_forward": "0", "net.ipv6.conf.eth0.disable_ipv6": "0"}}, "b": {}}
    plan = compile_plan(lab(nodes=nodes, links=["a -- b", "a -- b"]))
    assert plan.nodes[0].sysctls == {
        "net/ipv4/ping_group_range": "0 2147483647",
        "net/ipv4/ip_forward": "0",
        "net/ipv6/conf/eth0/disable_ipv6": "0",
        "net/ipv6/conf/eth1/disable_ipv6": "1",
    }
    assert plan.nodes[1].sysctls["net/ipv4/ip_forward"] == "1"


def process(**fields: Any) -> Process:
    return compile_plan(lab(run=[{"on": "a", "exec": "true", **fields}])).processes[0]


def test_the_environment_of_a_process_is_complete_and_the_labs_wins() -> None:
    env = process(env={"LANG": "C", "DEBUG": "1"}).env
    assert (env["HOSTNAME"], env["HOME"], env["LANG"], env["DEBUG"]) == ("a", "/root", "C", "1")
    assert env["PATH"].split(":")[0] == "/usr/local/sbin"


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ({"tcp": "80"}, {"kind": "tcp", "port": 80}),
        ({"output": "up"}, {"kind": "output", "regex": "up"}),
        ({"delay": "0s"}, {"kind": "delay", "delay_ns": 0}),
    ],
)
def test_each_kind_of_readiness_is_planned(ready: dict[str, str], expected: dict[str, object]) -> None:
    planned = process(ready=ready).ready
    assert planned is not None and planned.model_dump() == expected


def test_congestion_controls_that_nodes_choose_are_loaded() -> None:
    chosen = {name: {"sysctls": {"net.ipv4.tcp_congestion_control": name}} for name in ("vegas", "cubic", "bbr")}
    assert compile_plan(lab(nodes=chosen)).guests[0].modules[-2:] == ["tcp_bbr", "tcp_vegas"]
    bulk = {"on": "a", "name": "bulk", "exec": "/usr/bin/iperf3 -c b -C htcp -J"}
    assert compile_plan(lab(run=[bulk])).guests[0].modules[-1] == "tcp_htcp"


def memory(written: Lab) -> int:
    return compile_plan(written).guests[0].memory_bytes


def test_memory_grows_with_nodes_and_with_what_is_under_way_and_is_bounded() -> None:
    small = memory(lab())
    assert small == 1024 * MIB
    many = memory(lab(nodes={f"n{i}": {} for i in range(500)}))
    assert many == (512 + 4 * 500) * MIB
    fat = {"endpoints": "a -- b", "rate": "10Gbit", "delay": "100ms", "queue": {"limit": "1"}}
    # 125 MB each way, times 2.5.
    assert memory(lab(links=[fat])) == pytest.approx(520 * MIB + 2 * 125e6 * 2.5, abs=MIB)
    assert memory(lab(links=[fat | {"rate": "10Tbit", "delay": "24h"}])) == MEMORY_MAX
    assert memory(lab(links=[fat])) % MIB == 0


def test_a_node_with_large_tcp_buffers_has_the_memory_to_fill_them() -> None:
    large = {"net.ipv4.tcp_rmem": "4096 131072 268435456", "net.ipv4.tcp_wmem": "4096 16384 134217728"}
    guest = compile_plan(lab(nodes={"a": {"sysctls": large}, "b": {}})).guests[0]
    under_pressure = int(guest.sysctls["net/ipv4/tcp_mem"].split()[1]) * 4096
    assert under_pressure > 268435456
    assert guest.memory_bytes == (512 + 8 + 3 * 256) * MIB
    assert memory(lab(nodes={"a": {"sysctls": {"net.ipv4.tcp_rmem": "4096 131072 6291456"}}, "b": {}})) == memory(lab())


def test_no_limit_of_a_single_machine_is_left_to_a_guest() -> None:
    guest = compile_plan(lab()).guests[0]
    assert int(guest.sysctls["net/core/netdev_max_backlog"]) > 10**9
    pages = [int(mark) for mark in guest.sysctls["net/ipv4/tcp_mem"].split()]
    at_ease, under_pressure, refusing = pages
    assert at_ease == under_pressure < refusing, "between the first two send buffers stop growing, untold"
    assert refusing * 4096 * 2 == guest.memory_bytes
