"""Runs that go on: started, found, steered and waited for. Each method is a coroutine; `plain.py` has them without.

What is done here is what `dilaton clock` and `dilaton link` do: requests to the control socket of a process that is the
run's own, so that nothing that happens here can delay it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from dilaton.lab.parts.fidelity import Confirm
from dilaton.run.control.answers import (
    CLOCK_HOLD,
    CLOCK_RELEASE,
    CLOCK_SHOW,
    CLOCK_STEP,
    CLOCK_TDF,
    CLOCK_UNTIL,
    FAULT_BEGIN,
    FAULT_LIST,
    FAULT_UNDO,
    FOLLOW,
    LINK_CHANGE,
    LINK_SHOW,
    RESUME,
    SHOW,
    STOP,
    SUSPEND,
    Answer,
    Clock,
    LinkShown,
    Name,
)
from dilaton.run.control.errors import ControlError
from dilaton.run.control.happenings import Happening, happening_of
from dilaton.run.control.session_client import captured, reached
from dilaton.run.loading import Run, load
from dilaton.service.catalogue import find
from dilaton.service.client import connected
from dilaton.service.launch import RunProcess, launch
from dilaton.service.request import LabText, Overrides, RunRequest

Instant = str | float
"""Virtual time since the run's virtual 0: `"5s"`, or a number of seconds."""


@dataclass(frozen=True)
class ClockState:
    """The clock of a run: both times in seconds, the TDF, and whether virtual time stands still."""

    virtual_s: float
    host_s: float
    tdf: float
    held: bool


@dataclass(frozen=True)
class FaultState:
    """A fault of a run; instants in nanoseconds of virtual time since the run's virtual 0."""

    name: str
    what: str
    by_hand: bool
    state: str
    """`waiting`, `lasting`, `over`, or `skipped`, which never begins."""
    began_ns: int | None
    ended_ns: int | None
    for_ns: int | None
    """How long it lasts if nobody undoes it; None: it has no end of its own."""


class AsyncRun:
    """A run that goes on. As an asynchronous context it stops, at the end, the run that was started with it.

    All methods that wait raise `ControlError` when what they ask for is refused or the run has ended. One that is
    cancelled leaves the run with what it was told.
    """

    def __init__(self, path: Path, process: RunProcess | None = None) -> None:
        """Use `dilaton.start_async` or `dilaton.attach_async`."""
        self.path = path
        self._process = process

    async def __aenter__(self) -> AsyncRun:
        """This run."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stops the run, if it was started here and still goes on; one that is suspended stays as it is."""
        if self._process:
            with contextlib.suppress(ControlError):
                if (await self._ask(SHOW))["suspended"]:
                    await self._process.leave()
                    return
                await self._ask(STOP)
            await self._process.wait()

    async def clock(self) -> ClockState:
        """The state of the run's clock, now."""
        return _clock(await self._ask(CLOCK_SHOW))

    async def hold(self) -> ClockState:
        """Stops virtual time."""
        return _clock(await self._ask(CLOCK_HOLD))

    async def release(self) -> ClockState:
        """Lets it go on."""
        return _clock(await self._ask(CLOCK_RELEASE))

    async def until(self, at: Instant) -> ClockState:
        """Lets it go on to exactly `at`, and holds it there."""
        return _clock(await self._ask(CLOCK_UNTIL, at=_text(at)))

    async def step(self) -> ClockState:
        """Lets it go on to the guests' next timer, and holds it there."""
        return _clock(await self._ask(CLOCK_STEP))

    async def set_tdf(self, tdf: float | str) -> ClockState:
        """Changes the TDF."""
        return _clock(await self._ask(CLOCK_TDF, tdf=str(tdf)))

    async def suspend(self) -> None:
        """Puts the run away: virtual time stands still, memory of guests is on disk, their cores are free.

        Until it is resumed nothing else can be asked of it but what it is, and to stop. It then outlives this program.
        """
        await self._ask(SUSPEND)

    async def resume(self) -> ClockState:
        """Goes on where it was put away."""
        return _clock(await self._ask(RESUME))

    async def links(self) -> list[str]:
        """The names of all links."""
        return [one["link"] for one in (await self._ask(LINK_SHOW))["links"]]

    async def link_name(self, name: str) -> str:
        """The full name of a link that is named by its ends; of a segment, by all of its nodes."""
        return str((await self._ask(LINK_SHOW, link=name))["name"])

    async def show_link(self, name: str) -> LinkShown:
        """What a link is now: `up`, and for each of its `ends` the `egress` and the `wire_delay_ns`, as in the plan.

        Of a segment this is its first port.
        """
        return (await self._ask(LINK_SHOW, link=name))["links"][0]

    async def set_link(self, name: str, *, at: Instant | None = None, **fields: Any) -> float:
        """Changes some fields of a link; what is not named stays as it is.

        Args:
            name: The link, by its ends.
            at: When; None: now.
            fields: As in the lab: `loss="5%"`, `delay={"jitter": "2ms"}`, `b_to_a={"rate": "1Mbit"}`.

        Returns:
            The virtual instant of the change, seconds.
        """
        settings = [(field, _yaml(value)) for field, value in fields.items()]
        when = {} if at is None else {"at": _text(at)}
        done = await self._ask(LINK_CHANGE, link=name, settings=settings, directory=os.getcwd(), **when)
        return float(done["at_ns"] / 1e9)

    async def faults(self) -> list[FaultState]:
        """All faults, those of the lab and those by hand, and what has become of them."""
        return [FaultState(**one) for one in (await self._ask(FAULT_LIST))["faults"]]

    async def begin_fault(self, fault: Mapping[str, Any]) -> list[FaultState]:
        """Begins a fault, now; one of each thing that it means.

        Args:
            fault: As an item of the lab's `faults:`, but for when it begins: `{"pause": "db1", "for": "3s"}`.
        """
        done = await self._ask(FAULT_BEGIN, fault=dict(fault), directory=os.getcwd())
        return [FaultState(**one) for one in done["faults"]]

    async def undo_faults(self, *names: str) -> float:
        """Undoes faults that last, now: those of these names, or all that were begun by hand.

        Returns:
            The virtual instant, seconds.
        """
        return float((await self._ask(FAULT_UNDO, names=list(names)))["t_ns"] / 1e9)

    async def follow(self) -> AsyncGenerator[Happening, None]:
        """All that has happened in the run, and all that happens from now on, up to its end."""
        async with connected(self.path) as connection:
            await connection.request(FOLLOW)
            async for line in connection.lines():
                yield happening_of(line)

    async def execute(self, node: str, command: str | Sequence[str]) -> CompletedProcess[str]:
        """Executes a command in a node, a shell's if it is one text, and returns what it printed and its status.

        Cancelled, it is hung up on.
        """
        return await captured(reached(self.path), node, ["sh", "-c", command] if isinstance(command, str) else command)

    def result(self) -> Run:
        """What there is of the run so far, or in the end, as of `dilaton.load`."""
        return load(self.path)

    async def stop(self) -> Run:
        """Ends the run in good order, and waits for that."""
        await self._ask(STOP)
        return await self.wait()

    async def wait(self) -> Run:
        """Waits for the end of the run, whose clock must not be held for ever; returns what it has measured."""
        with contextlib.suppress(ControlError):
            async with connected(self.path) as connection:
                await connection.request(SHOW)
                await connection.wait_for_end()
        if self._process:
            await self._process.wait()
        return self.result()

    async def _ask(self, verb: Name[Answer], **arguments: Any) -> Answer:
        async with connected(self.path) as connection:
            return await connection.request(verb, **arguments)


