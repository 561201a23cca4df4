"""A link that is steered becomes what was asked, and keeps everything else, what is still planned included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dilaton.lab import Lab, LabError, loads
from dilaton.lab.parts.links import Change
from dilaton.lab.segments import without_lans
from dilaton.lab.steering import check_changed, read_change
from dilaton.plan.compile import compile
from dilaton.plan.course.entries import LinkUpdate, Timed
from dilaton.plan.links.changes import changes_of_links
from dilaton.plan.links.queues import Netem, Qdisc, RandomLoss
from dilaton.plan.links.updates import SteeredLink, link_update
from tests.course import ends, instant

SECOND = 10**9
NOW = 5 * SECOND


def steered(*changes: dict[str, Any], **fields: Any) -> SteeredLink:
    """A link from a to b, as it was planned."""
    data = {"name": "x", "nodes": {"a": {}, "b": {}}, "links": [{"endpoints": "a -- b", **fields}], "changes": changes}
    lab = Lab.model_validate(data)
    return SteeredLink.planned(lab.links[0], changes_of_links(lab).get(0, ()), lab.seed)


def between_guests(*changes: dict[str, Any], **fields: Any) -> SteeredLink:
    """A link between two guests, as it was planned."""
    data = {"name": "x", "guests": "per-node", "nodes": {"a": {}, "b": {}}, "changes": changes}
    lab = Lab.model_validate(data | {"links": [{"endpoints": "a -- b", **fields}]})
    return SteeredLink.planned(lab.links[0], changes_of_links(lab).get(0, ()), lab.seed, compile(lab).wires[0])


def change(before: SteeredLink, *settings: tuple[str, str], at_ns: int = NOW) -> Change:
    found = read_change(before.link, settings, at_ns, ".")
    check_changed(before.link, (*before.changes, found))
    return found


def told(before: SteeredLink, *settings: tuple[str, str], at_ns: int = NOW, now_ns: int = NOW) -> list[Timed]:
    """What the agent is told of a change."""
    after = before.changed(change(before, *settings, at_ns=at_ns), now_ns)
    update = link_update(before, after, now_ns, ())
    assert LinkUpdate.model_validate_json(update.model_dump_json()) == update
    return update.course


def chain(one: Timed) -> list[Qdisc]:
    return ends(one)[0].egress.qdiscs


def netems(one: Timed) -> list[Netem]:
    return [qdisc for qdisc in chain(one) if isinstance(qdisc, Netem)]


def test_what_is_not_named_stays_and_so_does_what_is_planned() -> None:
    planned = {"at": "8s", "link": "a -- b", "delay": "30ms"}
    now, later = told(steered(planned, rate="10Mbit", delay={"mean": "10ms", "jitter": "1ms"}), ("loss", "5%"))
    assert (instant(now), instant(later)) == (0, 8 * SECOND)
    assert [(wire.delay_ns, wire.jitter_ns, wire.loss) for wire in (netems(now)[0], netems(later)[0])] == [
        (10_000_000, 1_000_000, RandomLoss(probability=0.05)),
        (30_000_000, 1_000_000, RandomLoss(probability=0.05)),
    ]


def test_a_planned_change_counts_before_what_was_asked_for_an_earlier_instant() -> None:
    planned = {"at": "8s", "link": "a -- b", "delay": "30ms"}
    changes = told(steered(planned, delay="10ms"), ("delay", "20ms"))
    assert [netems(one)[0].delay_ns for one in changes] == [20_000_000, 30_000_000]


def test_a_change_for_later_changes_nothing_now() -> None:
    (later,) = told(steered(delay="10ms"), ("delay", "20ms"), at_ns=6 * SECOND)
    assert (instant(later), netems(later)[0].delay_ns) == (6 * SECOND, 20_000_000)


def test_a_change_to_what_is_already_so_is_none() -> None:
    assert told(steered(delay="10ms"), ("delay", "10ms")) == []


def test_between_guests_the_wire_keeps_its_delay_and_the_sender_does_the_rest() -> None:
    before = between_guests(rate="10Mbit", delay="10ms")
    (now,) = told(before, ("delay", "25ms"), ("loss", "1%"))
    assert [end.node for end in ends(now)] == ["a", "b"]
    assert (netems(now)[0].delay_ns, netems(now)[0].loss) == (15_000_000, RandomLoss(probability=0.01))
    assert list(before.changed(change(before, ("delay", "25ms"), ("rate", "90Mbit")), NOW).beyond_wire()) == []


def test_between_guests_a_delay_may_become_as_short_as_the_lab_says() -> None:
    shorter = change(steered(delay="10ms"), ("delay", "2ms"))
    said = list(between_guests(delay="10ms").changed(shorter, NOW).beyond_wire())
    assert said[0] == (
        "a packet from a could take 2ms, and the guests a and b agreed at the start that none takes less than 10ms; "
        "write lookahead: 2ms on it in the lab"
    )
    assert len(said) == 2, "both directions"
    planned = {"at": "8s", "link": "a -- b", "delay": "2ms"}
    for before in (between_guests(delay="10ms", lookahead="2ms"), between_guests(planned, delay="10ms")):
        assert list(before.changed(shorter, NOW).beyond_wire()) == []
        assert netems(told(before, ("delay", "3ms"))[0])[0].delay_ns == 1_000_000


def test_between_guests_no_more_may_be_under_way_than_there_is_room_for() -> None:
    before = between_guests(rate="10Mbit", delay="10ms")
    (said, _) = before.changed(change(before, ("rate", "10Gbit")), NOW).beyond_wire()
    assert said.startswith("more could be under way than the 4")


def test_one_direction_alone_can_be_changed() -> None:
    (now,) = told(steered(delay="10ms"), ("b_to_a.delay", "20ms"))
    assert [end.node for end in ends(now)] == ["b"]


def test_a_link_goes_down_and_up_with_all_that_it_was() -> None:
    before = steered(rate="10Mbit", delay="10ms")
    down = change(before, ("down", "true"))
    after = before.changed(down, NOW)
    (going_down,) = link_update(before, after, NOW, ()).course
    assert [end.up for end in ends(going_down)] == [False, False]
    (going_up,) = told(after, ("down", "false"), at_ns=6 * SECOND, now_ns=6 * SECOND)
    assert [end.up for end in ends(going_up)] == [True, True]
    assert chain(going_up) == chain(going_down) == before.course.states[0].egress[0].qdiscs


def test_the_disciplines_are_kept_where_they_serve_so_that_nothing_that_waits_is_lost() -> None:
    before = steered(rate="10Mbit", delay="10ms")
    (now,) = told(before, ("rate", "2Mbit"))
    assert [qdisc.kind for qdisc in chain(now)] == ["netem", "netem"]
    planned = steered({"at": "8s", "link": "a -- b", "rate": "3Mbit"}, rate="10Mbit")
    assert [qdisc.kind for qdisc in chain(told(planned, ("rate", "2Mbit"))[0])] == ["netem", "hfsc", "pfifo"]


def test_modules_and_tables_that_the_plan_lacks_come_with_the_change() -> None:
    before = steered(rate="10Mbit", delay="10ms")
    after = before.changed(change(before, ("queue.discipline", "codel"), ("delay.jitter", "1ms")), NOW)
    assert link_update(before, after, NOW, ["sch_hfsc"]).modules == ["sch_codel"]
    normal = change(before, ("delay", "{jitter: 1ms, distribution: normal}"))
    assert "normal" in link_update(before, before.changed(normal, NOW), NOW, ()).tables


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (("rate", "0"), "rate: 0: a rate needs a unit: write 0Mbit (or kbit, Gbit, Tbit)"),
        (("a_to_b", "{delay: 5}"), "a_to_b.delay: 5: a delay needs a unit: write 5ms (or ns, us, s, min, h)"),
        (
            ("a_to_b", "{delay: {mean: 5}}"),
            "a_to_b.delay.mean: 5: a delay needs a unit: write 5ms (or ns, us, s, min, h)",
        ),
        (("dely", "3ms"), "dely: unknown field; did you mean delay?"),
        (("loss", "101%"), "loss: 101%: a loss can be at most 100%"),
        (("queue.limit", "1bdp"), "queue.limit: a limit in bdp needs a rate; write rate: too, or a limit in packets"),
        (("trace", "{schedule: [[0s, 1Mbit]]}"), "trace: a trace is of the whole run; change the rate: instead"),
        (("delay.distribution", "normal"), "delay.distribution: normal: a distribution needs a jitter"),
        (("at", "7s"), "at: not something that a change sets; it is given with the link"),
    ],
)
def test_a_wrong_change_is_refused_in_the_words_of_a_lab(setting: tuple[str, str], said: str) -> None:
    with pytest.raises(LabError) as caught:
        change(steered(delay="10ms"), setting)
    assert str(caught.value).startswith(said)


def test_a_trace_from_a_file_cannot_become_a_rate(tmp_path: Path) -> None:
    (tmp_path / "lte.up").write_text("1\n2\n")
    text = "name: x\nnodes: {a: {}, b: {}}\nlinks: [{endpoints: [a, b], trace: {file: lte.up}}]\n"
    with pytest.raises(LabError, match=r"4:40: changes.0..rate: the trace from a file is the rate of the whole run"):
        loads(text + "changes: [{at: 1s, link: a -- b, rate: 1Mbit}]\n", str(tmp_path / "lab.yaml"))


def test_what_has_changed_is_told_in_the_words_of_the_lab_or_of_who_asked() -> None:
    planned = (
        {"at": "6s", "link": "a -- b", "down": True},
        {"at": "8s", "link": "a -- b", "down": False, "b_to_a": {"delay": {"mean": "30ms", "jitter": "1ms"}}},
    )
    before = steered(*planned)
    after = before.changed(change(before, ("loss", "5%")), NOW)
    assert [after.became(at + 500) for at in (NOW, 6 * SECOND, 8 * SECOND)] == [
        (NOW, "loss 5%", True),
        (6 * SECOND, "down", False),
        (8 * SECOND, "up, b_to_a.delay 30ms, b_to_a.delay.jitter 1ms", True),
    ]


def test_a_change_of_a_segment_is_told_of_its_ports_in_the_same_words() -> None:
    data = {"name": "x", "nodes": {"a": {}, "b": {}, "c": {}}, "links": [{"endpoints": "a -- b -- c"}]}
    changes = [{"at": "1s", "link": "a -- b -- c", "rate": "1Mbit"}]
    assert {one.words for one in without_lans(Lab.model_validate(data | {"changes": changes})).changes} == {
        "rate 1Mbit"
    }


def test_a_step_of_a_schedule_is_told_as_such() -> None:
    link = steered(trace={"schedule": [["0s", "1Mbit"], ["2s", "2Mbit"]]})
    assert link.became(2 * SECOND).what == "rate as scheduled"
