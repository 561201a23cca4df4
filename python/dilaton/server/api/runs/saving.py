"""Runs that are put away and gone on with: as saved labs, as images of their nodes, or repeated up to an instant."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path as File
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from sqlalchemy import select

from dilaton.images.reference import LENGTH_MAX
from dilaton.lab.text import units
from dilaton.run.control.answers import CLOCK_SHOW
from dilaton.run.control.errors import ControlError
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import PREFIX, Endpoints, Folder, Server, TheRun, Who, needs
from dilaton.server.api.labs.labs import sees_host
from dilaton.server.api.runs.runs import Run as RunShown
from dilaton.server.api.runs.runs import ToRun, asked_before, needs_of, new_row, queued
from dilaton.server.api.session import Asked
from dilaton.server.api.streamed import Streamed
from dilaton.server.api.streams import HEARTBEAT_HOST_S
from dilaton.server.database.actions import note, tell
from dilaton.server.database.tables import RunRow
from dilaton.server.labs.drawing import Drawing
from dilaton.server.problems import Problem, missing
from dilaton.server.runs.life import FINAL
from dilaton.server.runs.queue import Needs
from dilaton.server.saved.keeping import Before, checked, saved_before
from dilaton.server.state import State
from dilaton.server.workers import BrokenError
from dilaton.service.client import connected
from dilaton.service.request import Overrides

ENDPOINTS = Endpoints()

RUN = f"{PREFIX}/runs/{{run}}"
SAVED = f"{PREFIX}/saved"

LINES = "application/jsonl"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Of a saved lab."""

TheName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class ToSave(Asked):
    """What a run is saved as."""

    name: Name
    """Another saved lab of this name, in this folder, is replaced."""


class ToImage(Asked):
    """A node of which an image is made."""

    node: str = Field(min_length=1, max_length=64)
    """It has an image."""
    name: str = Field(min_length=1, max_length=LENGTH_MAX)
    """What the new one will be called, such as `db:full`."""
    max_size: str | None = Field(default=None, max_length=40)
    """How large its files may be together; null: half of what is free."""


class ToRepeat(Asked):
    """Up to where a run is repeated."""

    at: str = Field(max_length=40)
    """A virtual instant, as in a lab."""
    key: Annotated[str | None, Field(min_length=1, max_length=64, pattern=r"^[!-~]+$")] = None
    """One's own name of what is asked: who asks again by it gets the same run."""


class Repeated(BaseModel):
    """What was compared of a run with the one that it repeats, and is the same."""

    events: int
    """How many events both had by then."""
    bytes: int
    """How much their guests had written."""


class SavedLab(BaseModel):
    """A lab that was saved with what its nodes had."""

    name: str
    lab: str
    """Its own name."""
    virtual_s: float
    """Where the run was."""
    settings: list[str]
    """What counts instead of what the lab says."""
    images: list[str]
    """The digests of images that its nodes have."""
    person: str
    """Who has saved it, and of whose quota it is; empty: that is not known, and it is of nobody's."""
    size_bytes: int


class BrokenLab(BaseModel):
    """A saved lab that cannot be used."""

    name: str
    wrong: str


class SavedLabs(BaseModel):
    """The saved labs of a folder."""

    saved: list[SavedLab]
    broken: list[BrokenLab]


class NewRunOfSaved(ToRun):
    """A run that goes on from a saved lab."""

    version: None = None
    overrides: Overrides = Overrides()
    """What counts instead of what the lab says."""
    stays: bool = False
    """Whether it goes on when nothing is left to do, until it is stopped."""


@ENDPOINTS.add(
    "POST",
    f"{RUN}/save",
    needs(("Run.Files", "run"), ("Lab.Write", "folder")),
    response_class=StreamingResponse,
)
async def save_run(asked: ToSave, run: TheRun, folder: Folder, who: Who, server: Server) -> Streamed:
    """Saves a run that goes on, in a folder, one's own unless the query names another: its lab and what nodes have.

    Lines of JSON say `what` is being saved and of how many `bytes`; the last one has what was `saved`, and a sentence
    for each thing that is not (`left_out`), or what is `wrong`. Who leaves before saves nothing.
    """
    _refuse_still(run)
    await asyncio.to_thread(_note, server, who, run.path, "run.save", folder=folder, name=asked.name)
    most = server.policy.quota(who.name).saved_bytes
    before = await asyncio.to_thread(_saved_before, server, who)
    lines = server.saved.save(folder, server.keeper.run_dir(run.identity), asked.name, who.name, most, before)
    return await _told(lines, None)


