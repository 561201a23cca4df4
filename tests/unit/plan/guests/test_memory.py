"""A lab does not promise its nodes more memory than there is."""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.machine import Machine

LINK = {"endpoints": "a -- b", "delay": "5ms"}


def refused(nodes: dict[str, Any], memory_bytes: int | None = None, **fields: Any) -> str:
    lab = Lab.model_validate({"name": "x", "nodes": nodes, "links": [LINK], **fields})
    with pytest.raises(LabError) as error:
        compile_plan(lab, Machine(memory_bytes=memory_bytes))
    return str(error.value)


def test_nodes_that_may_take_more_than_the_host_has_are_refused() -> None:
    text = refused({"a": {"memory": "3GB"}, "b": {"memory": "5GB"}}, 8 * 10**9 - 1)
    assert "nodes.b.memory: the lab may take 8GB of memory in sum, and this machine has 7.9GB" in text


def test_guests_count_by_what_is_written_of_them() -> None:
    text = refused({"a": {"guest": "x"}, "b": {"guest": "y"}}, 10**9, guests={"x": {"memory": "2GiB"}})
    assert "the lab may take 2.1GB of memory in sum, and this machine has 1GB" in text


def test_nodes_that_may_take_more_than_their_guest_has_are_refused() -> None:
    nodes = {"a": {"guest": "x", "memory": "300MB"}, "b": {"guest": "x", "memory": "300MB"}}
    text = refused(nodes, guests={"x": {"memory": "512MB"}})
    assert "guests.x.memory: nodes of guest x may take 600MB in sum, and it has 512MB; give it more, or" in text
    text = refused({"a": {"memory": "10GB"}, "b": {"memory": "12GB"}})
    assert (
        "nodes.b.memory: nodes of guest guest0 may take 22GB in sum, and it has 17.1GB; write guests: per-node" in text
    )


def test_a_node_that_is_too_large_for_any_guest_is_refused_with_what_helps() -> None:
    text = refused({"a": {}, "b": {"memory": "20GB"}}, guests="per-node")
    assert "nodes of guest b may take 20GB in sum, and it has 17.1GB; give nodes less" in text


def test_what_fits_exactly_is_taken() -> None:
    lab = Lab.model_validate({"name": "x", "nodes": {"a": {"memory": "1GB"}, "b": {"memory": "1GB"}}, "links": [LINK]})
    assert len(compile_plan(lab, Machine(memory_bytes=2 * 10**9)).nodes) == 2
