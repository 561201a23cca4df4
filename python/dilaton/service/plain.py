"""Runs that go on, for programs without an event loop and for notebooks: as `live.py`, each method waits.

A run that was started here ends with the program that has started it, however that ends.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, ParamSpec

from dilaton.run.control.answers import LinkShown
from dilaton.run.control.happenings import Happening
from dilaton.run.loading import Run
from dilaton.service import live
from dilaton.service.live import AsyncRun, ClockState, FaultState, Instant
from dilaton.service.portal import wait

Options = ParamSpec("Options")


class LiveLink:
    """A link of a run that goes on."""

    def __init__(self, run: AsyncRun, name: str) -> None:
        """Use `LiveRun.link`."""
        self._run = run
        self.name = name

    def show(self) -> LinkShown:
        """See `AsyncRun.show_link`."""
        return wait(self._run.show_link(self.name))

    def set(self, *, at: Instant | None = None, **fields: Any) -> float:
        """See `AsyncRun.set_link`."""
        return wait(self._run.set_link(self.name, at=at, **fields))

    def down(self, *, at: Instant | None = None) -> float:
        """Takes both its interfaces down; as `set`."""
        return self.set(at=at, down=True)

    def up(self, *, at: Instant | None = None) -> float:
        """Takes them up again, with their addresses and routes; as `set`."""
        return self.set(at=at, down=False)


class LiveFault:
    """A fault of a run that goes on."""

    def __init__(self, run: AsyncRun, name: str) -> None:
        """Use `LiveRun.fault`."""
        self._run = run
        self.name = name

    def undo(self) -> float:
        """Undoes it now; returns that virtual instant, seconds."""
        return wait(self._run.undo_faults(self.name))


class LiveRun:
    """A run that goes on. As a context it stops, at the end, the run that was started with it.

    All methods wait until what they ask for is done, and raise `ControlError` when it is refused or the run has ended.
    """

    def __init__(self, run: AsyncRun) -> None:
        """Use `dilaton.start` or `dilaton.attach`."""
        self._run = run

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self._run.path

    def __enter__(self) -> LiveRun:
        """This run."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the run, if it was started here and still goes on."""
        wait(self._run.__aexit__())

    @property
    def clock(self) -> ClockState:
        """The state of the run's clock, now."""
        return wait(self._run.clock())

    def hold(self) -> ClockState:
        """Stops virtual time."""
        return wait(self._run.hold())

    def release(self) -> ClockState:
        """Lets it go on."""
        return wait(self._run.release())

    def until(self, at: Instant) -> ClockState:
        """Lets it go on to exactly `at`, and holds it there."""
        return wait(self._run.until(at))

    def step(self) -> ClockState:
        """Lets it go on to the guests' next timer, and holds it there."""
        return wait(self._run.step())

    def set_tdf(self, tdf: float | str) -> ClockState:
        """Changes the TDF."""
        return wait(self._run.set_tdf(tdf))

    def suspend(self) -> None:
        """Puts the run away: virtual time stands still, memory of guests is on disk, their cores are free."""
        wait(self._run.suspend())

    def resume(self) -> ClockState:
        """Goes on where it was put away."""
        return wait(self._run.resume())

    def link(self, name: str) -> LiveLink:
        """A link by its ends, as `a--b` or `a:eth0--b:eth1`; a segment by all of its nodes."""
        return LiveLink(self._run, wait(self._run.link_name(name)))

    @property
    def links(self) -> list[str]:
        """The names of all links."""
        return wait(self._run.links())

    def fault(self, fault: Mapping[str, Any]) -> LiveFault:
        """Begins a fault, now; see `AsyncRun.begin_fault`."""
        begun = wait(self._run.begin_fault(fault))
        if len(begun) == 1:
            return LiveFault(self._run, begun[0].name)
        # Of several things, or drawn several times: `chaos-1-1`, `chaos-1-2`, `chaos-2`.
        parts = zip(*(one.name.split("-") for one in begun), strict=False)
        return LiveFault(self._run, "-".join(part[0] for part in takewhile(lambda part: len(set(part)) == 1, parts)))

    @property
    def faults(self) -> list[FaultState]:
        """All faults, those of the lab and those by hand, and what has become of them."""
        return wait(self._run.faults())

    def follow(self) -> Iterator[Happening]:
        """All that has happened in the run, and all that happens from now on, up to its end."""
        happenings = self._run.follow()
        try:
            while (happening := wait(_next(happenings))) is not None:
                yield happening
        finally:
            wait(happenings.aclose())

    def execute(self, node: str, command: str | Sequence[str]) -> CompletedProcess[str]:
        """Executes a command in a node, a shell's if it is one text, and returns what it printed and its status."""
        return wait(self._run.execute(node, command))

    def result(self) -> Run:
        """What there is of the run so far, or in the end: tables, events, outputs, as of `dilaton.load`."""
        return self._run.result()

    def stop(self) -> Run:
        """Ends the run in good order, and waits for that."""
        return wait(self._run.stop())

    def wait(self) -> Run:
        """Waits for the end of the run, whose clock must not be held for ever; returns what it has measured."""
        return wait(self._run.wait())


async def _next(happenings: AsyncGenerator[Happening, None]) -> Happening | None:
    return await anext(happenings, None)


def _waited(begun: Callable[Options, Coroutine[Any, Any, AsyncRun]]) -> Callable[Options, LiveRun]:
    @functools.wraps(begun)
    def waiting(*arguments: Options.args, **options: Options.kwargs) -> LiveRun:
        return LiveRun(wait(begun(*arguments, **options)))

    return waiting


attach = _waited(live.attach)
begin = _waited(live.begin)
start = _waited(live.start)
