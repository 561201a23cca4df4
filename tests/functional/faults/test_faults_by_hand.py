"""Faults by hand begin at the instant at which a run is told of them, and end at exactly theirs, whoever is still there."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import dilaton
from dilaton.run.control.errors import ControlError
from dilaton.service.plain import LiveFault
from tests.conftest import PYTHON
from tests.conftest import dilaton as command

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

TICKER = f"import time\nfor _ in range(200): time.sleep(0.05); print(time.time() - {DATE_S}, flush=True)"

LAB: dict[str, Any] = {
    "name": "by-hand",
    "time": {"drive": "event"},
    "nodes": {"a": {"disk": "ssd-sata"}, "b": {}, "c": {}},
    "links": [
        {"endpoints": ["a", "b"], "rate": "10Mbit", "delay": "1ms"},
        {"endpoints": ["b", "c"], "rate": "10Mbit", "delay": "1ms"},
    ],
    "run": [
        {"on": "a", "name": "ticker", "exec": [str(PYTHON), "-c", TICKER]},
        {"on": "b", "name": "ping", "exec": "ping -D -i 0.05 -c 190 a"},
        {"on": "b", "name": "beyond", "exec": "ping -D -i 0.05 -c 190 c"},
    ],
    "faults": [
        {"name": "far", "at": "9s", "for": "200ms", "link": "a--b", "delay": "20ms"},
        {"name": "planned", "at": "6s", "pause": "c"},
        {"name": "planned-too", "at": "6s", "for": "2s", "disk": {"node": "a", "delay": "1ms"}},
    ],
    "stop_after": "9500ms",
}

STEP_S = 0.001
"""What a few system calls and a wake-up take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dilaton.Run:
    """One run, in which faults begin and end by hand while its clock is held at known instants."""
    path = tmp_path_factory.mktemp("by-hand") / "run"
    with dilaton.start(LAB, out=path, hold_at=1) as run:
        assert [(fault.name, fault.state) for fault in run.faults] == [
            ("far", "waiting"),
            ("planned", "waiting"),
            ("planned-too", "waiting"),
        ]
        run.fault({"pause": "a/ticker", "for": "500ms"})
        with pytest.raises(ControlError, match=r"pause: a is paused already by hand1"):
            run.fault({"pause": "a"})
        with pytest.raises(ControlError, match=r"disk.node: b has no disk"):
            run.fault({"disk": {"node": "b", "stall": "1s"}})
        with pytest.raises(ControlError, match="unknown node d; known: a, b, c"):
            run.fault({"crash": "d"})
        with pytest.raises(ControlError, match="at: 500ms: virtual time is already at 1s, and never goes back"):
            run.fault({"pause": "a", "at": "500ms"})
        with pytest.raises(ControlError, match="name: ping is the name of something else already"):
            run.fault({"pause": "a", "name": "ping"})
        with pytest.raises(ControlError, match="after: unknown process or fault pong"):
            run.fault({"pause": "a", "after": "pong"})
        with pytest.raises(ControlError, match="hand9: no such fault; there is far, planned, planned-too, hand1"):
            LiveFault(run._run, "hand9").undo()
        run.until(2)
        # Who asked is gone at once: it is a process of its own.
        told = command("fault", str(path), "partition=[[a], [b]]", "for=1s")
        assert told.returncode == 0, told.stderr
        assert told.stdout.splitlines()[0] == "begun at 2.000000 s of virtual time"
        run.until(4)
        loss = run.fault({"link": "a--b", "loss": "100%"})
        run.until(5)
        assert loss.undo() == pytest.approx(5, abs=1e-6)
        with pytest.raises(ControlError, match="does not last now, but is over"):
            loss.undo()
        slow = run.fault({"link": "a--b", "loss": "0%"})
        assert run.link("a--b").show()["faults"] == [slow.name]
        # This link has a plain queue until then, so that its disciplines have to be others.
        run.fault({"link": "b--c", "delay": "10ms", "queue": {"discipline": "codel"}, "for": "500ms"})
        run.until(7)
        told = command("fault", str(path), "undo", "planned")
        assert told.stdout.splitlines()[0] == "undone at 7.000000 s of virtual time"
        told = command("fault", str(path), "{crash: c, for: 1s}")
        assert told.returncode == 0, told.stderr
        run.until(8.5)
        told = command("fault", str(path))
        assert "planned: pause c: was from 6.000000 s to 7.000000 s" in told.stdout
        assert "has not begun" in told.stdout
        run.release()
        return run.wait()


def at_s(outcome: dilaton.Run, kind: str, fault: str) -> float:
    events = outcome.events
    return float(events[(events.kind == kind) & (events.fault == fault)].t_s.iloc[0])


def answers(outcome: dilaton.Run, process: str) -> list[tuple[float, float]]:
    """When answers came, seconds, and how long each took, milliseconds."""
    lines = [line for line in outcome.output(process).splitlines() if "time=" in line]
    return [(float(line[1 : line.index("]")]) - DATE_S, float(line.partition("time=")[2].split()[0])) for line in lines]


