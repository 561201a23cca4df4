"""What a run that goes on is doing, for those who watch it: `dilaton top` and Prometheus.

The process of the run tells of its clock and its programs through the control socket; samples of interfaces and nodes
are read from the run directory, where the guests write them, so that watching costs the run nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from dilaton.host.counters import Counters, Waits, Wires
from dilaton.host.messages import Event
from dilaton.measure.layouts import LAYOUTS
from dilaton.measure.recent import Row, latest
from dilaton.plan.model import Plan
from dilaton.run.control.answers import Clock, GuestShown, ProcessShown, Reason, RunState, Standing, Status, Timeliness
from dilaton.run.files.outputs import read_head, read_tail
from dilaton.run.record.fidelity import together
from dilaton.run.record.model import GuestFidelity, Part, VerdictRecord
from dilaton.run.record.processes import processes_from_events

HEADER_BYTES_MAX = 4096

Shown = TypeVar("Shown", Timeliness, ProcessShown, Reason)

TAIL_BYTES = 1 << 20
"""How much of the end of a table of samples is read: the last two of some 4,000 interfaces."""


def status(
    run: RunState,
    plan: Plan,
    events: Iterable[Event],
    guests: Sequence[GuestFidelity],
    verdict: VerdictRecord | None,
    shown: list[GuestShown],
) -> Status:
    """How late timers are, how busy the guests, what that means, and what has become of each process."""
    processes = [_part(process, ProcessShown) for process in processes_from_events(plan, events)]
    standing = None
    if verdict is not None:
        standing = Standing(level=verdict.level, reasons=[_part(reason, Reason) for reason in verdict.reasons])
    return Status(
        run=run,
        fidelity=_part(together(guests, [], None), Timeliness),
        verdict=standing,
        processes=processes,
        guests=shown,
    )


def guests_shown(
    names: Sequence[str],
    homes: Sequence[str],
    counted: Iterable[tuple[Counters, Counters]],
    wires: Wires | None,
) -> list[GuestShown]:
    """How much each guest works and waits.

    Args:
        names: Of the guests.
        homes: The machine of each; none: all are on one.
        counted: What each had counted when the run began, and has by now.
        wires: Those between them.
    """
    places: Sequence[str | None] = homes or [None] * len(names)
    waited: Sequence[Waits | None] = wires.waits if wires else [None] * len(names)
    return [
        GuestShown(
            name=name,
            machine=home,
            busy_s=max(0, now.virtual_ns - before.virtual_ns - (now.idle_ns - before.idle_ns)) / 1e9,
            waited_host_s=waits.waited_host_ns / 1e9 if waits else None,
        )
        for name, home, (before, now), waits in zip(names, places, counted, waited, strict=True)
    ]


def clock_of(status: Status) -> Clock:
    """The clock, which a run that answers `status` has."""
    clock = status["run"]["clock"]
    assert clock is not None
    return clock


def _part(record: Part, part: type[Shown]) -> Shown:
    """Those fields of a record that an answer has as well."""
    found: Any = record.model_dump(include=set(part.__annotations__))
    return cast(Shown, found)


def recent_samples(run_dir: Path, table: str) -> list[Row]:
    """The latest sample of each interface, or of each node, of all guests; empty when none were asked for."""
    found = []
    for path in sorted(run_dir.glob(f"measure/*/{table}.csv")):
        header = read_head(path, HEADER_BYTES_MAX).decode(errors="replace").partition("\n")[0]
        found += latest(LAYOUTS[table], header, read_tail(path, TAIL_BYTES).decode(errors="replace"))
    return found
