"""Execute a plan on this machine.

```text
prepare ──► boot ──► ready ──► running ──► collecting ──► finished
   the directory  kernel,   clock held,   clock        clock held,   │ failed    something went wrong, and why
                  nodes,    schedule      released     outputs read  │ aborted   somebody ended it
                  links     armed
```

Every state is written to `run.json` when it begins. Whatever ends a run, an exception included, ends the guest with it:
`Guest.close` kills the jail, and everything in the jail lives in its process and mount namespaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TextIO, TypeVar

from dilaton.host.clock_page import ClockPage
from dilaton.host.errors import GuestError
from dilaton.host.guest import REPEATABLE_DATE_NS, Guest, Placement
from dilaton.measure.lateness import summarise
from dilaton.plan.model import Plan
from dilaton.run import control
from dilaton.run import record as records
from dilaton.run.clock_control import ClockControl
from dilaton.run.clock_log import log_clock
from dilaton.run.control import Handler, Request, Result
from dilaton.run.directory import RunDir
from dilaton.run.model import ClockChange, Fidelity, LatenessRecord
from dilaton.run.record import Record, State

Awaited = TypeVar("Awaited")

STOP_HOST_S_MAX = 15.0
"""Host seconds that an interrupted run has to stop its processes before its guest is ended as it is."""


@dataclass(frozen=True)
class Options:
    """How a plan is executed, where it does not change what happens in virtual time.

    Attributes:
        jailed: False only when the user has asked for no jail in so many words.
        hold_at_ns: the virtual instant at which the run holds its clock until it is told to go on; None for none.
    """

    jailed: bool = True
    hold_at_ns: int | None = None


class Observer(Protocol):
    """Who watches a run; the command line's live display is one."""

    def state(self, state: State) -> None:
        """The run has entered `state`."""

    def progress(self, done: int, total: int, what: str) -> None:
        """While building: so many of `what` are up."""

    def released(self, clock: Callable[[], RunClock]) -> None:
        """The clock is released; `clock` reads it from now on."""

    def event(self, event: dict[str, Any]) -> None:
        """Something happened, as in `events.jsonl`."""

    def clock_changed(self, change: ClockChange) -> None:
        """The clock was released, held, or got another pace."""


@dataclass(frozen=True)
class RunClock:
    """Both clocks of a run, nanoseconds since its virtual 0 (host: since the release)."""

    virtual_ns: int
    host_ns: int
    tdf: Fraction | None
    lateness_ns_max: int


@dataclass
class _Progress:
    """What has become of a run so far."""

    state: State = "prepare"
    reason: str | None = None
    boot_host_s: float = 0.0
    host_s: float = 0.0
    virtual_s: float = 0.0
    guest_kernel: str = ""
    fidelity: Fidelity | None = None
    tdf_trace: list[ClockChange] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


async def execute(
    plan: Plan, lab_text: str, run_dir: RunDir, observer: Observer, options: Options, *, stop: asyncio.Event
) -> Record:
    """Runs `plan` and returns its record, which is also in `run.json`.

    Args:
        plan: what to run.
        lab_text: the lab as it was given, kept in the run directory.
        run_dir: where everything goes.
        observer: told of what happens.
        options: how.
        stop: set to end the run early, in good order; the run is then `aborted`.
    """
    run = _Run(plan, run_dir, observer, options, stop)
    try:
        run_dir.write("lab.yaml", lab_text)
        run_dir.write("plan.json", plan.model_dump_json(indent=1))
        async with control.serve(run_dir.path, run.handlers):
            await run.live()
    except (GuestError, OSError) as error:
        run.fail(str(error))
    return run.conclude()