async def attach(run: str | Path) -> AsyncRun:
    """A run that goes on already, by its directory, or by its lab's file, directory or name.

    Raises:
        ControlError: there is none, or there are several of that name.
    """
    return AsyncRun(await asyncio.to_thread(find, str(run)))


async def start(
    lab: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    hold_at: Instant | None = None,
    tdf: float | str | None = None,
    drive: str | None = None,
    max_speed: float | str | None = None,
    settings: Mapping[str, Any] | None = None,
    stay: bool = False,
    confirm: Confirm | None = None,
    max_disk: str | None = None,
    detached: bool = False,
) -> AsyncRun:
    """Starts a run in a process of its own, and returns once its clock is released, or held at `hold_at`.

    If this is cancelled, the run is stopped.

    Args:
        lab: A lab's file, its directory, or its contents as a mapping.
        out: The run directory; None: `runs/<lab>-<UTC>-<n>`.
        hold_at: Where the run holds its clock at first.
        tdf, drive, max_speed: Instead of the lab's.
        settings: Fields instead of the lab's: `{"links.0.rate": "1Gbit"}`.
        stay: Whether it goes on when nothing is left to do, at host speed at most, until it is stopped.
        confirm: Whether it is confirmed when it is over, for which `wait` then waits; `"suspect"`: only if its verdict
            is `suspect` or `invalid`; None: as the lab says.
        max_disk: What the run directory may take, such as `100GiB`; None: half of what is free.
        detached: Whether it outlives this program, and the `with` in which it is used.

    Raises:
        LabError: the lab has mistakes.
        HostLacksError: this machine lacks something that the run needs.
        ControlError: the run is refused for another reason, or ended before it could be steered.
    """
    overrides = Overrides(
        tdf=_said(tdf),
        drive=drive,
        max_speed=_said(max_speed),
        settings=tuple(f"{field}={_yaml(value)}" for field, value in (settings or {}).items()),
        confirm=confirm,
    )
    request = RunRequest(
        lab=LabText.of(lab) if isinstance(lab, Mapping) else LabText.read(Path(lab)),
        overrides=overrides,
        out=Path(out) if out else None,
        hold_at=None if hold_at is None else _text(hold_at),
        stays=stay,
        max_disk=max_disk,
    )
    return await begin(request, detached=detached)


async def begin(request: RunRequest, *, detached: bool = False) -> AsyncRun:
    """As `start`, of a request."""
    process = launch(request, detached=detached)
    try:
        path = await process.begin()
    except BaseException:
        process.stop()
        await process.wait()
        raise
    if not detached:
        return AsyncRun(path, process)
    await process.leave()
    return AsyncRun(path)


def _clock(state: Clock) -> ClockState:
    return ClockState(state["virtual_s"], state["host_s"], state["tdf"], state["held"])


def _text(at: Instant) -> str:
    return at if isinstance(at, str) else f"{at:.9f}s"


def _said(value: float | str | None) -> str | None:
    return None if value is None else str(value)


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