def silences(outcome: dilaton.Run, process: str) -> list[tuple[float, float]]:
    """From which answer to which there was none, where two or more are missing."""
    instants = [instant for instant, _ in answers(outcome, process)]
    return [(earlier, later) for earlier, later in pairwise(instants) if later - earlier > 0.15]


def test_the_run_is_unharmed_by_what_was_refused(outcome: dilaton.Run) -> None:
    assert outcome.record.state == "finished"


def test_a_fault_is_not_undone_with_another_one_whose_name_begins_its_own(outcome: dilaton.Run) -> None:
    assert at_s(outcome, "undone", "planned") == pytest.approx(7, abs=1e-6)
    assert at_s(outcome, "undone", "planned-too") == pytest.approx(8, abs=1e-6)


def test_a_pause_ends_so_long_after_it_began(outcome: dilaton.Run) -> None:
    ticks = [float(line) for line in outcome.output("ticker").split()]
    assert at_s(outcome, "began", "hand1") == pytest.approx(1, abs=1e-6)
    assert at_s(outcome, "undone", "hand1") - at_s(outcome, "began", "hand1") == pytest.approx(0.5, abs=1e-6)
    gaps = [(earlier, later) for earlier, later in pairwise(ticks) if later - earlier > 0.05 + STEP_S]
    assert len(gaps) == 1
    assert 1.5 <= gaps[0][1] < 1.5 + STEP_S


def test_a_partition_and_a_link_are_what_they_were_at_the_end(outcome: dilaton.Run) -> None:
    by_partition, by_link = silences(outcome, "ping")
    for (last, first), begin, end in ((by_partition, 2, 3), (by_link, 4, 5)):
        assert begin - 0.06 < last < begin
        assert end < first < end + 0.06


def test_a_fault_of_the_lab_that_comes_later_lies_beside_one_by_hand(outcome: dilaton.Run) -> None:
    took = {instant: took_ms for instant, took_ms in answers(outcome, "ping") if instant > 8.8}
    assert {round(took_ms) for instant, took_ms in took.items() if instant < 9} == {2}
    assert {round(took_ms) for instant, took_ms in took.items() if 9.03 < instant < 9.2} == {40}


def test_a_link_gets_another_queue_and_loses_it(outcome: dilaton.Run) -> None:
    took = dict(answers(outcome, "beyond"))
    assert {round(took_ms) for instant, took_ms in took.items() if 5.03 < instant < 5.5} == {20}
    assert {round(took_ms) for instant, took_ms in took.items() if instant < 5 or instant > 5.53} == {2}


def test_a_node_is_off_from_the_instant_and_boots_by_itself(outcome: dilaton.Run) -> None:
    assert at_s(outcome, "began", "hand6") == pytest.approx(7, abs=1e-6)
    ((last, first),) = silences(outcome, "beyond")
    assert 6.94 < last < 7
    assert 8 < first < 8.06


def test_events_say_who_asked_with_both_times(outcome: dilaton.Run) -> None:
    steered = outcome.events[outcome.events.kind == "fault-steered"]
    assert list(steered.asked)[:3] == ["pause a/ticker for 500ms", "partition a | b for 1s", "link a--b loss 100%"]
    assert (steered.host_s > 0).all()
    update = json.loads((Path(outcome.path) / steered.file.iloc[0]).read_text())
    assert [entry["name"] for entry in update["begin"]] == ["hand1"]


APART: dict[str, Any] = {
    "name": "apart",
    "time": {"drive": "event"},
    "nodes": {"a": {"guest": "one"}, "b": {"guest": "two"}},
    "links": [{"endpoints": ["a", "b"], "rate": "10Mbit", "delay": "5ms"}],
    "run": [
        {"on": "a", "name": "ping", "exec": "ping -D -i 0.05 -c 80 b"},
        {"on": "a", "name": "work-a", "exec": "sleep 60", "background": True},
        {"on": "b", "name": "work-b", "exec": "sleep 0.5", "background": True},
        {"on": "b", "name": "work-c", "exec": "sleep 60", "background": True},
    ],
}


