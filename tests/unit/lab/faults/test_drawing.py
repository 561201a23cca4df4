"""What a lab leaves to its seed: who is meant by a selector, and the faults of `random`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilaton.lab import Lab, loads
from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.meeting import meeting
from dilaton.plan.compile import compile

NODES = (
    "nodes: {a: {}, db1: {group: stores}, db2: {group: stores}, db3: {group: stores}, db4: {}}\ngroups: {stores: {}}\n"
)
LINKS = "links: [a--db1, {endpoints: [db1, db2], delay: 1ms}, db2--db3, db3--db4]\n"
RUN = "run: [{on: db1, name: s1, exec: sleep 9, background: true}, {on: db2, name: s2, exec: sleep 9, background: true}, {on: a, name: work, exec: sleep 9}]\n"
KINDS = ["pause", "kill", "link", "partition", "{link: one of db*--*, loss: 30%}", "{pause: one of stores}"]


def lab_of(faults: str, seed: int = 1) -> Lab:
    return loads(f"name: x\nseed: {seed}\n{NODES}{LINKS}{RUN}faults: [{faults}]\n", "lab.yaml")


def words(faults: str, seed: int = 1) -> list[str]:
    return [fault.words for fault in lab_of(faults, seed).faults]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pause: db1", ["pause db1"]),
        ("pause: 'db[12]'", ["pause db1", "pause db2"]),
        ("pause: stores", ["pause db1", "pause db2", "pause db3"]),
        ("pause: 100% of stores", ["pause db1", "pause db2", "pause db3"]),
        ("kill: '*/s*'", ["kill db1/s1", "kill db2/s2"]),
        ("kill: 'db2/*'", ["kill db2/s2"]),
        ("pause: one of db3", ["pause db3"]),
        ("link: 'db3--*', down: true", ["link db2:eth1--db3:eth0 down", "link db3:eth1--db4:eth0 down"]),
        ("flap: {link: 'db4--*', down: 1s, up: 1s}", ["flap db3:eth1--db4:eth0"]),
    ],
)
def test_names_patterns_and_groups_mean_what_they_meet(written: str, meant: list[str]) -> None:
    assert words(f"{{at: 1s, {written}}}") == meant


@given(seed=st.integers(1, 2**31), count=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_so_many_are_drawn_each_once_and_the_same_again(seed: int, count: int) -> None:
    text = f"{{name: f, at: 1s, pause: '{count} of db*'}}"
    found = words(text, seed)
    assert len(set(found)) == count == len(found)
    assert set(found) <= {f"pause db{number}" for number in range(1, 5)}
    assert words(text, seed) == found


def test_another_seed_draws_others() -> None:
    assert {tuple(words("{at: 1s, pause: 2 of db*}", seed)) for seed in range(40)} == {
        (f"pause {one}", f"pause {other}") for one, other in itertools.combinations(("db1", "db2", "db3", "db4"), 2)
    }


@given(seed=st.integers(1, 2**31))
@settings(max_examples=15, deadline=None)
def test_two_groups_that_are_drawn_never_share_a_node(seed: int) -> None:
    (entry,) = compile(lab_of("{at: 1s, partition: [[2 of db*], [2 of db*]]}", seed)).course
    groups = entry.what.removeprefix("partition ").split(" | ")
    assert sorted(name for group in groups for name in group.split(", ")) == ["db1", "db2", "db3", "db4"]


@given(
    seed=st.integers(1, 2**31),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
    at_most=st.integers(1, 3),
    every=st.sampled_from(["exponential 2s", "uniform 500ms..4s", "3s"]),
)
@settings(max_examples=20, deadline=None)
def test_random_faults_are_in_their_time_not_too_many_and_never_meet(
    seed: int, kinds: list[str], at_most: int, every: str
) -> None:
    chance = f"{{every: {every}, for: uniform 1s..5s, of: [{', '.join(kinds)}], on: 'db*', at_most: {at_most}}}"
    text = f"{{name: chaos, at: 10s, for: 60s, random: {chance}}}, {{name: own, at: 30s, for: 5s, pause: db2}}"
    lab = lab_of(text, seed)
    found = [fault for fault in lab.faults if fault.name != "own"]
    for fault in found:
        begin_ns, end_ns = span(fault)
        assert 10 * 10**9 <= begin_ns < end_ns <= 70 * 10**9
        assert 10**9 <= end_ns - begin_ns <= 5 * 10**9
        assert sum(span(other)[0] <= begin_ns < span(other)[1] for other in found) <= at_most
    for one, other in itertools.combinations(lab.faults, 2):
        (begin_ns, end_ns), (other_begin_ns, other_end_ns) = span(one), span(other)
        if begin_ns < other_end_ns and other_begin_ns < end_ns:
            assert meeting(lab.links, one, other) is None
    assert compile(lab_of(text, seed)) == compile(lab)


def span(fault: Fault) -> tuple[int, int]:
    assert fault.at_ns is not None
    assert fault.lasts_ns is not None
    return fault.at_ns, fault.at_ns + fault.lasts_ns


def test_another_seed_draws_other_faults_and_all_kinds_come() -> None:
    text = "{for: 600s, random: {every: exponential 5s, for: 1s, of: [pause, kill, link, partition], on: 'db*'}}"
    one, other = ([(fault.at_ns, fault.words) for fault in lab_of(text, seed).faults] for seed in (1, 2))
    assert one != other
    assert {said.split()[0] for _, said in one} == {"pause", "kill", "link", "partition"}
    # 600 s of exponential times of 5 s are 120 on the average; fewer than 60 or more than 200 come once in 10^8 seeds.
    # Each lasts 1 s, and one that begins meanwhile is left out: one in six.
    assert 60 < len(one) < 200


def test_random_faults_after_something_wait_for_it() -> None:
    chance = "{every: 2s, for: 1s, of: pause, on: db1}"
    found = lab_of(f"{{name: f, after: s1, wait: 500ms, for: 7s, random: {chance}}}").faults
    assert [(fault.name, fault.after, fault.wait_ns) for fault in found] == [
        ("f-1", "s1", 2_500_000_000),
        ("f-2", "s1", 4_500_000_000),
        ("f-3", "s1", 6_500_000_000),
    ]


def test_a_fault_of_many_things_can_be_awaited_by_its_number() -> None:
    lab = lab_of("{name: f, at: 1s, for: 1s, pause: stores}, {after: f-2.end, pause: a}")
    assert [fault.name for fault in lab.faults] == ["f-1", "f-2", "f-3", "fault2"]
