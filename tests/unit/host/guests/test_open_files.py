"""A run asks for the open files that it needs before it boots, and says so where it may not have them."""

from __future__ import annotations

import resource

import pytest

from dilaton.host.errors import HostLacksError
from dilaton.host.here.guests import open_files
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan


@pytest.mark.parametrize(
    ("lab", "needed"),
    [
        ("{name: one, nodes: {a: , b: }, links: [a -- b]}", 1024),
        ("{name: many, guests: per-node, topology: {generate: line, nodes: 70, delay: 5ms, rate: 1Mbit}}", 1040),
        ("{name: disk, nodes: {a: {disk: nvme}}}", 4097),
        (
            "{name: two, guests: per-node, nodes: {a: , b: {disk: nvme}}, links: [{endpoints: [a, b], delay: 1ms}]}",
            4113,
        ),
    ],
)
def test_the_highest_descriptor_decides_how_many_a_run_needs(lab: str, needed: int) -> None:
    assert open_files.needed(compile_plan(loads(lab, "lab.yaml"))) == needed


def test_what_this_process_may_have_is_taken_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    open_files.allow(4096)
    assert limits[1:] == [(4096, 4096)]
    with pytest.raises(
        HostLacksError, match=r"^this run needs 4,097 open files, and this process may have 4,096; to fix"
    ):
        open_files.allow(4097)
    assert len(limits) == 2
