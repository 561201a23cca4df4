"""Labs are read by workers, each a process in a jail with limits, which see what their labs may name of this machine.

Paths in a lab mean files of the server's machine. Whoever may not use these (`Host.Files`) has their labs read where
only the system is: a file elsewhere is not there. Nobody's lab sees the server's own data.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError, Problem
from dilaton.server.forks.forks import Forks
from dilaton.server.labs.drawing import Drawing
from dilaton.server.labs.lately import Lately
from dilaton.server.problems import Problem as Refusal
from dilaton.server.workers import BrokenError
from dilaton.service.errors import RequestError
from dilaton.service.request import Overrides
from dilaton.service.vpn.configuration import Way

WORKER = "dilaton.server.labs.worker"
TEMPLATING = "dilaton.server.labs.templating"
DERIVING = "dilaton.server.labs.deriving"
IMPORTING = "dilaton.server.labs.importing"
CAPTURING = "dilaton.server.labs.capturing"
ENTERING = "dilaton.server.labs.entering"

AT_ONCE = 2


@dataclass(frozen=True)
class Checked:
    """A lab without mistakes.

    Attributes:
        name: Its own.
        doubts: What is likely to be a mistake, and keeps nothing from running.
        memory_bytes: Of each of its guests.
        drawing: What is drawn of it.
        plan: All that a run of it would do; None: it is only drawn.
    """

    name: str
    doubts: list[Problem]
    memory_bytes: list[int]
    drawing: Drawing
    plan: dict[str, Any] | None


@dataclass(frozen=True)
class Point:
    """A lab without mistakes with some settings.

    Attributes:
        name, seed: Its own.
        memory_bytes: Of each of its guests.
        drawing: What is drawn of it.
    """

    name: str
    seed: int
    memory_bytes: list[int]
    drawing: Drawing


class Checker:
    """Reads labs; see `check`."""

    def __init__(self, hidden: Path, *, stays: bool = False) -> None:
        """`hidden` is a directory that no lab is to see; `stays`: what answers soon stays, though nobody asks."""
        self._free = asyncio.Semaphore(AT_ONCE)
        self._forks = Forks(hidden.resolve(), stays=stays)
        self._lately: Lately[Checked] = Lately()

    async def close(self) -> None:
        """Ends workers that wait for a lab."""
        await self._forks.close()

    async def check(
        self, text: str, overrides: Overrides, *, sees_host: bool, is_drawn: bool = False, machines: int = 1
    ) -> Checked:
        """Reads a lab as a run would.

        Args:
            text: Of the lab.
            overrides: What counts instead of what it says.
            sees_host: Whether it may name files of this machine.
            is_drawn: Whether only its drawing is wanted, and not its plan.
            machines: Over how many a run of it is to be spread.

        Raises:
            LabError: it has mistakes, or takes more than a lab may.
            RequestError: what is to count instead has, or it cannot be spread so.
            HostLacksError: this machine lacks something that it needs.
        """
        asked = {
            "text": text,
            "overrides": overrides.model_dump(mode="json"),
            "is_drawn": is_drawn,
            "machines": machines,
        }
        if sees_host or not is_drawn:
            return await self._checked(asked, sees_host=sees_host)
        return await self._lately.of(json.dumps(asked), lambda: self._checked(asked, sees_host=False))

    async def _checked(self, asked: dict[str, Any], *, sees_host: bool) -> Checked:
        said = await self._said(WORKER, asked, sees_host)
        doubts = [Problem(**doubt) for doubt in said["doubts"]]
        drawing = Drawing.model_validate(said["drawing"])
        return Checked(said["name"], doubts, said["memory_bytes"], drawing, said["plan"])

    async def points(
        self, text: str, points: Sequence[Sequence[str]], *, sees_host: bool, machines: int
    ) -> list[Point]:
        """Reads a lab with each of several lists of settings, as runs of it would.

        Raises:
            LabError, RequestError, HostLacksError: as by `check`, with any of them.
        """
        asked = {"text": text, "points": [list(point) for point in points], "machines": machines}
        said = await self._said(WORKER, asked, sees_host)
        return [
            Point(one["name"], one["seed"], one["memory_bytes"], Drawing.model_validate(one["drawing"]))
            for one in said["points"]
        ]

    async def template(self, asked: dict[str, Any], *, sees_host: bool) -> dict[str, Any]:
        """What a template says of itself, or the lab that begins with it.

        Args:
            asked: `text` and `description`; to begin a lab, also its `name` and what was `chosen`.
            sees_host: Whether its lab may name files of this machine.

        Raises:
            LabError, RequestError, HostLacksError: as by `check`.
        """
        return await self._said(TEMPLATING, asked, sees_host)

    async def imported(self, name: str, text: str, topo: str) -> dict[str, Any]:
        """The lab that a file of another program becomes, as `server.labs.importing` tells it.

        Raises:
            LabError, RequestError, HostLacksError: as by `check`.
        """
        return await self._said(IMPORTING, {"name": name, "text": text, "topo": topo}, sees_host=False)

    async def derived(self, verb: str, asked: BaseModel, *, sees_host: bool) -> dict[str, Any]:
        """What a verb makes of a lab, as `server.labs.deriving` tells it.

        Raises:
            LabError, RequestError, HostLacksError: as by `check`.
        """
        return await self._said(DERIVING, {"verb": verb} | asked.model_dump(mode="json"), sees_host)

    async def _said(self, worker: str, asked: dict[str, Any], sees_host: bool) -> dict[str, Any]:
        """What a worker says of a lab that can be run.

        Raises:
            LabError, RequestError, HostLacksError: it cannot.
        """
        said = await self._ask(worker, asked, sees_host=sees_host)
        if "problems" in said:
            raise LabError([Problem(**problem) for problem in said["problems"]])
        if "wrong" in said:
            raise RequestError(said["wrong"], said["field"])
        if "lacks" in said:
            raise HostLacksError(said["lacks"], said["fix"])
        return said

    async def capture_command(self, asked: dict[str, Any]) -> tuple[str, list[str]]:
        """What is to be executed where to capture in a run, whose plan and filter a worker reads.

        Args:
            asked: As `run.control.following.capture_command` takes it; `plan` as text.

        Raises:
            Refusal: nothing can be captured so.
        """
        said = await self._of_plan(CAPTURING, asked)
        return said["node"], said["argv"]

    async def way_into(self, plan: str, node: str | None) -> Way:
        """The way into the network of a run that has this plan, by a node; None: the first that forwards.

        Raises:
            Refusal: there is none.
        """
        said = await self._of_plan(ENTERING, {"plan": plan, "node": node})
        return Way(said["node"], tuple(map(ip_network, said["reached"])), tuple(map(ip_address, said["addresses"])))

    async def _of_plan(self, worker: str, asked: dict[str, Any]) -> dict[str, Any]:
        """What a worker says that reads the plan of a run.

        Raises:
            Refusal: that cannot be, or the plan cannot be read.
        """
        try:
            said = await self._ask(worker, asked, sees_host=False)
        except LabError:
            raise Refusal(409, "run-refused", "the plan of the run cannot be read") from None
        if "wrong" in said:
            raise Refusal(422, "argument", said["wrong"])
        return said

    async def _ask(self, worker: str, asked: dict[str, Any], *, sees_host: bool) -> dict[str, Any]:
        """What a worker says.

        Raises:
            LabError: it took too much, or broke.
        """
        async with self._free:
            try:
                said = await self._forks.answer_of(
                    worker, json.dumps(asked).encode(), sees_host=sees_host, is_forked=worker != IMPORTING
                )
            except BrokenError as error:
                raise LabError([Problem("lab.yaml", 0, 0, "", f"cannot be read: {error}")]) from None
        return said
