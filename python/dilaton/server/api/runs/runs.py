"""Runs: asked for, seen, fetched, deleted. How those are steered that go on is in `steering.py`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Query, Response
from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from dilaton.run.files.directory import RECORD_FILE
from dilaton.run.loading import REPORT
from dilaton.server.access.callers import Caller
from dilaton.server.access.secrets import identity
from dilaton.server.api.endpoints import PREFIX, Endpoints, Folder, Server, TheLab, TheRun, Who, needs
from dilaton.server.api.labs.labs import sees_host
from dilaton.server.api.lists import ByNumber
from dilaton.server.api.session import Asked
from dilaton.server.api.streamed import Streamed
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import LabRow, RunRow, VersionRow
from dilaton.server.labs import keeping
from dilaton.server.labs.drawing import Drawing
from dilaton.server.problems import Problem, missing
from dilaton.server.runs.files import PART_BYTES_MAX, listed, opened, part, pieces
from dilaton.server.runs.life import FINAL, RunState, known
from dilaton.server.runs.queue import Needs
from dilaton.server.state import State
from dilaton.service import prepare
from dilaton.service.errors import RequestError
from dilaton.service.request import Overrides

ENDPOINTS = Endpoints()

NEVER_RUN = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox"
"""What a browser may do with a page that a run has left: show it, as a page of nobody's."""

MACHINES_MAX = 16

FILES = needs(("Run.Files", "run"))

Start = Annotated[int, Query(ge=-PART_BYTES_MAX, le=1 << 50)]
"""From which byte of a file on; negative: from so many before its end."""

Count = Annotated[int, Query(ge=1, le=PART_BYTES_MAX)]
"""How much of a file at most."""

PLAIN_NAME = re.compile(r"[^A-Za-z0-9._-]")


