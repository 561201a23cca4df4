"""Scaling down: each machine gets its CPU, and what cannot be scaled is said."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.machine import Machine
from dilaton.plan.scale import Proposal, machines, nodes_per_guest_max, propose

HOST = Machine(cores=2, memory_bytes=16 * 10**9)


def star(leaves: int, delay: str = "1ms", **fields: Any) -> Lab:
    topology = {"generate": "star", "leaves": str(leaves), "rate": "1Gbit", "delay": delay}
    return Lab.model_validate({"name": "x", "topology": topology, "nodes": {"n0": {"kind": "switch"}}, **fields})


def proposal(leaves: int = 8, onto: int = 2, **fields: Any) -> Proposal:
    return propose(star(leaves, **fields), onto, HOST)


def test_machines_are_the_hosts_of_a_lab() -> None:
    assert machines(star(3)) == ["n1", "n2", "n3"]


def test_what_only_forwards_is_no_machine_whether_or_not_its_kind_is_said() -> None:
    topology = {"generate": "star", "leaves": 3, "delay": "1ms"}
    runs = [{"on": "n0", "exec": "true"}]
    for run, nodes, expected in (([], {}, 3), (runs, {}, 4), (runs, {"n0": {"kind": "router"}}, 3)):
        lab = Lab.model_validate({"name": "x", "topology": topology, "nodes": nodes, "run": run})
        assert len(machines(lab)) == expected


def test_the_tdf_is_what_the_machines_of_the_fullest_guest_need_and_a_quarter() -> None:
    found = proposal()
    assert sorted(name for part in found.parts for name in part.machines) == sorted(f"n{i}" for i in range(1, 9))
    fullest = max(part.cpu for part in found.parts)
    assert found.machines_per_guest_max == fullest
    assert found.tdf == -(-fullest * 5 // 4)


def test_faster_machines_take_more_of_a_guest() -> None:
    slow, fast = proposal(defaults={"cpu": "1/2"}), proposal(defaults={"cpu": "2"})
    assert slow.cpus["n1"] == Fraction(1, 2) and fast.cpus["n1"] == 2
    assert [part.cpu for part in fast.parts] == [4 * part.cpu for part in slow.parts]


def test_a_run_takes_no_longer_than_busy_guests_on_the_cores_that_there_are() -> None:
    found = proposal(onto=4)
    assert found.host_s_max(10, cores=4) == 10 * found.tdf
    assert found.host_s_max(10, cores=2) == 20 * found.tdf


def test_guests_hold_no_more_machines_than_their_memory_and_disks() -> None:
    assert nodes_per_guest_max(star(4, defaults={"memory": "1GiB"}))[0] == 16
    assert nodes_per_guest_max(star(4, defaults={"memory": "4GiB"}))[0] == 4
    most, why = nodes_per_guest_max(star(4, defaults={"disk": "nvme"}))
    assert (most, "disk" in why) == (16, True)


def test_what_does_not_scale_is_said() -> None:
    losses = proposal(defaults={"memory": "512MB"}).losses
    assert "memory: it is not scaled; 4.1 GB of 16 GB are needed when all machines use theirs" in losses
    assert any(loss.startswith("caches: up to") for loss in losses)
    assert not any(loss.startswith("caches") for loss in propose(pair(), 2, HOST).losses)


def pair() -> Lab:
    links = [{"endpoints": "a -- b", "delay": "5ms"}]
    return Lab.model_validate({"name": "x", "nodes": {"a": {}, "b": {}}, "links": links})


def test_a_lab_that_falls_into_fewer_parts_is_refused() -> None:
    with pytest.raises(LabError, match="the lab falls into only 1 part"):
        proposal(delay="10us")
