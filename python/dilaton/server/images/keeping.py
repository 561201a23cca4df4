"""The store of images as a server sees it, through workers alone; and pulls, which go on while others ask.

**From where images come** is said by who set the server up, as a list of registries. A name of an image names a host,
and the server's machine may reach what whoever asks may not: so a name whose registry is not in the list is refused
before anything is asked of it. A registry of the list is trusted to lead to no other place.

A pull is a process, which ends with the server; the store is then as before, and the next pull goes on with the layers
that have come. So pulls are kept in memory.

**How much room is left** for an image is what the store does not take when it begins to come, and how much it takes is
known when it is there. So of those whose room has a bound one comes, or is made, after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dilaton.host.errors import HostLacksError
from dilaton.host.processes import PYTHON
from dilaton.images.reference import parse
from dilaton.images.store import Store
from dilaton.server.access.secrets import identity
from dilaton.server.problems import Problem
from dilaton.server.workers import BrokenError, answer_of, jail, lines_of

WORKER = (*PYTHON, "-m", "dilaton.server.images.worker")

PLAIN = "http://"
"""Before a registry that has no TLS."""

AT_ONCE = 2
"""Pulls that go on together; others wait."""

KEPT = 50
"""Pulls that are remembered when they are over."""

PullState = Literal["waiting", "going", "done", "failed", "cancelled"]


@dataclass
class Pull:
    """An image that comes from a registry.

    Attributes:
        identity: Of the pull.
        image: Its name, complete.
        person: Who has asked for it.
        state: How far it is.
        store_bytes_max: How much room all images may take for it to be brought; None: as much as there is.
        what, size_bytes: What it does just now, and of how much.
        reason: Why it failed.
    """

    identity: str
    image: str
    person: str
    state: PullState = "waiting"
    store_bytes_max: int | None = None
    what: str = ""
    size_bytes: int = 0
    reason: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Images:
    """The store, and the pulls of a server."""

    def __init__(self, hidden: Path, registries: Sequence[str]) -> None:
        """`hidden` is a directory that no worker sees; `registries` are those from which images may come."""
        self._hidden = hidden.resolve()
        self._plain = frozenset(one.removeprefix(PLAIN) for one in registries if one.startswith(PLAIN))
        self._registries = frozenset(one.removeprefix(PLAIN) for one in registries)
        self._free = asyncio.Semaphore(AT_ONCE)
        self._room = asyncio.Lock()
        self._pulls: dict[str, Pull] = {}

    @property
    def registries(self) -> list[str]:
        """Those from which images may come."""
        return sorted(self._registries)

    async def ask(self, do: str, **asked: Any) -> dict[str, Any]:
        """Asks a worker about the store; it reads, and where it has to writes there and nowhere else.

        Raises:
            Problem: there is no such image, or none that can be read.
            HostLacksError: this machine lacks something for it.
        """
        try:
            return _checked(await answer_of([*self._jail(do), *WORKER], _request(do, asked)))
        except BrokenError as error:
            raise Problem(422, "image", f"cannot be read: {error}") from None

    def pull(
        self,
        name: str,
        person: str,
        changed: Callable[[Pull], Coroutine[Any, Any, None]],
        store_bytes_max: int | None = None,
    ) -> Pull:
        """Begins to bring an image.

        Args:
            name: Of the image, with its registry where that is not docker.io.
            person: Who asks.
            changed: Is told whenever the pull has another state.
            store_bytes_max: How much room all images may take for it to be brought; None: as much as there is.

        Raises:
            Problem: it is no name, or its registry is not one of those from which images may come.
        """
        try:
            reference = parse(name)
        except ValueError as error:
            raise Problem(422, "argument", str(error), field="name") from None
        registry = reference.repository.partition("/")[0]
        if registry not in self._registries:
            known = ", ".join(self.registries) or "none: `registries` of the server's file names them"
            raise Problem(403, "registry", f"{registry}: images come from these registries alone: {known}")
        for pull in self._pulls.values():
            if pull.image == str(reference) and pull.state in ("waiting", "going"):
                return pull
        over = [one for one in self._pulls.values() if one.state not in ("waiting", "going")]
        for old in over[: max(0, len(self._pulls) - KEPT + 1)]:
            del self._pulls[old.identity]
        pull = Pull(identity(), str(reference), person, store_bytes_max=store_bytes_max)
        self._pulls[pull.identity] = pull
        pull.task = asyncio.get_running_loop().create_task(self._go_on(pull, registry in self._plain, changed))
        return pull

    async def saved(
        self, run_dir: Path, node: str, name: str, max_size: str | None, store_bytes_max: int | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Makes an image of a node of a run that goes on: how far that is, and last the image, or what is wrong."""
        directory = Store().directory
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        places = jail(self._hidden, reaches_runs=True, reads=(run_dir.resolve(),), writes=(directory,))
        asked: dict[str, Any] = {"run": str(run_dir.resolve()), "node": node, "name": name}
        asked |= {"max_size": max_size, "store_bytes_max": store_bytes_max}
        lines_said = lines_of([*places, *WORKER], _request("save", asked))
        async with self._alone(store_bytes_max), contextlib.aclosing(lines_said) as lines:
            async for line in lines:
                yield line

    def pulls(self) -> list[Pull]:
        """All that are remembered, the newest last."""
        return list(self._pulls.values())

    def find(self, known: str) -> Pull:
        """A pull by its identity.

        Raises:
            Problem: there is none.
        """
        if known not in self._pulls:
            raise Problem(404, "missing", f"pull {known}: there is none")
        return self._pulls[known]

    async def close(self) -> None:
        """Ends all pulls."""
        tasks = [pull.task for pull in self._pulls.values() if pull.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _go_on(self, pull: Pull, is_plain: bool, changed: Callable[[Pull], Coroutine[Any, Any, None]]) -> None:
        try:
            async with self._alone(pull.store_bytes_max), self._free:
                pull.state = "going"
                await changed(pull)
                try:
                    await self._bring(pull, is_plain)
                    pull.state = "done"
                except (Problem, HostLacksError, OSError) as error:
                    pull.state, pull.reason = "failed", str(error)
        except asyncio.CancelledError:
            pull.state = "cancelled"
        await changed(pull)

    async def _bring(self, pull: Pull, is_plain: bool) -> None:
        """Follows the worker of a pull to its end; without the pull there is no worker."""
        said: dict[str, Any] = {}
        bound = {"store_bytes_max": pull.store_bytes_max}
        asked = _request("pull", {"name": pull.image, "plain_http": is_plain, **bound})
        try:
            async with contextlib.aclosing(lines_of([*self._jail("pull"), *WORKER], asked)) as lines:
                async for said in lines:
                    pull.what, pull.size_bytes = str(said.get("what", "")), int(said.get("bytes", pull.size_bytes))
        except (BrokenError, ValueError):
            said = {"wrong": "what brings images has broken"}
        if "digest" not in _checked(said):
            raise Problem(502, "image", "what brings images has ended before it was done")

    def _alone(self, store_bytes_max: int | None) -> contextlib.AbstractAsyncContextManager[None]:
        """Keeps others whose room has a bound from the room that is left, for who has one."""
        return contextlib.nullcontext() if store_bytes_max is None else self._room

    def _jail(self, do: str) -> list[str]:
        directory = Store().directory
        if do in ("list", "inspect"):
            return jail(self._hidden)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return jail(self._hidden, has_network=do == "pull", writes=(directory,))


def _request(do: str, asked: dict[str, Any]) -> bytes:
    return json.dumps({"do": do} | asked).encode()


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    """What a worker has said, if nothing is wrong.

    Raises:
        Problem, HostLacksError: something is.
    """
    if "wrong" in said:
        raise Problem(404 if "not in the store" in said["wrong"] else 422, "image", said["wrong"])
    if "lacks" in said:
        raise HostLacksError(said["lacks"], said["fix"])
    return said