class _Run:
    def __init__(self, plan: Plan, run_dir: RunDir, observer: Observer, options: Options, stop: asyncio.Event) -> None:
        self.plan = plan
        self.run_dir = run_dir
        self.observer = observer
        self.options = options
        self.stop = stop
        self.so_far = _Progress()
        self.is_repeatable = plan.time.drive == "event"
        self.steering: ClockControl | None = None
        self.handlers: dict[str, Handler] = {"show": self.on_show, "stop": self.on_stop}
        """What can be asked of the run, by verb; the parts of it that come up add theirs."""

    def enter(self, state: State) -> None:
        self.so_far.state = state
        self.so_far.reason = f"not over yet; if process {os.getpid()} is gone, it was killed in this state"
        records.write(self.run_dir.path, self.record())
        self.observer.state(state)

    def fail(self, reason: str) -> None:
        self.so_far.state, self.so_far.reason = "failed", reason

    async def live(self) -> None:
        self.enter("prepare")
        begin = time.monotonic()
        self.enter("boot")
        guest_plan = self.plan.guests[0]
        placement = Placement(self.run_dir.path, self.options.jailed)
        seed = self.plan.seed if self.is_repeatable else None
        guest = await _unless(self.stop, Guest.start(guest_plan.name, guest_plan.memory_bytes, placement, seed))
        if guest is None:
            self.so_far.state, self.so_far.reason = "aborted", "interrupted while booting"
            return
        try:
            self.so_far.guest_kernel = guest.kernel
            if await _unless(self.stop, self.build(guest)) is None:
                self.so_far.state, self.so_far.reason = "aborted", "interrupted while building"
                return
            self.so_far.boot_host_s = time.monotonic() - begin
            self.enter("ready")
            await self.run(guest)
        finally:
            await guest.close()

    async def build(self, guest: Guest) -> bool:
        await guest.build(self.observer.progress)
        return True

    async def run(self, guest: Guest) -> None:
        zero_ns = await guest.arm(REPEATABLE_DATE_NS if self.is_repeatable else time.time_ns())
        before = _Counters.of(guest.page)
        released_ns = time.monotonic_ns()
        self.steering = ClockControl(guest, zero_ns, self.plan.time, self.clock_changed)
        self.handlers |= self.steering.handlers
        await self.steering.start(self.options.hold_at_ns)
        self.enter("running")
        self.observer.released(lambda: self.clock(guest, zero_ns, released_ns))
        stopper = asyncio.create_task(self.stop_when_asked(guest))
        logger = asyncio.create_task(
            log_clock(self.run_dir.path / "clock.csv", lambda: self.clock(guest, zero_ns, released_ns))
        )
        try:
            with (self.run_dir.path / "events.jsonl").open("w", buffering=1) as log:
                finished = await self.follow(guest, log)
        except GuestError as error:
            now_s = max(0, guest.virtual_ns() - zero_ns) / 1e9
            raise GuestError(f"{error}, at {now_s:.6f} virtual seconds") from error
        finally:
            stopper.cancel()
            logger.cancel()
            # Its last row is read off the clock page, which goes with the guest.
            await asyncio.wait({logger})
            self.steering.close()
            for verb in self.steering.handlers:
                del self.handlers[verb]
            self.so_far.host_s = (time.monotonic_ns() - released_ns) / 1e9
        await guest.hold()
        self.so_far.virtual_s = finished["t_ns"] / 1e9
        self.so_far.fidelity = _fidelity(guest.page, before, self.so_far.tdf_trace)
        self.enter("collecting")
        await guest.halt()
        self.judge(finished)

    def clock(self, guest: Guest, zero_ns: int, released_ns: int) -> RunClock:
        host_ns = time.monotonic_ns()
        late = guest.page.read("lateness_max_ns")
        virtual_ns = max(0, guest.page.virtual_ns(host_ns) - zero_ns)
        return RunClock(virtual_ns, host_ns - released_ns, guest.page.timeline().tdf, late)

    async def follow(self, guest: Guest, log: TextIO) -> dict[str, Any]:
        """Takes the agent's events until it has finished."""
        while (message := await guest.receive())["type"] != "finished":
            if message["type"] != "event":
                raise GuestError(f"guest {guest.name} said {message['type']} while running")
            event = {name: value for name, value in message.items() if name != "type"}
            self.so_far.events.append(event)
            self.observer.event(event)
            log.write(json.dumps(event) + "\n")
        return message

    async def stop_when_asked(self, guest: Guest) -> None:
        """Ends the run in good order when asked, and at once when that takes too long."""
        await self.stop.wait()
        if self.steering:
            # Processes need virtual time to end in good order. A guest that spins does not hear it.
            with contextlib.suppress(GuestError):
                await self.steering.release("stopping")
        await guest.channel.send({"type": "stop", "reason": "interrupted"})
        await asyncio.sleep(STOP_HOST_S_MAX)
        guest.process.kill()

    def judge(self, finished: dict[str, Any]) -> None:
        if self.stop.is_set():
            self.so_far.state, self.so_far.reason = "aborted", "interrupted"
        elif finished["outcome"] == "failed":
            self.fail(finished["reason"])
        else:
            self.so_far.state, self.so_far.reason = "finished", None

    def clock_changed(self, change: ClockChange) -> None:
        self.so_far.tdf_trace.append(change)
        self.observer.clock_changed(change)

    async def on_show(self, _: Request) -> Result:
        """What the run is, and how far it has come."""
        found = {
            "lab": self.plan.lab,
            "run_dir": str(self.run_dir.path),
            "pid": os.getpid(),
            "state": self.so_far.state,
        }
        return found | (self.steering.state() if self.steering else {})

    async def on_stop(self, _: Request) -> Result:
        """Ends the run in good order."""
        self.stop.set()
        return {}

    def record(self) -> Record:
        return records.make(self.plan, self.so_far, self.run_dir.path)

    def conclude(self) -> Record:
        """Writes the last record, in the place that was kept for it."""
        if self.stop.is_set():
            if self.so_far.state == "failed":
                self.so_far.state, self.so_far.reason = "aborted", "interrupted"
        elif self.run_dir.is_full():
            # Whatever else went wrong, this is why.
            self.fail(f"the disk of {self.run_dir.path} is full: outputs are incomplete")
        self.run_dir.free_reserve()
        record = self.record()
        records.write(self.run_dir.path, record)
        self.observer.state(record.state)
        return record


@dataclass(frozen=True)
class _Counters:
    """Counters of the clock page at some moment."""

    reads: int
    virtual_ns: int
    idle_virtual_ns: int

    @classmethod
    def of(cls, page: ClockPage) -> _Counters:
        return cls(page.read("reads"), page.read("virtual_now_ns"), page.read("idle_virtual_ns"))


def _fidelity(page: ClockPage, before: _Counters, tdf_trace: list[ClockChange]) -> Fidelity:
    """What the clock has seen since its release, when its counters were as in `before`."""
    now = _Counters.of(page)
    counts = page.lateness_counts()
    late = summarise(counts, page.read("lateness_max_ns"))
    passed_ns = now.virtual_ns - before.virtual_ns
    idle_ns = now.idle_virtual_ns - before.idle_virtual_ns
    busy = min(1.0, max(0.0, 1 - idle_ns / passed_ns)) if passed_ns else None
    return Fidelity(
        lateness_us=LatenessRecord(
            p50=late.p50_ns / 1e3, p99=late.p99_ns / 1e3, p999=late.p999_ns / 1e3, max=late.max_ns / 1e3
        ),
        timers=late.timers,
        reads=now.reads - before.reads,
        lateness_ns_counts=counts,
        busy=busy,
        tdf_trace=tdf_trace,
    )


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, Awaited]) -> Awaited | None:
    """The result of `work`, or None, with `work` cancelled, if `stop` is set before."""
    task, asked = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if task.done():
        return task.result()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return None