def _saved_before(server: Server, who: Who) -> dict[str, list[str]]:
    with server.store.reading() as session:
        return saved_before(session, who.name, server.settings.saved)


@ENDPOINTS.add(
    "POST",
    f"{RUN}/image",
    needs(("Run.Files", "run"), ("Image.Write", "server")),
    response_class=StreamingResponse,
)
async def save_node(asked: ToImage, run: TheRun, who: Who, server: Server) -> Streamed:
    """Makes an image of a node of a run that goes on; lines of JSON as of `save`, of which the last has the `image`."""
    _refuse_still(run)
    await asyncio.to_thread(_note, server, who, run.path, "image.save", node=asked.node, image=asked.name)
    run_dir, most = server.keeper.run_dir(run.identity), server.policy.quota(who.name).images_bytes
    lines = server.images.saved(run_dir, asked.node, asked.name, asked.max_size, most)
    return await _told(lines, partial(_tell_image, server))


@ENDPOINTS.add("GET", SAVED, needs(("Lab.Read", "folder")))
async def list_saved(folder: Folder, server: Server) -> SavedLabs:
    """The saved labs of a folder, one's own unless the query names another."""
    listed = SavedLabs(**await server.saved.ask(folder, "list"))
    if not all(one.person for one in listed.saved):
        before = await asyncio.to_thread(_before, server, folder)
        for one in listed.saved:
            one.person = one.person or before.person(one.name)
    return listed


def _before(server: State, folder: str) -> Before:
    with server.store.reading() as session:
        return Before(session, folder)


@ENDPOINTS.add("DELETE", f"{SAVED}/{{name}}", needs(("Lab.Delete", "folder")), status_code=204)
async def remove_saved(name: TheName, folder: Folder, who: Who, server: Server) -> None:
    """Removes a saved lab; runs that have begun with it go on."""
    await server.saved.ask(folder, "remove", name=name)
    await asyncio.to_thread(_note, server, who, folder, "saved.remove", name=name)


@ENDPOINTS.add(
    "POST", f"{SAVED}/{{name}}/runs", needs(("Lab.Read", "folder"), ("Run.Launch", "folder")), status_code=202
)
async def launch_saved(asked: NewRunOfSaved, name: TheName, folder: Folder, who: Who, server: Server) -> RunShown:
    """Has a run go on from a saved lab, in the folder of that; it waits for its turn."""
    if asked.key is not None and (same := await asyncio.to_thread(asked_before, server, who, asked.key)):
        return same
    overrides = asked.overrides.model_dump(mode="json")
    read = await server.saved.ask(folder, "read", name=name, overrides=overrides, sees_host=sees_host(who))
    needed = needs_of(server, who, read["memory_bytes"], asked.max_disk, asked.host_s)
    said = asked.of_run(asked.overrides, stays=asked.stays)
    said["saved"] = {"folder": folder, "name": name, "digest": read["digest"]}
    row = new_row(server, who, folder, None, read["text"], read["name"], said, needed)
    row.key = asked.key
    return await asyncio.to_thread(queued, server, who, row, Drawing.model_validate(read["drawing"]))


