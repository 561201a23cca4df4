"""The saved labs of a server: a store for each folder, as `dilaton save` has one for a user, changed by workers alone.

A store is whole whenever somebody is killed, and says what is in it; so the database knows nothing of saved labs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from dilaton.host.errors import HostLacksError
from dilaton.host.processes import PYTHON
from dilaton.images.store import Store
from dilaton.lab.errors import LabError
from dilaton.lab.errors import Problem as Mistake
from dilaton.server.access.rules import HOME, home
from dilaton.server.database.tables import SavedBeforeRow
from dilaton.server.problems import Problem
from dilaton.server.workers import BrokenError, answer_of, jail, lines_of
from dilaton.service.errors import RequestError
from dilaton.service.saved.store import SavedLabs

WORKER = (*PYTHON, "-m", "dilaton.server.saved.worker")


class Saved:
    """All saved labs of a server."""

    def __init__(self, hidden: Path, directory: Path) -> None:
        """`hidden` is a directory of which no worker sees more than it has to; `directory` is where the stores are."""
        self._hidden, self._directory = hidden.resolve(), directory.resolve()
        self._saving: dict[str, asyncio.Lock] = {}
        """Of each person who has a quota."""

    async def ask(self, folder: str, do: str, *, sees_host: bool = False, **asked: Any) -> dict[str, Any]:
        """Asks a worker about the saved labs of a folder.

        Args:
            folder: Which.
            do: What, as the worker calls it.
            sees_host: Whether their labs may name files of this machine.
            asked: What it takes.

        Raises:
            LabError, RequestError, HostLacksError: a lab that was saved cannot be run so.
            Problem: there is no such lab, or it is damaged.
        """
        places = jail(self._hidden, sees_host=sees_host, writes=self._writes(folder))
        return await _answer(places, do, {"store": str(store_of(self._directory, folder)), **asked})

    async def ask_of_runs(self, do: str, reads: Sequence[Path], **asked: Any) -> dict[str, Any]:
        """Asks a worker about what runs have left, of which it sees nothing but these.

        Raises:
            RequestError, Problem: it is not as it would have to be.
        """
        return await _answer(jail(self._hidden, reads=reads), do, asked)

    async def save(
        self,
        folder: str,
        run_dir: Path,
        name: str,
        person: str,
        bytes_max: int | None,
        before: Mapping[str, Sequence[str]],
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Saves a run that goes on: how far that is, and last what was saved, or what is wrong.

        All that the person has saved takes no more than `bytes_max` together, wherever it is, so one is saved after
        the other; and no file of this one is larger than half of what is free, whatever the nodes send. `before` has,
        by folders, the names of what is theirs and does not say so.
        """
        async with contextlib.AsyncExitStack() as stack:
            elsewhere = 0
            if bytes_max is not None:
                saving = self._saving.setdefault(person, asyncio.Lock())
                if saving.locked():
                    yield {"what": "nothing yet, until another of yours is saved", "bytes": 0}
                await stack.enter_async_context(saving)
                elsewhere = await self._taken(folder, person, before)
            here = list(before.get(folder, ()))
            share = {"person": person, "bytes_max": bytes_max, "elsewhere_bytes": elsewhere, "before": here}
            lines = self._save(folder, run_dir, name, share)
            await stack.enter_async_context(contextlib.aclosing(lines))
            async for line in lines:
                yield line

    async def _taken(self, folder: str, person: str, before: Mapping[str, Sequence[str]]) -> int:
        """How much room all takes that a person has saved elsewhere than in a folder."""
        here = store_of(self._directory, folder)
        theirs = {store_of(self._directory, each): list(names) for each, names in before.items()}
        stores = {str(store): theirs.get(store, []) for store in self._directory.glob("*") if store != here}
        if not stores:
            return 0
        places = jail(self._hidden, reads=[self._directory])
        return int((await _answer(places, "taken", {"stores": stores, "person": person}))["bytes"])

    def _save(
        self, folder: str, run_dir: Path, name: str, share: dict[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        writes = self._writes(folder)
        places = jail(self._hidden, reaches_runs=True, reads=(run_dir.resolve(),), writes=writes)
        asked = {
            "do": "save",
            "store": str(store_of(self._directory, folder)),
            "run": str(run_dir.resolve()),
            "name": name,
            "share": share,
        }
        return lines_of([*places, *WORKER], json.dumps(asked).encode(), shutil.disk_usage(writes[0]).free // 2)

    def _writes(self, folder: str) -> tuple[Path, Path]:
        places = store_of(self._directory, folder), Store().directory
        for place in places:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return places


def store_of(directory: Path, folder: str) -> Path:
    """Where the saved labs of a folder are, among all of a server in `directory`."""
    return directory / folder.strip("/").replace("/", "+")


def _folder_of(store: Path) -> str:
    return "/" + store.name.replace("+", "/")


class Before:
    """Whose the saved labs of a folder are that do not say so, as those of an older version.

    The log of who did what said so when the database was upgraded, as far as it went back. What it had forgotten by
    then is theirs below whose home the folder is, and elsewhere nobody's: it counts for nobody.
    """

    def __init__(self, session: Session, folder: str) -> None:
        """Looks up what is known of a folder."""
        rows = session.scalars(select(SavedBeforeRow).where(SavedBeforeRow.folder == folder))
        self._known = {row.name: row.person for row in rows}
        self._owner = folder.removeprefix(HOME).partition("/")[0] if folder.startswith(HOME) else ""

    def person(self, name: str) -> str:
        """Whose one of that name is; empty: nobody's."""
        return self._known.get(name, self._owner)


def saved_before(session: Session, person: str, directory: Path) -> dict[str, list[str]]:
    """What is somebody's where it does not say so, by folders, of all saved labs in `directory`."""
    found = defaultdict(list)
    for row in session.scalars(select(SavedBeforeRow).where(SavedBeforeRow.person == person)):
        found[row.folder].append(row.name)
    own = store_of(directory, home(person))
    for store in (own, *directory.glob(f"{own.name}+*")):
        before = Before(session, folder := _folder_of(store))
        if names := [name for name in SavedLabs(store).names() if before.person(name) == person]:
            found[folder] = names
    return dict(found)


def checked(said: dict[str, Any]) -> dict[str, Any]:
    """What a worker has said, if nothing is wrong.

    Raises:
        LabError, RequestError, HostLacksError, Problem: something is.
    """
    if "problems" in said:
        raise LabError([Mistake(**one) for one in said["problems"]])
    if "lacks" in said:
        raise HostLacksError(said["lacks"], said["fix"])
    if "field" in said:
        raise RequestError(said["wrong"], said["field"])
    if "wrong" in said:
        raise Problem(404 if said.get("is_missing") else 409, "saved", said["wrong"])
    return said


async def _answer(places: list[str], do: str, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        return checked(await answer_of([*places, *WORKER], json.dumps({"do": do} | asked).encode()))
    except BrokenError as error:
        raise Problem(422, "saved", f"cannot be read: {error}") from None
