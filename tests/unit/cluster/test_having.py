"""What machines have is compared before a run is on them, and each difference that could change results is told in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dilaton.cluster.engines import having
from dilaton.cluster.engines.having import Has, Needs, needs, refusals
from dilaton.cluster.values import from_json, to_json
from dilaton.host.errors import HostLacksError
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan

HAS = Has("1", "sources", "kernel", False, "libc", "a CPU", 2, 2, 2700, 10**9, "6.1", ["digest"], [], "", 0)
NEEDED = Needs(same=["/usr/bin/iperf3"])


def planned(text: str) -> Plan:
    return compile_plan(loads(f"name: lab\n{text}", "lab.yaml"))


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"version": "2"}, "it has Dilaton 2, and this machine 1"),
        ({"sources": "other"}, "its Dilaton 1 has other sources"),
        ({"kernel": "another"}, "its guests run another kernel"),
        ({"c_library": "musl"}, "it has another C library"),
        ({"same": ["other"]}, "its /usr/bin/iperf3 is another file than here"),
        ({"same": [""]}, "it has no /usr/bin/iperf3"),
        ({"missing": ["/srv/data"]}, "it has no /srv/data"),
        ({"lacks": "bubblewrap is not installed; to fix it: apt"}, "bubblewrap is not installed"),
        ({"cpu": "another CPU"}, "on the work drive virtual time is measured by CPU time"),
    ],
)
def test_each_difference_that_could_change_results_is_a_refusal(differs: dict[str, object], said: str) -> None:
    (why,) = refusals(NEEDED, HAS, replace(HAS, **differs), drive="work")  # type: ignore[arg-type]
    assert said in why


def test_what_cannot_change_results_is_none() -> None:
    other = replace(HAS, cores=64, ghz=None, memory_bytes=10**12, release="6.12", runs=3)
    assert not refusals(NEEDED, HAS, other, drive="work")
    assert not refusals(NEEDED, HAS, replace(other, cpu="another CPU"), drive="event")
    assert not refusals(NEEDED, replace(HAS, gives_kernel=True), replace(other, kernel="another"), drive="event")


def test_a_machine_has_what_itself_has() -> None:
    asked = Needs(same=["/bin/sh", "/nowhere/program"], there=["/", "/nowhere"])
    found = having.has(asked)
    assert from_json(Has, to_json(found)) == found
    assert found.c_library
    assert (len(found.same[0]), found.same[1]) == (64, "")
    assert found.missing == ["/nowhere"]
    # Which cores are free changes meanwhile.
    again = replace(having.has(asked), free_cores=found.free_cores, runs=found.runs)
    assert replace(again, missing=[], same=["a", "b"]) == replace(found, missing=[], same=["a", "b"])


def test_a_plan_needs_the_programs_that_nodes_see_of_their_machine(tmp_path: Path) -> None:
    plan = planned(f"nodes: {{a: {{}}}}\nrun: [{{on: a, exec: sh -c true}}, {{on: a, exec: {tmp_path}/none}}]")
    found = needs(plan, jailed=True)
    assert found.same == [str(Path("/bin/sh").resolve())]
    assert found.jailed
    assert not found.there


def test_what_a_node_writes_into_a_file_of_one_machine_keeps_it_there(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(bytes(16_000_000))
    disk = f"{{model: ssd-sata, size: 16MB, image: {image}, mount: /data}}"
    plan = planned(f"nodes: {{a: {{disk: {disk}}}}}\nrun: [{{on: a, exec: sh}}]")
    with pytest.raises(HostLacksError, match=r"a keeps what it writes in .*disk\.img, a file of this machine"):
        needs(plan, jailed=True)