@ENDPOINTS.add("POST", f"{RUN}/repeats", needs(("Run.Files", "run"), ("Run.Launch", "folder")), status_code=202)
async def repeat_run(asked: ToRepeat, run: TheRun, folder: Folder, who: Who, server: Server) -> RunShown:
    """Has a run on the event drive that is over run again, up to an instant, where it is held; it waits for its turn.

    Whether it stands where the first one was then is for `POST /runs/{run}/compare` to say, once it is `held`.
    """
    if asked.key is not None and (same := await asyncio.to_thread(asked_before, server, who, asked.key)):
        return same
    if run.state not in FINAL:
        raise Problem(409, "state", f"the run is {run.state}; it can be repeated once it is over", state=run.state)
    overrides = Overrides.model_validate(run.asked["overrides"]).model_copy(update={"confirm": False})
    # What it may read of this machine, whoever repeats it has to be allowed themselves.
    drawn = await server.checker.check(run.text, overrides, sees_host=sees_host(who), is_drawn=True)
    first = server.keeper.run_dir(run.identity).resolve()
    if not first.is_dir():
        raise Problem(409, "state", "the run has left nothing that could be repeated")
    await server.saved.ask_of_runs("repeat", [first], run=str(first), at=asked.at)
    said = run.asked | {"overrides": overrides.model_dump(mode="json"), "hold_at": asked.at, "repeats": run.identity}
    row = new_row(server, who, folder, (run.lab, run.version), run.text, run.name, said, Needs(**run.needs))
    row.key = asked.key
    return await asyncio.to_thread(queued, server, who, row, drawn.drawing)


@ENDPOINTS.add("POST", f"{RUN}/compare", needs(("Run.Steer", "run")))
async def compare_repeat(run: TheRun, who: Who, server: Server) -> Repeated:
    """Looks whether a run that repeats another one is in the state which that had at the instant where it is held.

    One that is not is ended, and the first difference told.
    """
    first = await asyncio.to_thread(_first_of, server, run, who)
    again, at = server.keeper.run_dir(run.identity).resolve(), str(run.asked["hold_at"])
    async with connected(again) as connection:
        clock = await connection.request(CLOCK_SHOW)
    if not clock["held"] or round(clock["virtual_s"] * 1e9) != units.parse_duration(at):
        raise Problem(409, "state", f"the run is not held at {at}; wait until it is")
    try:
        return Repeated(
            **await server.saved.ask_of_runs("compare", [first, again], run=str(first), again=str(again), at=at)
        )
    except Problem:
        with contextlib.suppress(ControlError):  # it is over by now
            await server.keeper.stop(run)
        raise


def _first_of(server: State, run: RunRow, who: Caller) -> File:
    """The directory of the run that another one repeats."""
    identity = run.asked.get("repeats")
    if identity is None:
        raise Problem(409, "state", "the run repeats no other")
    with server.store.reading() as session:
        row = session.scalar(select(RunRow).where(RunRow.identity == identity))
    if row is None or not who.access.may("Run.Files", row.path):
        raise missing("run", identity)
    return server.keeper.run_dir(identity).resolve()


def _refuse_still(run: RunRow) -> None:
    """Refuses to save a run of which nothing goes on.

    Raises:
        Problem: it is one.
    """
    if run.state not in ("running", "held"):
        raise Problem(409, "state", f"the run is {run.state}; one that goes on can be saved", state=run.state)


async def _told(lines: AsyncGenerator[dict[str, Any], None], done: Any) -> Streamed:
    """What a worker says as an answer; what is wrong at once is a problem.

    Args:
        lines: Of the worker.
        done: Is called with the last line, when nothing is wrong.
    """
    try:
        first = checked(await anext(lines, {"wrong": "what saves has broken"}))
    except BaseException:
        await lines.aclose()
        raise

    held = contextlib.AsyncExitStack()
    held.push_async_callback(lines.aclose)

    async def told() -> AsyncGenerator[bytes, None]:
        said = first
        yield _line(said)
        coming = asyncio.ensure_future(anext(lines, None))
        try:
            while True:
                if not (await asyncio.wait({coming}, timeout=HEARTBEAT_HOST_S))[0]:
                    yield _line({})
                    continue
                if (line := coming.result()) is None:
                    break
                yield _line(said := line)
                coming = asyncio.ensure_future(anext(lines, None))
        except BrokenError as error:
            yield _line(said := {"wrong": str(error)})
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        if "what" in said:
            yield _line({"wrong": "what saves has ended before it was done"})
        elif done is not None and "wrong" not in said:
            await asyncio.to_thread(done, said)

    return Streamed(told(), LINES, held)


def _line(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _note(server: State, who: Caller, path: str, action: str, **data: Any) -> None:
    with server.store.writing() as session:
        note(session, who.name, action, path, **data)


def _tell_image(server: State, said: dict[str, Any]) -> None:
    with server.store.writing() as session:
        tell(session, "Image.Write", "/", "image", image=said["image"]["name"], state="done")