def test_faults_of_nodes_in_two_guests_begin_and_end_in_both_at_one_instant(tmp_path: Path) -> None:
    with dilaton.start(APART, out=tmp_path / "run", hold_at=1) as run:
        run.fault({"partition": {"from": ["a"], "to": ["b"]}, "for": "500ms"})
        run.until(2)
        slow = run.fault({"link": "a--b", "rate": "100kbit"})
        run.until(3)
        assert slow.undo() == pytest.approx(3, abs=1e-6)
        assert [fault.state for fault in run.faults] == ["over", "over"]
        with pytest.raises(ControlError, match=r"hand3 is of nodes in the guests one and two, .* write at:"):
            run.fault({"partition": [["a"], ["b"]], "after": "ping.end"})
        run.fault({"name": "later", "at": "3500ms", "for": "100ms", "partition": [["a"], ["b"]]})
        run.fault({"name": "last", "after": "later.end", "wait": "10ms", "for": "10ms", "pause": "b/work-c"})
        # What is taken back stands in nobody's way.
        run.fault({"name": "never", "at": "4s", "pause": "a/work-a"}).undo()
        told = command("fault", str(tmp_path / "run"), "name=much-later", "at=1h", "pause=a/ping")
        assert told.stdout.splitlines() == [
            "taken over at 3.000000 s of virtual time",
            "much-later: pause a/ping: has not begun",
        ], told.stderr
        # One guest could: then none does.
        with pytest.raises(ControlError, match=r"process work-b on b is not running"):
            run.fault({"kill": "*/work-*"})
        assert [fault.name for fault in run.faults] == ["hand1", "hand2", "later", "last", "never", "much-later"]
        run.fault({"pause": "a/work-a", "for": "200ms"})
        run.until(3.2)
        # The other one ends at this instant, and a death for good does not keep anything from being undone.
        run.fault({"pause": "a/work-a"})
        run.fault({"kill": "a/work-a"})
        told = command("fault", str(tmp_path / "run"), "undo", "hand5")
        assert told.stdout.splitlines()[0] == "undone at 3.200000 s of virtual time", told.stderr
        with pytest.raises(ControlError, match="never: does not last now, but is skipped"):
            LiveFault(run._run, "never").undo()
        states = {fault.name: fault.state for fault in run.faults if fault.state != "over"}
        assert states == {"later": "waiting", "last": "waiting", "never": "skipped", "much-later": "waiting"}
        run.release()
        measured = run.wait()
    assert measured.record.state == "finished"
    (last, first), (before_later, after_later) = silences(measured, "ping")
    assert 0.94 < last < 1.005
    assert 1.5 < first < 1.56
    assert 3.44 < before_later < 3.505
    assert 3.6 < after_later < 3.66
    assert at_s(measured, "began", "later") == pytest.approx(3.5, abs=1e-6)
    assert at_s(measured, "began", "last") == pytest.approx(3.61, abs=1e-4)
    took = dict(answers(measured, "ping"))
    # A frame of 98 bytes takes 7.84 ms each way.
    assert {round(took_ms) for instant, took_ms in took.items() if 2.03 < instant < 3} == {26}
    assert {round(took_ms) for instant, took_ms in took.items() if instant < 2 or instant > 3.03} == {10}


def test_faults_are_drawn_by_hand_beside_those_that_there_are_and_are_undone_together(tmp_path: Path) -> None:
    lab = LAB | {"faults": [{"name": "planned", "at": "2s", "for": "2100ms", "pause": "c"}]}
    chance = {"every": "200ms", "for": "100ms", "of": ["pause"], "on": "c"}
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        with pytest.raises(ControlError, match="random: draws faults without end; write for: beside it"):
            run.fault({"after": "ping", "random": chance})
        with pytest.raises(ControlError, match="random: draws no fault; have them more often, or for longer"):
            run.fault({"for": "200ms", "random": chance})
        chaos = run.fault({"name": "chaos", "for": "5s", "random": chance})
        assert chaos.name == "chaos"
        run.until(4.45)
        chaos.undo()
        run.until(5)
        drawn = {fault.name: fault.state for fault in run.faults if fault.name != "planned"}
        run.release()
    found = run.result()
    begun = [at_s(found, "began", name) for name, state in drawn.items() if state == "over"]
    # While the lab's own fault lasts none is drawn.
    assert begun == pytest.approx([1.2, 1.4, 1.6, 1.8, 4.2, 4.4], abs=1e-6)
    assert at_s(found, "undone", "chaos-1") == pytest.approx(1.3, abs=1e-6)
    # The last of them lasted then, and the others were yet to come.
    assert at_s(found, "undone", "chaos-6") == pytest.approx(4.45, abs=1e-6)
    assert list(drawn.values()) == ["over"] * 6 + ["skipped"] * (len(drawn) - 6)
    assert len(drawn) > 6


@pytest.mark.parametrize("drive", ["event", "work", "wall"])
def test_a_segment_suffers_a_fault_by_hand_on_every_drive(tmp_path: Path, drive: str) -> None:
    lab: dict[str, Any] = {
        "name": "segment",
        "time": {"drive": drive},
        "nodes": {"a": {}, "b": {}, "c": {}},
        "links": [{"endpoints": ["a", "b", "c"], "rate": "10Mbit", "delay": "1ms"}],
        "run": [{"on": "a", "name": "ping", "exec": "ping -D -i 0.05 -c 30 b"}],
    }
    with dilaton.start(lab, out=tmp_path / "run", hold_at=0.5) as run:
        run.fault({"link": "a--b--c", "loss": "100%", "for": "500ms"})
        run.release()
        measured = run.wait()
    assert measured.record.state == "finished"
    began, undone = (at_s(measured, kind, "hand1") for kind in ("began", "undone"))
    # Where virtual time follows the host, a timer is as late as that lets it be, and never early.
    assert measured.record.fidelity
    told_s = measured.record.fidelity.lateness_us.max * 1e-6
    late_s = undone - began - 0.5
    assert -1e-9 < late_s < (1e-6 if drive == "event" else 0.05 + told_s)
    ((last, first),) = silences(measured, "ping")
    assert 0.45 < first - last < 0.65 + 2 * told_s
