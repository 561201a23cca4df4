"""Whether a run gets on, by looks at moments that are given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dilaton.cli.steering import control
from dilaton.host.counters import NOTHING, Counters, Lack, Late
from dilaton.host.messages import Event, Started
from dilaton.host.port import Guests
from dilaton.run.getting_on import LATE_BIN, TIMERS_MIN, WINDOW_HOST_S, GettingOn
from tests.unit.run.record.test_record import plan

LAB = """
name: two
guests: per-node
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 5ms}]
run: [{on: b, name: ask, exec: "true"}]
"""


@dataclass
class Run:
    """A run of two guests, a and b, whose clocks and counters the test moves."""

    drive: str = "work"
    tdf: str = "1"
    is_held: bool = False
    counted: list[Counters] = field(default_factory=lambda: [Counters(), Counters()])
    events: list[Event] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    host_s: float = 0.0

    def __post_init__(self) -> None:
        guests = SimpleNamespace(
            look=lambda: (min(each.virtual_ns for each in self.counted), self.is_held),
            all=[SimpleNamespace(counters=lambda number=number: self.counted[number]) for number in (0, 1)],
        )
        planned = plan(f"{LAB}time: {{drive: {self.drive}, tdf: {self.tdf}}}\n")
        self.getting_on = GettingOn(
            planned, cast(Guests, guests), self.events, lambda: Fraction(self.tdf), self.told.append
        )
        self.getting_on.look(0.0)

    def after(self, *counted: dict[str, Any], host_s: float = WINDOW_HOST_S) -> str | None:
        """What is said so much later, of guests that have counted this instead."""
        self.counted = [replace(each, **fields) for each, fields in zip(self.counted, counted, strict=True)]
        self.host_s += host_s
        self.getting_on.look(self.host_s)
        return self.getting_on.notice


def late(count: int, *, of: int) -> Late:
    """Timers of which so many were more than a tick late."""
    counts = list(NOTHING)
    counts[LATE_BIN - 1], counts[LATE_BIN] = of - count, count
    return Late(counts)


def test_virtual_time_that_stands_is_told_once_with_who_is_there() -> None:
    run = Run()
    run.events.append(Started(t_ns=3, node="b", process="ask", pid=1))
    assert run.after({"virtual_ns": 900}, {"virtual_ns": 5}) is None
    notice = run.after({"virtual_ns": 901}, {})
    assert notice is not None and notice.startswith("has not moved in the last 30 s of host time: guest b, with b/ask;")
    assert run.after({}, {}) is not None
    assert run.told == [notice]
    assert run.after({"virtual_ns": 902}, {"virtual_ns": 6}) is None, "it is no longer so"


def test_a_run_that_moves_by_a_nanosecond_or_is_held_meanwhile_does_not_stand() -> None:
    run = Run()
    for ns in range(1, 4):
        assert run.after({"virtual_ns": ns}, {"virtual_ns": ns}) is None
    run.is_held = True
    assert run.after({}, {}, host_s=1) is None
    run.is_held = False
    assert run.after({}, {}, host_s=WINDOW_HOST_S - 1) is None, "it was held for a part of it"
    assert run.told == []


@pytest.mark.parametrize(("count", "is_told"), [(TIMERS_MIN // 2, False), (TIMERS_MIN // 2 + 1, True)])
def test_most_timers_later_than_a_tick_are_told_with_the_tick_and_the_guest(count: int, is_told: bool) -> None:
    run = Run(tdf="1/1000")
    notice = run.after({"virtual_ns": 10**12, "timers": late(count, of=TIMERS_MIN)}, {"virtual_ns": 10**12})
    assert (notice is not None) == is_told
    if notice is not None:
        assert "guest a; at TDF 0.001 a tick is 10 us of a CPU" in notice


def test_few_timers_and_those_of_the_event_drive_tell_nothing() -> None:
    few = {"virtual_ns": 10**12, "timers": late(TIMERS_MIN - 1, of=TIMERS_MIN - 1)}
    assert Run().after(few, {"virtual_ns": 10**12}) is None
    many = few | {"timers": late(TIMERS_MIN, of=TIMERS_MIN)}
    assert Run(drive="event").after(many, {"virtual_ns": 10**12}) is None


@pytest.mark.parametrize(
    ("drive", "lacks", "virtual_s", "is_told"),
    [
        ("event", Lack.CPU_TIMER, 29, True),
        ("event", Lack.CPU_TIMER, 31, False),
        ("event", Lack.AMX, 29, False),
        ("work", Lack.CPU_TIMER, 29, False),
    ],
)
def test_a_timer_of_cpu_time_is_told_of_where_the_event_drive_is_slow(
    drive: str, lacks: Lack, virtual_s: int, is_told: bool
) -> None:
    run = Run(drive=drive)
    notice = run.after({"virtual_ns": virtual_s * 10**9}, {"virtual_ns": virtual_s * 10**9, "lacks": lacks})
    assert (notice is not None and "guest b; a program there has set a timer of CPU time" in notice) == is_told
    assert len(run.told) == is_told


def test_ps_tells_it_below_its_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {"lab": "two", "state": "running", "suspended": False, "clock": None, "run_dir": "/r", "notice": "stands"}
    going = SimpleNamespace(shown=[shown, shown | {"lab": "one", "notice": None}], silent=[])
    monkeypatch.setattr(control, "going", lambda: going)
    assert control.list_runs() == 0
    assert capsys.readouterr().err == "dilaton: two: virtual time stands\n"
