"""Machines are divided where the links are long, and none is without a guest."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dilaton.cluster.placement import place
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.machine import Machine
from dilaton.plan.model import Plan


def chain(delays: list[str]) -> Plan:
    """A chain of guests."""
    nodes = [f"n{number}" for number in range(len(delays) + 1)]
    links = [
        f"{{endpoints: [{a}, {b}], delay: {delay}}}" for (a, b), delay in zip(pairwise(nodes), delays, strict=True)
    ]
    text = f"name: chain\nguests: per-node\nnodes: {{{', '.join(f'{node}: {{}}' for node in nodes)}}}\n"
    text += f"links: [{', '.join(links)}]\nrun: [{{on: n0, name: p, exec: 'true'}}]\n"
    return compile_plan(loads(text, "chain.yaml"), Machine(cores=2, memory_bytes=1 << 40, users=frozenset({"root"})))


def test_the_longest_link_is_cut() -> None:
    homes = place(chain(["1ms", "1ms", "1ms", "50ms", "1ms", "1ms", "1ms"]), [1, 1])
    assert homes == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("machines", [1, 2, 3, 4, 5, 6])
def test_no_machine_is_without_a_guest(machines: int) -> None:
    homes = place(chain(["1ms", "20ms", "1ms", "20ms", "1ms"]), [1] * machines)
    assert set(homes) == set(range(machines))
    assert homes[0] == 0
