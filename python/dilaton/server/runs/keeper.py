"""Keeps runs: launches those that wait, follows those that go on, and writes down what became of them.

**Problem.** A server may be killed at any instruction: between writing down that a run begins and launching it, between
launching and hearing of it, between its end and writing that down. No run may be lost by that, none begun twice, and
none ended.

**Rule.** What is written down comes first: `starting`, then the launch. The process of a run holds a lock on its
journal from before it is there, as a descriptor that it inherits, until it is gone. So whoever begins anew knows, of
each run that is written down as going on:

- its journal is locked: its process lives, and is followed by its control socket, once it has one;
- its journal is free, and it has a record: it has ended, and the record says how;
- its journal is free and has words, but there is no record: it was refused, for what its last words say;
- its journal is empty or not there: nothing began, and it goes back into the queue.

A run of a sweep that has lost a machine goes back into the queue as well, as in a sweep without a server: first all
that it left goes, so that at any instruction between it is one that never began.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import shutil
from collections.abc import Collection, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError
from dilaton.run.control.answers import STOP
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import RECORD_FILE
from dilaton.run.files.outputs import read_tail
from dilaton.run.record.record import RecordError
from dilaton.run.record.record import load as load_record
from dilaton.run.record.states import FINAL_STATES
from dilaton.server.access.policy import Policy
from dilaton.server.bell import Bell, rung
from dilaton.server.database.actions import SERVER, note, now_ms, storable, tell
from dilaton.server.database.store import AGAIN_HOST_S, GONE, Store, surely
from dilaton.server.database.tables import RunRow
from dilaton.server.labs.drawing import Drawing
from dilaton.server.priority import nicer
from dilaton.server.runs import user_ids
from dilaton.server.runs.hearing import Hearer
from dilaton.server.runs.life import FINAL, GOING, WAITS, LifeError, RunState, follows, known
from dilaton.server.runs.queue import Going, Needs, Waiting, chosen
from dilaton.server.runs.shares import STARTS_AT_ONCE, reservations, starting_until, used_ms
from dilaton.server.saved.keeping import store_of
from dilaton.server.settings import Settings
from dilaton.service.client import connected
from dilaton.service.launch import BEHIND, RunProcess, User, behind_of, is_alive, launch
from dilaton.service.live import AsyncRun
from dilaton.service.request import LabText, Overrides, RunRequest
from dilaton.service.saved.store import SavedLabs

LOG = logging.getLogger(__name__)

LOOK_HOST_S = 0.2
"""How often a process is looked at of which nobody hears."""

LOOK_AGAIN_HOST_S = 3600.0
"""How often the queue is looked at without any reason."""

SETTLE_HOST_S = 0.05
"""States that follow each other faster are told together."""

STOP_AGAIN_HOST_S = 5.0
"""After which a run is stopped again that goes on for longer than it may."""

RECORD_BYTES_MAX = 64 << 20
"""More is no record of a run, but something that a guest has put in its place."""

LAST_WORDS_BYTES = 4096

ATTEMPTS_MAX = 3
"""How often a run of a sweep is begun whose machines are lost."""


class Keeper:
    """Keeps all runs of a server; see `keep`."""

    def __init__(self, store: Store, settings: Settings, bell: Bell, policy: Policy) -> None:
        self._store, self._settings, self._bell, self._policy = store, settings, bell, policy
        self._processes: dict[str, RunProcess] = {}
        self._hosts: dict[str, tuple[str, ...]] = {}
        """The hosts of each run that this process has launched and that goes on."""
        self._doubted: set[str] = set()
        """Hosts on which a run was lost, and none has ended since."""
        self._tasks: dict[asyncio.Task[None], str] = {}
        """With the run that each keeps."""

    def directory(self, identity: str) -> Path:
        """All that belongs to a run."""
        return self._settings.runs / identity

    def run_dir(self, identity: str) -> Path:
        """The run directory of a run."""
        return self.directory(identity) / "run"

    def journal(self, identity: str) -> Path:
        """What the process of a run says, in plain text."""
        return self.directory(identity) / "journal.txt"

    def drawing(self, identity: str) -> Path:
        """What is drawn of a run, where no guest writes."""
        return self.directory(identity) / "drawing.json"

    def draw(self, identity: str, drawing: Drawing) -> None:
        """Keeps what is drawn of a run that is asked for."""
        self.directory(identity).mkdir(parents=True)
        self.drawing(identity).write_text(drawing.model_dump_json())

    def live(self, identity: str) -> AsyncRun:
        """A run that goes on, to be steered."""
        return AsyncRun(self.run_dir(identity))

    async def keep(self) -> None:
        """Keeps runs, until cancelled; they go on then."""
        try:
            while True:
                try:
                    await self._keep_on()
                except GONE as error:
                    # What was written down meanwhile is looked up anew: a commit may have had no answer.
                    LOG.error("the database cannot be reached; runs go on: %s", str(error.orig).strip())
                    await asyncio.sleep(AGAIN_HOST_S)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep_on(self) -> None:
        for identity in await asyncio.to_thread(self.found):
            self._begin(identity, self._follow(identity))
        while True:
            ring = self._bell.waiting()
            for identity in await asyncio.to_thread(self._next):
                self._begin(identity, self._launch(identity))
            await rung(ring, await asyncio.to_thread(self._until_change_s))

    async def stop(self, row: RunRow) -> None:
        """Ends a run in good order, and waits until it has begun to end; one that waits is cancelled.

        Raises:
            ControlError: it is over.
        """
        if await asyncio.to_thread(self._cancelled, row.identity):
            return
        try:
            async with connected(self.run_dir(row.identity)) as connection:
                await connection.request(STOP)
        except ControlError:
            # Before its clock is there a run has nobody who could be asked, but a process that heeds signals.
            if (process := self._processes.get(row.identity)) is None:
                raise
            process.stop()

    def remove(self, identity: str) -> None:
        """Removes what a run has left."""
        shutil.rmtree(self.directory(identity), ignore_errors=True)

    def forget_launch(self, identity: str) -> None:
        """Removes what a launch has made by which nothing began; what was made when the run was asked for stays."""
        for name in ("run", "files", user_ids.HOME):
            shutil.rmtree(self.directory(identity) / name, ignore_errors=True)
        self.journal(identity).unlink(missing_ok=True)

    def _begin(self, identity: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = identity
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()):
            LOG.error("a run is not kept any more", exc_info=error)

    def _is_starting(self, identity: str) -> bool:
        with self._store.reading() as session:
            return session.scalar(select(RunRow.state).where(RunRow.identity == identity)) == "starting"

    def found(self) -> list[str]:
        """The runs that go on and are not kept yet, of which those that never began wait again.

        At the beginning these are the runs that were going on when a server was here last.
        """
        kept = set(self._tasks.values())
        with self._store.writing() as session:
            # Whoever asks for a run makes its directory while they write, so what is there now and has no row was left
            # by a server that was killed. A database that knows no run at all is another one than theirs.
            known_runs = set(session.scalars(select(RunRow.identity)))
            left = {path.name for path in self._settings.runs.glob("*")} - known_runs - kept if known_runs else set()
            going = list(session.scalars(select(RunRow).where(RunRow.state.in_(GOING)).order_by(RunRow.number)))
        for identity in left:
            if not is_alive(self.journal(identity)):
                self.remove(identity)
        found = []
        for row in going:
            if row.identity in kept:
                continue
            if self._never_began(row.identity):
                self.forget_launch(row.identity)
                self._becomes(row.identity, "queued")
            else:
                found.append(row.identity)
        return found

    def _never_began(self, identity: str) -> bool:
        journal = self.journal(identity)
        return (
            not is_alive(journal)
            and not (journal.is_file() and journal.stat().st_size)
            and not self._has_record(identity)
        )

    def _has_record(self, identity: str) -> bool:
        return (self.run_dir(identity) / RECORD_FILE).is_file()

    def _next(self) -> list[str]:
        """Takes runs out of the queue, as many as may begin now, in their order."""
        with self._store.reading() as session:
            if not self._chosen(session):
                return []
        with self._store.writing() as session:
            taken = self._chosen(session)
            for identity in taken:
                row = session.scalars(select(RunRow).where(RunRow.identity == identity)).one()
                row.state, row.started_ms = "starting", now_ms()
                tell(session, "Run.Read", row.path, "run", run=identity, state=row.state)
        return taken

    def _chosen(self, session: Session) -> list[str]:
        number = select(func.count()).select_from(RunRow)
        if (session.scalar(number.where(RunRow.state.in_(GOING))) or 0) >= self._settings.at_once:
            return []
        now = now_ms()
        if (may_start := STARTS_AT_ONCE - len(starting_until(session, now))) <= 0:
            return []
        columns = (RunRow.identity, RunRow.number, RunRow.person, RunRow.priority, RunRow.is_approved, RunRow.folder)
        waiting = [
            Waiting(identity, number, person, Needs(**needs), priority, is_approved, folder)
            for identity, number, person, priority, is_approved, folder, needs in session.execute(
                select(*columns, RunRow.needs).where(RunRow.state == "queued")
            )
        ]
        if not waiting:
            return []
        going = [
            Going(person, Needs(**needs), folder)
            for person, needs, folder in session.execute(
                select(RunRow.person, RunRow.needs, RunRow.folder).where(RunRow.state.in_(GOING))
            )
        ]
        at_once, reserved = self._settings.at_once, reservations(session, now)
        return chosen(waiting, going, used_ms(session, now), self._policy.quota, at_once, reserved, now)[:may_start]

    def _until_change_s(self) -> float:
        """After how long the queue is to be looked at although nothing has happened.

        A reservation begins or ends, or a run has started for so long that it keeps no other from it any more.
        """
        now = now_ms()
        with self._store.reading() as session:
            instants = [at for one in reservations(session, now) for at in (one.from_ms, one.until_ms) if at > now]
            instants += starting_until(session, now)
        return min((at - now) / 1000 for at in instants) if instants else LOOK_AGAIN_HOST_S

    async def _launch(self, identity: str) -> None:
        """Launches a run that is written down as starting, and follows it."""
        process = None
        try:
            try:
                user = await surely(partial(self._user, identity))
                request = self._spread(identity, await surely(partial(self._request, identity, user)))
                journal, files = self.journal(identity), self.directory(identity) / "files"
                behind = BEHIND + nicer()
                process = launch(request, detached=True, behind=behind, journal=journal, directory=files, user=user)
                self._processes[identity] = process
                await process.begin()
            except (LabError, HostLacksError, ControlError, OSError) as error:
                if process is not None:
                    await process.wait()
                # A host that is gone lacks all that a run needs; which one it is does not matter.
                lost = self._hosts.get(identity, ()) if isinstance(error, HostLacksError) else ()
                await surely(partial(self.conclude, identity, str(error), lost))
                return
            await self._follow(identity)
            await process.wait()
        finally:
            # It may have begun once more.
            if self._processes.get(identity) is process:
                self._processes.pop(identity, None)
                self._hosts.pop(identity, None)
            if process is not None:
                # Also where the server ends, at whatever point: the run goes on.
                await process.leave()

    def _user(self, identity: str) -> User | None:
        """Whose a run is to be, with directories of its own.

        Raises:
            ControlError: there is no user left.
        """
        if (ids := self._settings.run_as) is None:
            (self.directory(identity) / "files").mkdir(parents=True, exist_ok=True)
            return None
        person = self._row(identity).person
        return user_ids.user_of(self._store, ids, person, self.directory(identity))

    def _request(self, identity: str, user: User | None) -> RunRequest:
        """What is to be launched.

        Raises:
            ControlError: the saved lab from which it goes on is not there any more, or the run that it repeats is
                another user's.
        """
        row = self._row(identity)
        if (saved := row.asked.get("saved")) is not None:
            store = store_of(self._settings.saved, saved["folder"])
            if SavedLabs(store).names().get(saved["name"]) != saved["digest"]:
                raise ControlError(f"{saved['name']}: was saved anew, or removed, since the run was asked for")
            if user is not None:
                user_ids.show_saved(store, saved["digest"])
        first = None if (repeated := row.asked.get("repeats")) is None else self.run_dir(repeated)
        if first is not None and user is not None:
            user_ids.refuse_anothers(first, user)
        return RunRequest(
            lab=LabText(text=row.text, name="lab.yaml"),
            overrides=Overrides.model_validate(row.asked["overrides"]),
            out=self.run_dir(identity),
            hold_at=row.asked["hold_at"],
            stays=row.asked["stays"],
            machines=row.asked.get("machines", 1),
            max_disk=row.asked["max_disk"],
            hidden=(self._settings.directory,),
            saved=None if saved is None else saved["digest"],
            saved_in=None if saved is None else store,
            repeats=first,
            behind=behind_of(self._settings.at_once),
        )

    def _spread(self, identity: str, request: RunRequest) -> RunRequest:
        """Has a run take the hosts that the fewest others have.

        Raises:
            ControlError: the server has not so many any more.
        """
        taken = itertools.chain.from_iterable(self._hosts.values())
        try:
            machines, onto = self._settings.spread(request.machines, taken, self._doubted)
        except ValueError as error:
            raise ControlError(str(error)) from error
        self._hosts[identity] = onto
        return request.model_copy(update={"machines": machines, "onto": onto})

    async def _follow(self, identity: str) -> None:
        """Follows a run whose process lives, or has ended unheard, and writes down what became of it."""
        journal = self.journal(identity)
        limiting = asyncio.create_task(self._limit(identity))
        try:
            while await asyncio.to_thread(is_alive, journal):
                with contextlib.suppress(ControlError):
                    await self._hear(identity)
                await asyncio.sleep(LOOK_HOST_S)
        finally:
            limiting.cancel()
            await asyncio.gather(limiting, return_exceptions=True)
        await surely(partial(self.conclude, identity, ""))

    async def _limit(self, identity: str) -> None:
        """Stops a run that has gone on for as long as it may."""
        row = await surely(partial(self._row, identity))
        host_s = Needs(**row.needs).host_s
        if host_s is None or row.started_ms is None:
            return
        await asyncio.sleep(max(0.0, row.started_ms / 1000 + host_s - now_ms() / 1000))
        await surely(partial(self._note_limit, row, host_s))
        # Who keeps a run from hearing of it, or is not there to be asked yet, is asked again until there is no run.
        while True:
            with contextlib.suppress(ControlError, OSError, *GONE):
                await self.stop(row)
            await asyncio.sleep(STOP_AGAIN_HOST_S)

    def _note_limit(self, row: RunRow, host_s: int) -> None:
        with self._store.writing() as session:
            note(session, SERVER, "run.limit", row.path, host_s=host_s)

    def _row(self, identity: str) -> RunRow:
        with self._store.reading() as session:
            return session.scalars(select(RunRow).where(RunRow.identity == identity)).one()

    async def _hear(self, identity: str) -> None:
        """Writes down the states of a run as it tells them, until it is over."""
        hearer = Hearer()
        writing = asyncio.create_task(self._write(identity, hearer))
        try:
            async with contextlib.aclosing(self.live(identity).follow()) as happenings:
                async for happening in happenings:
                    hearer.hear(happening)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, identity: str, hearer: Hearer) -> None:
        while True:
            await hearer.heard.wait()
            # A run tells all that has been so far: what counts is where that leads.
            await asyncio.sleep(SETTLE_HOST_S)
            hearer.heard.clear()
            with contextlib.suppress(LifeError):  # it has ended meanwhile
                await surely(partial(self._becomes, identity, hearer.state))

    def _cancelled(self, identity: str) -> bool:
        """Whether a run still waited, and now does not."""
        with self._store.writing() as session:
            row = session.scalars(select(RunRow).where(RunRow.identity == identity)).one()
            if row.state in FINAL:
                raise ControlError(f"the run is over: {row.state}")
            if row.state not in WAITS:
                return False
            row.state, row.ended_ms = "cancelled", now_ms()
            tell(session, "Run.Read", row.path, "run", run=identity, state=row.state)
        return True

    def _becomes(
        self,
        identity: str,
        state: RunState,
        reason: str | None = None,
        verdict: str | None = None,
        virtual_s: float = 0,
    ) -> None:
        """Writes down the state of a run, and tells it, if that is new."""
        with self._store.writing() as session:
            row = session.scalars(select(RunRow).where(RunRow.identity == identity)).one_or_none()
            if row is None or not follows(row.state, state):
                return
            row.state = state
            if state in FINAL:
                reason = None if reason is None else storable(reason)
                row.ended_ms, row.reason, row.verdict, row.virtual_s = now_ms(), reason, verdict, virtual_s
            tell(session, "Run.Read", row.path, "run", run=identity, state=state, reason=reason, verdict=verdict)

    def conclude(self, identity: str, why: str, lost: Collection[str] = ()) -> None:
        """Writes down the end of a run, whose process is gone; if hosts were `lost`, one of a sweep may wait again."""
        if lost and self._waits_again(identity, lost):
            return
        path = self.run_dir(identity)
        try:
            if (path / RECORD_FILE).stat().st_size > RECORD_BYTES_MAX:
                raise RecordError(f"{RECORD_FILE}: too large to be a record")
            record = load_record(path)
        except FileNotFoundError:
            words = read_tail(self.journal(identity), LAST_WORDS_BYTES).decode(errors="replace").strip().splitlines()
            said = why or (words[-1] if words else "its process was killed before it began")
            self._ends(identity, "refused" if self._is_starting(identity) else "failed", said)
        except (RecordError, OSError) as error:
            self._ends(identity, "failed", reason=str(error))
        else:
            if record.lost_machine is not None and self._waits_again(identity, [record.lost_machine]):
                return
            if record.lost_machine is None:
                self._doubted.difference_update(self._hosts.get(identity, ()))
            if record.state in FINAL_STATES:
                level = record.verdict.level if record.verdict else None
                self._ends(identity, known(record.state), record.reason, level, record.time.virtual_s)
            else:
                self._ends(identity, "failed", "its process was killed", None, record.time.virtual_s)

    def _waits_again(self, identity: str, lost: Collection[str]) -> bool:
        """Has a run of a sweep that has lost machines wait for its turn once more; whether it may."""
        self._doubted.update(lost)
        with self._store.reading() as session:
            row = session.scalars(select(RunRow).where(RunRow.identity == identity)).one_or_none()
        if row is None or row.sweep is None or row.state not in GOING:
            return False
        if (attempt := row.asked.get("attempt", 1)) == ATTEMPTS_MAX:
            return False
        self.forget_launch(identity)
        with self._store.writing() as session:
            row = session.scalars(select(RunRow).where(RunRow.identity == identity)).one()
            row.asked, row.state, row.started_ms = row.asked | {"attempt": attempt + 1}, "queued", None
            tell(session, "Run.Read", row.path, "run", run=identity, state=row.state)
        return True

    def _ends(
        self, identity: str, state: RunState, reason: str | None, verdict: str | None = None, virtual_s: float = 0
    ) -> None:
        with contextlib.suppress(LifeError):  # somebody was faster
            self._becomes(identity, state, reason, verdict, virtual_s)
