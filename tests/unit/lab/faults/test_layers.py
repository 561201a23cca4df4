"""Which faults of one link may last together, and what the link is then."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads
from dilaton.lab.steering import read_faults
from dilaton.plan.compile import compile
from dilaton.plan.course.entries import ImpairLink, Timed
from dilaton.plan.links.queues import Netem

HEAD = (
    "name: x\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: [a, b], delay: 1ms}]\nrun: [{on: a, name: p, exec: sleep 9}]\n"
)


def planned(faults: str) -> dict[str, ImpairLink]:
    course = compile(loads(f"{HEAD}faults: [{faults}]\n", "lab.yaml")).course
    return {entry.name: impairs(entry) for entry in course}


def impairs(entry: Timed) -> ImpairLink:
    assert isinstance(entry.effect, ImpairLink)
    return entry.effect


def delays(effect: ImpairLink, key: str) -> list[tuple[int, bool]]:
    """Of both ends under a set of faults: the delay, ns, and whether it is up."""
    found = []
    for end in effect.beside[key]:
        netem = next(one for one in end.egress.qdiscs if isinstance(one, Netem))
        found.append((netem.delay_ns, end.up))
    return found


def test_faults_that_say_different_things_have_a_state_together() -> None:
    found = planned("{name: z, at: 1s, link: a--b, delay: 9ms}, {name: y, at: 2s, link: a--b, down: true}")
    assert set(found["z"].beside) == set(found["y"].beside) == {"y+z"}
    assert delays(found["z"], "y+z") == [(9_000_000, False)] * 2


def test_each_direction_is_a_thing_of_its_own() -> None:
    found = planned(
        "{name: x, at: 1s, link: a--b, a_to_b: {delay: 9ms}}, {name: y, at: 1s, link: a--b, b_to_a: {delay: 5ms}}"
    )
    assert delays(found["x"], "x+y") == [(9_000_000, True), (5_000_000, True)]


def test_what_cannot_last_together_by_its_instants_has_no_state_together() -> None:
    found = planned(
        "{name: x, at: 1s, for: 1s, link: a--b, delay: 9ms}, {name: y, at: 2s, for: 1s, link: a--b, down: true},"
        " {name: z, after: p, link: a--b, loss: 1%}"
    )
    assert {name: set(effect.beside) for name, effect in found.items()} == {
        "x": {"x+z"},
        "y": {"y+z"},
        "z": {"x+z", "y+z"},
    }


def test_those_that_wait_and_say_the_same_are_never_together() -> None:
    found = planned("{name: x, after: p, link: a--b, loss: 9%}, {name: y, after: p, link: a--b, loss: 1%}")
    assert not found["x"].beside


def test_more_sets_than_a_plan_can_have_are_told() -> None:
    fields = ["rate: 1Mbit", "loss: 1%", "duplicate: 1%", "corrupt: 1%", "queue: 9p"]
    each = [f"{{after: p, link: a--b, {way}: {{{field}}}}}" for way in ("a_to_b", "b_to_a") for field in fields]
    with pytest.raises(LabError, match="may last together in more than 500 ways; write at: in them"):
        planned(", ".join(each))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"delay": 50}, "delay: 50: a delay needs a unit"),
        ({"a_to_b": {"loss": "5"}}, "a_to_b.loss: 5: a loss needs a percent sign"),
        ({"delay": {"mean": 50}}, "delay.mean: 50: a delay needs a unit"),
    ],
)
def test_a_fault_by_hand_is_told_of_the_fields_that_it_says(fields: dict[str, object], said: str) -> None:
    with pytest.raises(LabError) as caught:
        read_faults(loads(HEAD, "lab.yaml"), {"link": "a--b", **fields}, "mine", 0, ".")
    assert str(caught.value).startswith(said)
