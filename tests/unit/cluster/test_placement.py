"""Machines are divided where the links are long, and none is without a guest."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dilaton.cluster.division.placement import EXCHANGE_HOST_S, cuts, place
from dilaton.cluster.engines.engine import Host
from dilaton.host.errors import GuestError
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.machine import Machine
from dilaton.plan.model import Plan


def hosts(*sizes: int) -> list[Host]:
    return [Host(f"machine{number}", size) for number, size in enumerate(sizes)]


def chain(delays: list[str], memory: str = "", placement: str = "{}") -> Plan:
    """A chain of guests."""
    nodes = [f"n{number}" for number in range(len(delays) + 1)]
    links = [
        f"{{endpoints: [{a}, {b}], delay: {delay}}}" for (a, b), delay in zip(pairwise(nodes), delays, strict=True)
    ]
    text = f"name: chain\nguests: per-node\nplacement: {placement}\nnodes: {{{', '.join(f'{node}: {{{memory}}}' for node in nodes)}}}\n"
    text += f"links: [{', '.join(links)}]\nrun: [{{on: n0, name: p, exec: 'true'}}]\n"
    return compile_plan(loads(text, "chain.yaml"), Machine(cores=2, memory_bytes=1 << 40, users=frozenset({"root"})))


def test_the_longest_link_is_cut() -> None:
    homes = place(chain(["1ms", "1ms", "1ms", "50ms", "1ms", "1ms", "1ms"]), hosts(1, 1))
    assert homes == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("machines", [1, 2, 3, 4, 5, 6])
def test_no_machine_is_without_a_guest(machines: int) -> None:
    homes = place(chain(["1ms", "20ms", "1ms", "20ms", "1ms"]), hosts(*[1] * machines))
    assert set(homes) == set(range(machines))
    assert homes[0] == 0


@pytest.mark.parametrize("sizes", [(1, 3), (3, 1), (1, 2, 3), (3, 2, 1), (2, 1, 2, 3)], ids=str)
def test_a_larger_machine_has_more_guests_whatever_its_number_is(sizes: tuple[int, ...]) -> None:
    homes = place(chain(["1ms"] * 23), hosts(*sizes))
    held = [homes.count(machine) for machine in range(len(sizes))]
    assert all(
        held[one] > held[other]
        for one, size in enumerate(sizes)
        for other, smaller in enumerate(sizes)
        if size > smaller
    ), held


def test_nodes_are_on_no_machine_that_lacks_the_memory_that_they_may_take() -> None:
    plan = chain(["1ms", "1ms", "1ms"], "memory: 1GB")
    place(plan, hosts(2 * 10**9, 2 * 10**9))
    said = (
        r"may take 2 GB in sum, and machine\d, where they would be, has 1.9 GB; give nodes less, or take more machines"
    )
    with pytest.raises(GuestError, match=said):
        place(plan, hosts(19 * 10**8, 19 * 10**8))


def pinned(delays: list[str], placement: str, machines: int) -> list[int]:
    return place(chain(delays, placement=placement), hosts(*[1] * machines))


def test_a_guest_is_where_its_lab_says_and_its_neighbours_come_along() -> None:
    assert pinned(["1ms", "1ms", "50ms", "1ms", "1ms"], "{n0: 1}", 2) == [1, 1, 1, 0, 0, 0]
    assert pinned(["1ms", "1ms", "50ms", "1ms", "1ms"], "{n0: 0, n5: 0, n2: 1}", 2) == [0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("machines", [2, 3, 4, 5, 6])
def test_no_machine_is_without_a_guest_if_some_have_their_place(machines: int) -> None:
    homes = pinned(["1ms", "20ms", "1ms", "20ms", "1ms"], "{n1: 1}", machines)
    assert set(homes) == set(range(machines))
    assert homes[1] == 1


def test_a_placement_that_leaves_a_machine_without_a_guest_is_refused() -> None:
    with pytest.raises(GuestError, match="placement leaves no guest for machine0; put fewer guests elsewhere"):
        pinned(["1ms", "1ms"], '{"n*": 1}', 2)


def test_a_cut_costs_what_its_delay_makes_of_it_and_the_dearest_is_first() -> None:
    planned = chain(["10ms", "1ms", "1ms"])
    found = cuts(planned, [0, 1, 1, 2])
    assert [(cut.link, cut.machines, cut.delay_ns) for cut in found] == [
        ("n2:eth1--n3:eth0", (1, 2), 10**6),
        ("n0:eth0--n1:eth0", (0, 1), 10**7),
        (None, (0, 1), 10**7),
        (None, (0, 2), 10**7),
    ]
    costs = [cut.host_s_per_virtual_s / EXCHANGE_HOST_S for cut in found]
    assert costs == pytest.approx([1000, 100, 100, 100])
    assert cuts(planned, [0, 0, 0, 0]) == []
