"""Execute a plan on this machine.

```text
prepare ──► boot ──► ready ──► running ──► collecting ──► finished
   the directory  kernel,   clock held,   clock        clock held,   │ failed    something went wrong, and why
                  nodes,    schedule      released     outputs read  │ aborted   somebody ended it
                  links     armed
```

Every state is written to `run.json` when it begins. Whatever ends a run, an exception included, ends the guests with
it: `Guests.close` kills the jails, and everything in a jail lives in its process and mount namespaces.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dilaton.host.errors import GuestError, HostLacksError, MachineLostError
from dilaton.host.messages import Event, Finished, FromAgent, OfUpdate, Stop
from dilaton.host.orders import REPEATABLE_DATE_NS
from dilaton.host.port import Guests, Machine
from dilaton.host.tasks import beside, unless, within
from dilaton.plan.model import Plan
from dilaton.plan.network.bounds import network_of
from dilaton.run import machines
from dilaton.run.adaptive.ledger import Span
from dilaton.run.adaptive.meter import watched
from dilaton.run.adaptive.retry import ATTEMPTS_MAX, replanned
from dilaton.run.adaptive.watch import Watch, explain
from dilaton.run.control import requests, verbs
from dilaton.run.control.answers import Done, GuestShown, RunState, Status
from dilaton.run.control.requests import Handler
from dilaton.run.control.status import guests_shown, status
from dilaton.run.control.verbs import Nothing
from dilaton.run.files import disk_use
from dilaton.run.files.clock_log import log_clock
from dilaton.run.files.directory import PLAN_FILE, RunDir
from dilaton.run.files.event_log import EventLog
from dilaton.run.files.verdict_log import VERDICTS_FILE, Stood, log_verdicts
from dilaton.run.getting_on import WINDOW_HOST_S, GettingOn, name_spinning
from dilaton.run.observer import Observer, RunClock
from dilaton.run.record import record as records
from dilaton.run.record.fidelity import Tally, together
from dilaton.run.record.model import ClockChange, GuestFidelity, VerdictRecord
from dilaton.run.record.observation import seen_so_far
from dilaton.run.record.record import Record, SoFar, State
from dilaton.run.record.wires import broken_promise, waits_of
from dilaton.run.source import Source
from dilaton.run.steering.clock import ClockControl
from dilaton.run.steering.faults import FaultControl
from dilaton.run.steering.feed import Feed
from dilaton.run.steering.links import LinkControl
from dilaton.run.steering.saving import SaveControl
from dilaton.run.steering.sessions import SessionControl
from dilaton.run.steering.steered import Steered
from dilaton.run.steering.suspending import SuspendControl
from dilaton.run.steering.updates import Updates

PROMISE_LOOK_HOST_S = 0.5
"""How often it is looked whether wires between guests have kept what they promise."""

STOP_LOOK_HOST_S = 0.1
"""How often an interrupted run is looked at."""

STOP_HOST_S_MAX = 10.0
"""The time in which an interrupted run may end its processes in good order, before its guests are ended as they are.
Not virtual time, which may pass as slowly as the TDF says, nor for as long as it gets on: who interrupts a run wants
its end."""


@dataclass(frozen=True)
class Options:
    """How a plan is executed, where it does not change what happens in virtual time.

    Attributes:
        jailed: False only when the user has asked for no jail in so many words.
        hold_at_ns: the virtual instant at which the run holds its clock until it is told to go on; None for none.
        disk_bytes: that the run directory may take; None: half of what is free there.
        machine: where.
        patience_host_s: for how long the run may not get on before it says so, seconds of the host.
    """

    jailed: bool = True
    hold_at_ns: int | None = None
    disk_bytes: int | None = None
    machine: Machine = field(default_factory=machines.chosen)
    patience_host_s: float = WINDOW_HOST_S


async def execute(
    plan: Plan, source: Source, run_dir: RunDir, observer: Observer, options: Options, *, stop: asyncio.Event
) -> Record:
    """Runs `plan` and returns its record, which is also in `run.json`.

    Args:
        plan: what to run.
        source: its lab, whose text is kept in the run directory.
        run_dir: where everything goes.
        observer: told of what happens.
        options: how.
        stop: set to end the run early, in good order; the run is then `aborted`, unless it stays and has no other end.

    Raises:
        HostLacksError: this machine lacks something that the run needs; the record says what.
    """
    feed = Feed(observer)
    handlers: dict[str, Handler] = feed.handlers
    # Until the last record is written, so that who waits for the end of the run finds that.
    async with contextlib.AsyncExitStack() as stack:
        for attempt in itertools.count(1):
            run = _Run(plan, source, run_dir, feed, options, stop, handlers)
            run.so_far.attempts = attempt
            try:
                if attempt > 1:
                    run_dir.set_aside(attempt - 1)
                run_dir.write("lab.yaml", source.text)
                run_dir.write(PLAN_FILE, plan.model_dump_json(indent=1))
                if attempt == 1:
                    await stack.enter_async_context(requests.serve(run_dir.path, handlers))
                    stack.push_async_callback(feed.close)
                await run.live()
            except (GuestError, OSError) as error:
                if isinstance(error, MachineLostError):
                    run.so_far.lost_machine = error.machine
                run.break_off(str(error))
            except HostLacksError as error:
                run.fail(str(error))
                run.conclude()
                raise
            may_retry = attempt < ATTEMPTS_MAX and not stop.is_set()
            again = replanned(plan, run.violation) if run.violation and may_retry else None
            record = run.conclude()
            if again is None or record.state != "failed":
                break
            plan = again
            feed.begun_again(record.reason or "", plan)
    return record


class _Run:
    def __init__(
        self,
        plan: Plan,
        source: Source,
        run_dir: RunDir,
        observer: Observer,
        options: Options,
        stop: asyncio.Event,
        handlers: dict[str, Handler],
    ) -> None:
        self.plan = plan
        self.source = source
        self.run_dir = run_dir
        self.observer = observer
        self.options = options
        self.stop = stop
        file = str(source.file.resolve()) if source.file else None
        self.so_far = SoFar(lab_file=file, settings=source.settings)
        self.is_repeatable = plan.time.drive == "event"
        self.networks = functools.cache(functools.partial(network_of, plan))
        self.steering: ClockControl | None = None
        self.suspending: SuspendControl | None = None
        self.watch: Watch | None = None
        self.getting_on: GettingOn | None = None
        self.violation: Span | None = None
        """The violation for which the run was ended."""
        self.handlers = handlers
        """What can be asked of the run, by verb; the parts of it that come up add theirs."""
        handlers |= verbs.SHOW.by(self.on_show) | verbs.STOP.by(self.on_stop)

    def enter(self, state: State) -> None:
        self.so_far.state = state
        self.so_far.reason = f"not over yet; if process {os.getpid()} is gone, it was killed in this state"
        self.write_record()
        self.observer.state(state)

    def write_record(self) -> None:
        records.write(self.run_dir.path, self.record())

    def fail(self, reason: str) -> None:
        self.so_far.state, self.so_far.reason = "failed", reason

    def break_off(self, reason: str) -> None:
        """It cannot go on, for `reason` or because it was to end."""
        if self.stop.is_set():
            self.interrupted()
        else:
            self.fail(reason)

    def interrupted(self) -> None:
        """Somebody has ended it, perhaps as it did not get on."""
        notice = self.getting_on.notice if self.getting_on else None
        self.so_far.state = "aborted"
        self.so_far.reason = f"interrupted; virtual time {notice}" if notice else "interrupted"

    async def live(self) -> None:
        self.enter("prepare")
        begin = time.monotonic()
        self.enter("boot")
        disk_bytes = self.options.disk_bytes or disk_use.limit_of(self.run_dir.path)
        booting = self.options.machine.boot(
            self.plan,
            self.run_dir.path,
            jailed=self.options.jailed,
            disk_bytes=disk_bytes,
            progress=self.observer.progress,
        )
        guests = await unless(self.stop, booting)
        if guests is None:
            self.so_far.state, self.so_far.reason = "aborted", "interrupted while booting"
            return
        try:
            self.so_far.homes = guests.homes()
            self.so_far.guest_kernel = guests.all[0].kernel
            self.so_far.guest_kernel_identity = guests.identity()
            self.so_far.boot_host_s = time.monotonic() - begin
            self.enter("ready")
            await self.run(guests, disk_bytes)
        finally:
            await guests.close()

    async def run(self, guests: Guests, disk_bytes: int) -> None:
        self.so_far.date_ns = REPEATABLE_DATE_NS if self.is_repeatable else time.time_ns()
        await guests.arm(self.so_far.date_ns)
        tally = Tally(guests.all)
        finished = await self.conduct(guests, tally, disk_bytes)
        await guests.stop_clocks()
        self.so_far.virtual_s = max(message.t_ns for message in finished) / 1e9
        self.so_far.guests = tally.seen()
        adaptation = self.watch.summary() if self.watch else None
        self.so_far.fidelity = together(self.so_far.guests, self.so_far.tdf_trace, adaptation)
        if wires := guests.wires():
            self.so_far.waits = waits_of(wires)
        self.enter("collecting")
        await guests.halt()
        # Not before: a guest whose clock stands may still be receiving what has arrived.
        wires = guests.wires()
        self.judge(finished, broken_promise(self.plan, wires, is_over=True) if wires else None)

    async def conduct(self, guests: Guests, tally: Tally, disk_bytes: int) -> list[Finished]:
        """Releases the clocks and follows the run to its end: the last message of each agent."""
        released_ns = time.monotonic_ns()

        def clock() -> RunClock:
            return self.clock(guests, released_ns)

        steering = self.steering = ClockControl(guests, self.plan.time, self.clock_changed, stays=self.plan.stays)
        self.getting_on = GettingOn(
            self.plan,
            guests,
            self.so_far.events,
            lambda: steering.tdf,
            steering.note,
            self.options.patience_host_s,
        )
        updates = Updates(self.run_dir, guests.all)
        steered = Steered(self.source.lab, self.plan, updates, steering, clock)
        links = LinkControl(steered)
        faults = FaultControl(steered, links)
        log = EventLog(self.run_dir.path / "events.jsonl", self.so_far.events, self.observer.event)
        sessions = self.session_control(guests, steering, log, clock)

        def loads() -> list[GuestShown]:
            names = [guest.name for guest in guests.all]
            return guests_shown(names, self.so_far.homes, tally.counted(), guests.wires())

        async def on_status(asked: Nothing) -> Status:
            run, seen = await self.on_show(asked), tally.seen()
            return status(run, self.plan, self.so_far.events, seen, self.standing(seen, clock().virtual_ns), loads())

        def standing() -> Stood:
            now = clock()
            return Stood(now.virtual_ns, now.host_ns, self.standing(tally.seen(), now.virtual_ns), loads())

        async def follow() -> list[Finished]:
            try:
                return await self.follow(guests, updates, links, faults, log)
            finally:
                await sessions.close()

        saving = SaveControl(self.source, steering, lambda: links.asked, guests.disks, self.write_record)
        of_parts = steering.handlers | links.handlers | faults.handlers | sessions.handlers | saving.handlers
        suspending = self.suspending = SuspendControl(guests, steering)
        while_running = suspending.guarding(of_parts) | suspending.handlers | verbs.STATUS.by(on_status)
        self.handlers |= while_running
        await steering.start(self.options.hold_at_ns)
        self.enter("running")
        self.observer.released(clock)
        try:
            with log:
                finished = await beside(
                    follow(),
                    self.keep_watch(guests, steering),
                    self.stop_when_asked(guests),
                    *([name_spinning(guests)] if self.is_repeatable else []),
                    self.getting_on.follow(),
                    self.hold_promises(guests),
                    disk_use.keep_below(disk_bytes, self.run_dir.path),
                    tally.follow(),
                    log_clock(self.run_dir.path / "clock.csv", clock),
                    log_verdicts(self.run_dir.path / VERDICTS_FILE, standing),
                )
        finally:
            self.observer.stopped()
            steering.close()
            for verb in while_running:
                del self.handlers[verb]
            self.so_far.host_s = (time.monotonic_ns() - released_ns) / 1e9
            # Agents that are gone, or do not come to it, no longer say how far they got.
            self.so_far.virtual_s = max(0, clock().virtual_ns) / 1e9
            log.sort()
        return finished

    def standing(self, guests: Sequence[GuestFidelity], virtual_ns: int) -> VerdictRecord | None:
        """The verdict if the run ended now, but for what only results of programs and tables of samples say.

        None in the first virtual second, which programs that start keep busy.
        """
        if (seconds := virtual_ns / 1e9) < 1:
            return None
        adaptation = self.watch.summary() if self.watch else None
        beside = seen_so_far(self.so_far.events)
        return records.judge_fidelity(self.plan, guests, seconds, adaptation, beside, networks=self.networks)

    async def keep_watch(self, guests: Guests, steering: ClockControl) -> None:
        """Watches the run, if that was asked for, and acts on violations as the lab says."""
        planned = self.plan.time.watch
        if planned is None:
            return

        async def violated(span: Span) -> None:
            if planned.on_violation == "continue":
                steering.note(explain(span))
            elif planned.on_violation == "hold":
                await steering.hold(explain(span))
            else:
                self.violation = span
                await guests.send(Stop(reason=explain(span)))

        following = watched(self.plan, guests.all)
        self.watch = Watch(following, self.plan.time, network_of(self.plan))
        # A guest that has ended is told by whoever waits for its events.
        with contextlib.suppress(GuestError):
            await self.watch.follow(self.run_dir.path / "epochs.csv", steering, violated)

    def clock(self, guests: Guests, released_ns: int) -> RunClock:
        now_ns, is_held = guests.look()
        # At the end that it was given the clock stands too, though its line would go on.
        tdf = None if is_held else guests.pace()
        late_ns = max(guest.counters().timers.max_ns for guest in guests.all)
        return RunClock(now_ns, time.monotonic_ns() - released_ns, tdf, late_ns)

    def session_control(
        self, guests: Guests, steering: ClockControl, log: EventLog, clock: Callable[[], RunClock]
    ) -> SessionControl:
        numbers = {guest.name: number for number, guest in enumerate(self.plan.guests)}
        guest_of = {node.name: numbers[node.guest] for node in self.plan.nodes}
        return SessionControl(guest_of, [guest.streams for guest in guests.all], steering, log.add, clock)

    async def follow(
        self, guests: Guests, updates: Updates, links: LinkControl, faults: FaultControl, log: EventLog
    ) -> list[Finished]:
        """Takes the agents' events and answers until all have finished."""

        def told(guest: int, message: FromAgent | Event) -> None:
            match message:
                case Event():
                    faults.heard(message)
                    log.add(guest, links.explained(message))
                case OfUpdate():
                    if steered := updates.answered(message):
                        log.add(guest, steered)
                case _:
                    raise GuestError(f"guest {guests.all[guest].name} said {message.tag} while running")

        return await guests.follow(told)

    async def hold_promises(self, guests: Guests) -> None:
        """Ends a run of which no result is worth anything any more.

        Raises:
            GuestError: A frame between guests was late or out of order.
        """
        while wires := guests.wires():
            if broken := broken_promise(self.plan, wires, is_over=False):
                raise GuestError(broken)
            await asyncio.sleep(PROMISE_LOOK_HOST_S)

    async def stop_when_asked(self, guests: Guests) -> None:
        """Ends the run in good order when asked, and at once when that takes too long."""
        await self.stop.wait()
        if self.suspending:
            await self.suspending.bring_back()
        with contextlib.suppress(TimeoutError):
            await within(STOP_HOST_S_MAX, self._stopped(guests))
        guests.kill()

    async def _stopped(self, guests: Guests) -> None:
        # Before the clock goes on: one that was held would be at the end of all sleeps before it is told to stop.
        await guests.send(Stop(reason="interrupted"))
        if self.steering:
            # Processes need virtual time to end in good order. A guest that spins does not hear it.
            with contextlib.suppress(GuestError):
                await self.steering.release("stopping")
        while not any(guest.is_stopped() for guest in guests.all):
            await asyncio.sleep(STOP_LOOK_HOST_S)

    def judge(self, finished: list[Finished], broken: str | None) -> None:
        """Says what has become of a run that came to its end, by the agents' last messages and what Dilaton broke."""
        failed = [message for message in finished if message.outcome == "failed"]
        if broken:
            self.fail(broken)
        elif self.stop.is_set() and not self.plan.stays:
            self.interrupted()
        elif violation := self.violation or self.final_violation():
            self.violation = violation
            self.fail(explain(violation))
        elif failed:
            self.fail(failed[0].reason)
        else:
            self.so_far.state, self.so_far.reason = "finished", None

    def final_violation(self) -> Span | None:
        """The violation for which a run that has ended does not count, where the lab does not let violations pass."""
        planned = self.plan.time.watch
        if not self.watch or not planned or planned.on_violation not in ("fail", "retry"):
            return None
        verdict = records.verdict_at_end(self.plan, self.so_far, self.run_dir.path)
        return self.watch.last_due(verdict) if verdict else None

    def clock_changed(self, change: ClockChange) -> None:
        self.so_far.tdf_trace.append(change)
        self.observer.clock_changed(change)

    async def on_show(self, _: Nothing) -> RunState:
        """What the run is, and how far it has come."""
        return RunState(
            lab=self.plan.lab,
            lab_file=self.so_far.lab_file,
            run_dir=str(self.run_dir.path),
            pid=os.getpid(),
            state=self.so_far.state,
            suspended=self.suspending is not None and self.suspending.is_suspended,
            notice=self.getting_on.notice if self.getting_on else None,
            clock=self.steering.state() if self.steering else None,
            date_ns=self.so_far.date_ns or None,
        )

    async def on_stop(self, _: Nothing) -> Done:
        """Ends the run in good order."""
        self.stop.set()
        return Done()

    def record(self) -> Record:
        return records.make(self.plan, self.so_far, self.run_dir.path)

    def conclude(self) -> Record:
        """Writes the last record, in the place that was kept for it."""
        if self.so_far.state != "aborted" and self.run_dir.is_full():
            # Whatever else went wrong, this is why.
            self.fail(f"the disk of {self.run_dir.path} is full: outputs are incomplete")
        self.run_dir.free_reserve()
        record = self.record()
        records.write(self.run_dir.path, record)
        self.observer.state(record.state)
        return record