class ToRun(Asked):
    """What is asked of a run, whether it is of a sweep or by itself."""

    version: int | None = None
    """Which version of the lab is run; null: the newest."""
    hold_at: str | None = None
    """The virtual instant at which it holds its clock, as in a lab; null: at none."""
    host_s: Annotated[int | None, Field(ge=1, le=31_536_000)] = None
    """After how many seconds of the host it is stopped; null: as its person's quota has it."""
    key: Annotated[str | None, Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")] = None
    """One's own name of what is asked: who asks again by it, as after a lost connection, gets the same."""
    max_disk: str | None = None
    """What it may leave, as in a lab: 2G; null: half of what is free."""

    def of_run(self, overrides: Overrides, *, stays: bool) -> dict[str, Any]:
        """What is kept of it with a run."""
        said = overrides.model_dump(mode="json")
        return {"overrides": said, "hold_at": self.hold_at, "stays": stays, "max_disk": self.max_disk}


class ToSpread(ToRun):
    """What is asked of a run that may have its guests on several machines."""

    machines: Annotated[int, Field(ge=1, le=MACHINES_MAX)] = 1
    """Over how many its guests are spread: of those that the server has, else made of its own, for trying out."""

    def of_run(self, overrides: Overrides, *, stays: bool) -> dict[str, Any]:
        """See `ToRun`."""
        return super().of_run(overrides, stays=stays) | {"machines": self.machines}


class NewRun(ToSpread):
    """A run of a lab."""

    overrides: Overrides = Overrides()
    """What counts instead of what the lab says."""
    stays: bool = False
    """Whether it goes on when nothing is left to do, until it is stopped."""


class Run(BaseModel):
    """A run."""

    run: str
    """Its identity."""
    number: int
    """The later one was asked for, the higher."""
    name: str
    """The name of its lab."""
    lab: str | None
    """Null: the lab is not kept any more."""
    version: int
    """0: it goes on from a saved lab."""
    folder: str
    path: str
    """By which grants name it."""
    person: str
    """Who has asked for it."""
    state: RunState
    reason: str | None
    """Why it did not finish."""
    verdict: str | None
    virtual_s: float | None
    """How far it came; null as long as it is not over."""
    needs: Needs
    priority: int
    """The higher, the sooner of those that wait."""
    created_ms: int
    started_ms: int | None
    """When it left the queue."""
    ended_ms: int | None
    sweep: str | None
    """The sweep that it belongs to; null: none."""
    point: int | None
    """Which run of that it is, from 0."""

    @classmethod
    def of(cls, row: RunRow) -> Run:
        """As the database has it."""
        fields = {name: getattr(row, name) for name in cls.model_fields if name not in ("run", "state", "needs")}
        return cls(run=row.identity, state=known(row.state), needs=Needs(**row.needs), **fields)


class File(BaseModel):
    """A file that a run has left."""

    path: str
    size_bytes: int


@ENDPOINTS.add("GET", f"{PREFIX}/runs", needs(("Run.Read", "each")))
def list_runs(
    listed: ByNumber,
    server: Server,
    state: RunState | None = None,
    lab: str | None = None,
    sweep: str | None = None,
    name: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
) -> list[Run]:
    """The runs that one may see, the newest first: of a state, of a lab or a sweep, before one of a number; with `name`
    in the name of their lab, whether in small letters or capitals."""
    asked = ((RunRow.state, state), (RunRow.lab, lab), (RunRow.sweep, sweep))
    wheres = [column == wanted for column, wanted in asked if wanted is not None]
    if name is not None:
        wheres.append(RunRow.name.icontains(name, autoescape=True))
    with server.store.reading() as session:
        # Without the texts of their labs, each of which may have a million characters.
        rows = listed.of(session, RunRow, "Run.Read", *wheres, without=(RunRow.text,))
    return [Run.of(row) for row in rows]


@ENDPOINTS.add(
    "POST", f"{PREFIX}/labs/{{lab}}/runs", needs(("Lab.Read", "lab"), ("Run.Launch", "folder")), status_code=202
)
async def launch_run(asked: NewRun, lab: TheLab, folder: Folder, who: Who, server: Server) -> Run:
    """Has a lab run, in a folder, one's own unless the query names another; it waits for its turn.

    What needs more than its person may use is a request, which waits until somebody approves it.
    """
    same, version = await asyncio.to_thread(_same_or_version, server, who, asked, lab)
    if same is not None:
        return same
    assert version is not None, "or there would be the same"
    refuse_machines(server, asked.machines)
    checked = await server.checker.check(
        version.text, asked.overrides, sees_host=sees_host(who), is_drawn=True, machines=asked.machines
    )
    needed = needs_of(server, who, checked.memory_bytes, asked.max_disk, asked.host_s)
    said = asked.of_run(asked.overrides, stays=asked.stays)
    of_version = (lab.identity, version.number)
    row = new_row(server, who, folder, of_version, version.text, checked.name, said, needed)
    row.key = asked.key
    return await asyncio.to_thread(queued, server, who, row, checked.drawing)


def refuse_machines(server: State, machines: int) -> None:
    """Refuses to spread a run over more machines than the server has.

    Raises:
        RequestError: it has fewer.
    """
    try:
        server.settings.spread(machines)
    except ValueError as error:
        raise RequestError(str(error), "machines") from error


def needs_of(
    server: State, who: Caller, memory_bytes: Sequence[int], max_disk: str | None, host_s: int | None
) -> Needs:
    """What a run of a lab needs whose guests have so much memory each."""
    return Needs(
        cores=len(memory_bytes),
        memory_bytes=sum(memory_bytes),
        disk_bytes=prepare.disk_bytes(max_disk),
        host_s=host_s or server.policy.quota(who.name).host_s,
    )


def new_row(
    server: State,
    who: Caller,
    folder: str,
    version: tuple[str | None, int] | None,
    text: str,
    name: str,
    asked: dict[str, Any],
    needed: Needs,
) -> RunRow:
    """A run that is asked for: it waits for its turn or, where it needs more than its person may use, for approval.

    Args:
        server, who, folder: Where, and who asks.
        version: The lab, as long as it is kept, and which version of it that is; None: of no lab that is kept.
        text: Of the lab.
        name: Of the lab, as it says itself.
        asked: What counts instead of what that says.
        needed: What the run needs.
    """
    lab, number = version or (None, 0)
    beyond = server.policy.quota(who.name).beyond(needed)
    may_approve = who.access.may("Request.Approve", folder)
    return RunRow(
        identity=identity(),
        folder=folder,
        person=who.name,
        lab=lab,
        version=number,
        name=name,
        text=text,
        asked=asked,
        state="requested" if beyond and not may_approve else "queued",
        reason=None if may_approve else "; ".join(beyond) or None,
        needs=asdict(needed),
        priority=0,
        is_approved=bool(beyond) and may_approve,
        created_ms=now_ms(),
    )


def version_of(server: State, lab: LabRow, number: int | None) -> VersionRow:
    """A version of a lab; None: the newest."""
    with server.store.reading() as session:
        return keeping.version(session, lab, number or lab.head)


def _same_or_version(server: State, who: Caller, asked: NewRun, lab: LabRow) -> tuple[Run | None, VersionRow | None]:
    """The run that was asked for by the same key before, or else the version of the lab that is to run."""
    if asked.key is not None and (same := asked_before(server, who, asked.key)):
        return same, None
    return None, version_of(server, lab, asked.version)


def begin(session: Session, server: State, who: Caller, row: RunRow, drawing: Drawing) -> None:
    """Writes down that a run is asked for."""
    session.add(row)
    session.flush()
    server.keeper.draw(row.identity, drawing)
    note(session, who.name, "run.launch", row.path, lab=row.lab, version=row.version, name=row.name)
    tell(session, "Run.Read", row.path, "run", run=row.identity, state=row.state, reason=row.reason)


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}", needs(("Run.Read", "run")))
async def show_run(run: TheRun) -> Run:
    """A run, as far as it is known to have come."""
    return Run.of(run)


