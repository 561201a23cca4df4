"""Sweeps: runs of one lab with every combination of values of some fields, asked for, seen and ended together."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Annotated

from pydantic import BaseModel, Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from dilaton.measure.numbers import counted
from dilaton.run.control.errors import ControlError
from dilaton.run.points import points
from dilaton.server.access.callers import Caller
from dilaton.server.access.secrets import identity
from dilaton.server.api.endpoints import PREFIX, Endpoints, Folder, Server, TheLab, TheSweep, Who, needs
from dilaton.server.api.labs.labs import sees_host
from dilaton.server.api.lists import ByNumber
from dilaton.server.api.runs.runs import (
    Run,
    ToSpread,
    begin,
    needs_of,
    new_row,
    refuse_machines,
    version_of,
)
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import RunRow, SweepRow
from dilaton.server.labs.drawing import Drawing
from dilaton.server.problems import Problem, missing
from dilaton.server.runs.life import FINAL
from dilaton.server.state import State
from dilaton.service.request import Overrides

ENDPOINTS = Endpoints()

SWEEP = f"{PREFIX}/sweeps/{{sweep}}"

RUNS_MAX = 200
COMBINATIONS_MAX = 64

Value = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]


class SweptField(BaseModel):
    """A field of a lab, and the values that it has in turn."""

    path: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00=]*$")]
    """As `links.0.rate`."""
    values: Annotated[list[Value], Field(min_length=1, max_length=COMBINATIONS_MAX)]


class NewSweep(ToSpread):
    """A sweep of a lab; what is said of runs is of each of its runs, and `key` of the sweep."""

    fields: Annotated[list[SweptField], Field(max_length=20)] = Field(default=[])
    repeat: Annotated[int, Field(ge=1, le=RUNS_MAX)] = 1
    """Runs of each combination, each with a seed of its own."""


class Sweep(BaseModel):
    """A sweep."""

    sweep: str
    """Its identity."""
    number: int
    """The later one was asked for, the higher."""
    name: str
    """The name of its lab."""
    lab: str | None
    version: int
    folder: str
    path: str
    person: str
    fields: list[SweptField]
    repeat: int
    created_ms: int
    states: dict[str, int]
    """How many of its runs have each state."""


class WholeSweep(Sweep):
    """A sweep with its runs, in their order: the last field changes fastest, and repeats follow each other."""

    runs: list[Run]


@ENDPOINTS.add(
    "POST", f"{PREFIX}/labs/{{lab}}/sweeps", needs(("Lab.Read", "lab"), ("Run.Launch", "folder")), status_code=202
)
async def launch_sweep(asked: NewSweep, lab: TheLab, folder: Folder, who: Who, server: Server) -> WholeSweep:
    """Has a lab run with every combination of the values of its fields: all of these runs are asked for, or none is.

    Each waits for its turn as any other run, and is one.
    """
    if asked.key is not None and (same := await asyncio.to_thread(_asked_before, server, who, asked.key)):
        return same
    paths = [one.path for one in asked.fields]
    if len(set(paths)) < len(paths) or any(len(set(one.values)) < len(one.values) for one in asked.fields):
        raise Problem(422, "argument", "fields: each field, and each of its values, once", field="fields")
    combinations = math.prod(len(one.values) for one in asked.fields)
    if combinations > COMBINATIONS_MAX or combinations * asked.repeat > RUNS_MAX:
        most = f"at most {COMBINATIONS_MAX} combinations and {RUNS_MAX} runs"
        wanted = f"{counted(combinations, 'combination')}, {counted(asked.repeat, 'run')} each"
        raise Problem(422, "argument", f"fields: {wanted}: {most}")
    refuse_machines(server, asked.machines)
    version = await asyncio.to_thread(version_of, server, lab, asked.version)
    work = points({one.path: one.values for one in asked.fields}, asked.repeat)
    settings = list(dict.fromkeys(tuple(f"{path}={value}" for path, value in point.settings) for point in work))
    found = await server.checker.points(version.text, settings, sees_host=sees_host(who), machines=asked.machines)
    read = dict(zip(settings, found, strict=True))
    sweep = SweepRow(
        identity=identity(),
        folder=folder,
        person=who.name,
        lab=lab.identity,
        version=version.number,
        name=next(iter(read.values())).name,
        fields=[one.model_dump() for one in asked.fields],
        repeat=asked.repeat,
        key=asked.key,
        created_ms=now_ms(),
    )
    rows = []
    for number, point in enumerate(work):
        own = tuple(f"{path}={value}" for path, value in point.settings)
        lab_so = read[own]
        overrides = Overrides(settings=(f"seed={lab_so.seed + point.repeat}", *own))
        said = asked.of_run(overrides, stays=False)
        needed = needs_of(server, who, lab_so.memory_bytes, asked.max_disk, asked.host_s)
        of_version = (lab.identity, version.number)
        row = new_row(server, who, folder, of_version, version.text, lab_so.name, said, needed)
        row.sweep, row.point = sweep.identity, number
        rows.append((row, lab_so.drawing))
    return await asyncio.to_thread(_begun, server, who, sweep, rows)


@ENDPOINTS.add("GET", f"{PREFIX}/sweeps", needs(("Run.Read", "each")))
def list_sweeps(listed: ByNumber, server: Server) -> list[Sweep]:
    """The sweeps that one may see, the newest first; those before one of a number."""
    with server.store.reading() as session:
        rows = listed.of(session, SweepRow, "Run.Read")
        counts: dict[str, dict[str, int]] = {}
        wanted = select(RunRow.sweep, RunRow.state, func.count()).group_by(RunRow.sweep, RunRow.state)
        for sweep, state, number in session.execute(wanted.where(RunRow.sweep.in_([row.identity for row in rows]))):
            counts.setdefault(str(sweep), {})[state] = number
    return [_of(row, counts.get(row.identity, {})) for row in rows]


@ENDPOINTS.add("GET", SWEEP, needs(("Run.Read", "sweep")))
def show_sweep(sweep: TheSweep, server: Server) -> WholeSweep:
    """A sweep with its runs, as far as they are known to have come."""
    with server.store.reading() as session:
        return _whole(session, sweep)


@ENDPOINTS.add("POST", f"{SWEEP}/stop", needs(("Run.Steer", "sweep")))
async def stop_sweep(sweep: TheSweep, who: Who, server: Server) -> WholeSweep:
    """Ends a sweep: runs that wait are cancelled, and those that go on end in good order."""
    rows = await asyncio.to_thread(_rows, server, sweep)
    # Those that wait first, so that none of them begins in place of one that ends.
    for row in sorted(rows, key=lambda row: row.started_ms is not None):
        with contextlib.suppress(ControlError):  # it is over by now
            await server.keeper.stop(row)
    return await asyncio.to_thread(_stopped, server, who, sweep)


@ENDPOINTS.add("DELETE", SWEEP, needs(("Run.Delete", "sweep")), status_code=204)
def delete_sweep(sweep: TheSweep, who: Who, server: Server) -> None:
    """Removes a sweep whose runs are over, with all of these and what they have left."""
    with server.store.writing() as session:
        row = session.scalar(select(SweepRow).where(SweepRow.identity == sweep.identity))
        if row is None:
            raise missing("sweep", sweep.identity)
        runs = list(session.scalars(select(RunRow).where(RunRow.sweep == sweep.identity)))
        if going := [run for run in runs if run.state not in FINAL]:
            raise Problem(409, "state", f"not over: {counted(len(going), 'run')} of it; stop it first")
        for run in runs:
            session.delete(run)
            tell(session, "Run.Read", run.path, "run", run=run.identity, state=None)
        session.delete(row)
        note(session, who.name, "sweep.delete", row.path, name=row.name, runs=len(runs))
    for run in runs:
        server.keeper.remove(run.identity)


def _begun(server: State, who: Caller, sweep: SweepRow, rows: list[tuple[RunRow, Drawing]]) -> WholeSweep:
    with server.store.writing() as session:
        if sweep.key is not None and (same := _of_key(session, sweep.person, sweep.key)):
            return _whole(session, same)
        session.add(sweep)
        session.flush()
        for row, drawing in rows:
            begin(session, server, who, row, drawing)
        note(session, who.name, "sweep.launch", sweep.path, name=sweep.name, runs=len(rows))
        return _whole(session, sweep)


def _stopped(server: State, who: Caller, sweep: SweepRow) -> WholeSweep:
    with server.store.writing() as session:
        note(session, who.name, "sweep.stop", sweep.path, name=sweep.name)
        return _whole(session, sweep)


def _of_key(session: Session, person: str, key: str) -> SweepRow | None:
    return session.scalar(select(SweepRow).where(SweepRow.person == person, SweepRow.key == key))


def _asked_before(server: State, who: Caller, key: str) -> WholeSweep | None:
    with server.store.reading() as session:
        row = _of_key(session, who.name, key)
        return None if row is None else _whole(session, row)


def _rows(server: State, sweep: SweepRow) -> list[RunRow]:
    with server.store.reading() as session:
        wanted = select(RunRow).where(RunRow.sweep == sweep.identity, RunRow.state.not_in(FINAL))
        return list(session.scalars(wanted.order_by(RunRow.point.desc())))


def _of(row: SweepRow, states: dict[str, int]) -> Sweep:
    names = ("number", "name", "lab", "version", "folder", "path", "person", "repeat", "created_ms")
    fields = {name: getattr(row, name) for name in names}
    return Sweep(sweep=row.identity, fields=[SweptField(**one) for one in row.fields], states=states, **fields)


def _whole(session: Session, row: SweepRow) -> WholeSweep:
    wanted = select(RunRow).where(RunRow.sweep == row.identity).order_by(RunRow.point).options(defer(RunRow.text))
    runs = [Run.of(run) for run in session.scalars(wanted)]
    states: dict[str, int] = {}
    for run in runs:
        states[run.state] = states.get(run.state, 0) + 1
    return WholeSweep(**_of(row, states).model_dump(), runs=runs)