@ENDPOINTS.add("DELETE", f"{PREFIX}/runs/{{run}}", needs(("Run.Delete", "run")), status_code=204)
def delete_run(run: TheRun, who: Who, server: Server) -> None:
    """Removes a run that is over, with all that it has left."""
    with server.store.writing() as session:
        row = session.scalar(select(RunRow).where(RunRow.identity == run.identity))
        if row is None:
            raise missing("run", run.identity)
        if row.state not in FINAL:
            raise Problem(409, "state", f"the run is {row.state}; stop it first", state=row.state)
        session.delete(row)
        note(session, who.name, "run.delete", run.path, name=run.name)
        tell(session, "Run.Read", run.path, "run", run=run.identity, state=None)
    server.keeper.remove(run.identity)


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/lab", needs(("Run.Read", "run")))
def show_lab_of_run(run: TheRun) -> dict[str, Any]:
    """The lab of a run as it was then: its text, and what counted instead of it."""
    return {"text": run.text, **run.asked}


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/record", needs(("Run.Read", "run")), response_class=Response)
def show_record(run: TheRun, server: Server) -> Response:
    """`run.json`, as the run has written it last: results, checks, verdict."""
    return sent(server, run, RECORD_FILE, "application/json")


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/report", needs(("Run.Read", "run")), response_class=Response)
def show_report(run: TheRun, server: Server) -> Response:
    """The report of a run, a page without scripts."""
    answer = sent(server, run, REPORT, "text/html; charset=utf-8")
    answer.headers["Content-Security-Policy"] = NEVER_RUN
    return answer


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/journal", needs(("Run.Read", "run")), response_class=Response)
def show_journal(run: TheRun, server: Server) -> Response:
    """What happened in a run, in plain text."""
    journal = server.keeper.journal(run.identity)
    try:
        file = opened(journal.parent, journal.name)
    except OSError:
        return Response(b"", media_type="text/plain; charset=utf-8")
    return sent_file(file, "text/plain; charset=utf-8")


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/files", FILES)
def list_files(run: TheRun, server: Server) -> list[File]:
    """What a run has left: plain files, by their paths."""
    top = server.keeper.run_dir(run.identity)
    return [File(path=path, size_bytes=size) for path, size in (listed(top) if top.is_dir() else [])]


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/files/{{path:path}}", FILES, response_class=Response)
def fetch_file(
    run: TheRun, path: str, server: Server, start: Start | None = None, count: Count | None = None
) -> Response:
    """A file that a run has left, to be saved; with `start` or `count` a part of it, for who follows one that grows."""
    kind = "application/octet-stream"
    if start is None and count is None:
        answer: Response = sent(server, run, path, kind)
    else:
        answer = Response(part(_opened(server, run, path), start or 0, count or PART_BYTES_MAX), media_type=kind)
    name = path.rpartition("/")[2]
    plain = PLAIN_NAME.sub("_", name)
    answer.headers["Content-Disposition"] = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return answer


def _of_key(session: Session, person: str, key: str) -> RunRow | None:
    return session.scalar(select(RunRow).where(RunRow.person == person, RunRow.key == key))


def asked_before(server: State, who: Caller, key: str) -> Run | None:
    """The run that was asked for by this key, whatever has become of its lab and of quotas since."""
    with server.store.reading() as session:
        row = _of_key(session, who.name, key)
    return None if row is None else Run.of(row)


def queued(server: State, who: Caller, row: RunRow, drawing: Drawing) -> Run:
    """Writes down that a run is asked for, or shows the one that was asked for by the same key before."""
    with server.store.writing() as session:
        if row.key is not None and (same := _of_key(session, row.person, row.key)):
            return Run.of(same)
        begin(session, server, who, row, drawing)
    return Run.of(row)


def sent_file(file: BinaryIO, kind: str) -> Streamed:
    """A file as an answer, which takes it over."""
    held = AsyncExitStack()
    held.enter_context(file)
    return Streamed(pieces(file), kind, held)


def sent(server: State, run: RunRow, path: str, kind: str) -> Streamed:
    """A file of a run, to be sent.

    Raises:
        Problem: there is none.
    """
    return sent_file(_opened(server, run, path), kind)


def _opened(server: State, run: RunRow, path: str) -> BinaryIO:
    try:
        return opened(server.keeper.run_dir(run.identity), path)
    except OSError:
        raise Problem(404, "missing", f"{path}: the run has no such file, or none yet") from None
