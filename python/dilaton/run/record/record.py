"""The run record, `run.json`: making it, writing it, reading it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from pydantic import ValidationError

from dilaton.host.identity import Identity
from dilaton.host.messages import Event
from dilaton.host.port import LEFT_OUT_FILE
from dilaton.lab.parts.expect import parse_expectation
from dilaton.measure.expect import Course, Lasting, evaluate
from dilaton.measure.observation import Observation
from dilaton.measure.operations.history import History
from dilaton.measure.operations.sources import history_of
from dilaton.measure.reasons import Reason, Verdict
from dilaton.measure.verdict import judge, judge_frames
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.together import beside_others
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.model import Guest, Plan, StoredImage
from dilaton.plan.network.bounds import Network, network_of, network_to, on_drive
from dilaton.run.files.directory import RECORD_FILE, last_run_hint, replace_file
from dilaton.run.files.outputs import read_output
from dilaton.run.record import machine
from dilaton.run.record.events import PortReached, TunnelOpened, faults_of
from dilaton.run.record.model import (
    FORMAT,
    Adaptation,
    CheckRecord,
    ClockChange,
    Dilaton,
    Fidelity,
    GuestFidelity,
    GuestRecord,
    Host,
    ImageRecord,
    ProcessRecord,
    ReachedRecord,
    ReasonRecord,
    Record,
    Time,
    VerdictRecord,
    WaitRecord,
)
from dilaton.run.record.observation import NOTHING_BESIDE, Seen, seen_of
from dilaton.run.record.processes import processes_from_events
from dilaton.run.record.programs import NOBODY, Programs, late_ends, programs_of
from dilaton.run.record.states import FINAL_STATES, State

__all__ = ["CheckRecord", "Dilaton", "GuestRecord", "Host", "ProcessRecord", "Record", "RecordError", "State", "Time"]


class RecordError(Exception):
    """A run record cannot be read; the message names the file, what is wrong and what would be right."""


@dataclass
class SoFar:
    """What has become of a run so far.

    Attributes:
        state: Where it is in its life.
        attempts: How often it was begun.
        lab_file: The lab's file; None: it has none.
        settings: What counts instead of what the lab says.
        reason: Why it failed or was aborted.
        lost_machine: The machine of several whose loss ended it.
        boot_host_s: Host seconds until it was ready.
        date_ns: The date at virtual 0, since 1970.
        host_s: Host seconds from the release of the clock to the end.
        virtual_s: Virtual time of the end.
        guest_kernel: Release of the guests' kernel; empty before one has booted.
        guest_kernel_identity: Which kernel that is.
        fidelity: How well virtual time was kept; None as long as it is not over.
        homes: The machine of each guest, in the order of the plan; empty where there is one, or none has booted.
        guests: How well each guest kept it, in the order of the plan; empty as long as it is not over.
        waits: What it cost each guest to keep to the others' time; empty when there is one, or it is not over.
        tdf_trace: What has changed the clock.
        events: What happened, as in `events.jsonl`.
    """

    state: State = "prepare"
    attempts: int = 1
    lab_file: str | None = None
    settings: tuple[str, ...] = ()
    reason: str | None = None
    lost_machine: str | None = None
    boot_host_s: float = 0.0
    date_ns: int = 0
    host_s: float = 0.0
    virtual_s: float = 0.0
    guest_kernel: str = ""
    guest_kernel_identity: Identity = field(default_factory=Identity)
    fidelity: Fidelity | None = None
    homes: Sequence[str] = ()
    guests: list[GuestFidelity] = field(default_factory=list)
    waits: list[WaitRecord] = field(default_factory=list)
    tdf_trace: list[ClockChange] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def make(plan: Plan, so_far: SoFar, run_dir: Path) -> Record:
    """The record of a run as it stands; once the run has ended, with results and checks.

    Args:
        plan: What is run.
        so_far: What has become of it.
        run_dir: Where the outputs are.
    """
    is_over = so_far.state in FINAL_STATES
    reader = (lambda path: read_output(run_dir / path)) if is_over else None
    processes = processes_from_events(plan, so_far.events, reader)
    fidelities: Sequence[GuestFidelity | None] = so_far.guests or [None] * len(plan.guests)
    homes: Sequence[str | None] = so_far.homes or [None] * len(plan.guests)
    waits_of: Sequence[WaitRecord | None] = so_far.waits or [None] * len(plan.guests)
    beside = seen_of(run_dir, so_far.events) if so_far.guests else NOTHING_BESIDE
    verdict = _verdict(plan, so_far, beside, processes)
    return Record(
        lab=plan.lab,
        state=so_far.state,
        reason=so_far.reason,
        lost_machine=so_far.lost_machine,
        attempts=so_far.attempts,
        lab_file=so_far.lab_file,
        settings=list(so_far.settings),
        seed=plan.seed,
        dilaton=machine.program(),
        host=machine.host(so_far.guest_kernel, so_far.guest_kernel_identity),
        time=Time(
            drive=plan.time.drive,
            tdf=_number(plan.time.tdf.ratio),
            virtual_s=so_far.virtual_s,
            host_s=so_far.host_s,
            boot_host_s=so_far.boot_host_s,
        ),
        fidelity=_fidelity(so_far, beside, verdict),
        verdict=verdict,
        guests=[
            GuestRecord(
                name=guest.name,
                memory_bytes=guest.memory_bytes,
                tdf=_number((guest.tdf or plan.time.tdf).ratio),
                clock_rate=_number(guest.clock_rate.ratio),
                machine=home,
                fidelity=fidelity,
                waits=waits,
            )
            for guest, home, fidelity, waits in zip(plan.guests, homes, fidelities, waits_of, strict=True)
        ],
        images=_images(plan),
        from_outside=_from_outside(so_far.events),
        processes=processes,
        checks=evaluate_checks(plan, processes, _course(so_far, processes, plan, run_dir))
        if is_over and so_far.events
        else [],
        left_out=read_output(run_dir / LEFT_OUT_FILE).count("\n") if is_over else 0,
    )


def _images(plan: Plan) -> list[ImageRecord]:
    """The images of a plan, each with its nodes."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in plan.nodes:
        if isinstance(node.image, StoredImage):
            found.setdefault((node.image.name, node.image.digest), []).append(node.name)
    return [ImageRecord(name=name, digest=digest, nodes=nodes) for (name, digest), nodes in found.items()]


def _from_outside(events: Sequence[Event]) -> list[ReachedRecord]:
    """The ports and networks that were reached from outside, in the order in which they were first."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for event in events:
        if isinstance(event, PortReached | TunnelOpened):
            port = event.port if isinstance(event, PortReached) else None
            found.setdefault((event.node, port), []).append(event.t_ns)
    return [
        ReachedRecord(node=node, port=port, connections=len(at_ns), first_s=min(at_ns) / 1e9)
        for (node, port), at_ns in found.items()
    ]


def _fidelity(so_far: SoFar, beside: Seen, verdict: VerdictRecord | None) -> Fidelity | None:
    """The fidelity of the clocks, with what measuring took of the guests' work, and the TDF that would be enough."""
    if (seen := so_far.fidelity) is None:
        return None
    work_s = so_far.virtual_s * sum(guest.busy or 0.0 for guest in so_far.guests)
    if beside.measuring_ns and work_s:
        seen = seen.model_copy(update={"measuring_share": min(1.0, beside.measuring_ns / 1e9 / work_s)})
    if verdict and seen.adaptation:
        needed = max((reason.tdf for reason in verdict.reasons if reason.tdf is not None), default=None)
        seen = seen.model_copy(update={"adaptation": seen.adaptation.model_copy(update={"tdf_needed": needed})})
    return seen


def verdict_at_end(plan: Plan, so_far: SoFar, run_dir: Path) -> VerdictRecord | None:
    """The verdict on a run that has come to its end, as its record will have it; None: it never began."""
    processes = processes_from_events(plan, so_far.events, lambda path: read_output(run_dir / path))
    return _verdict(plan, so_far, seen_of(run_dir, so_far.events), processes)


def _verdict(plan: Plan, so_far: SoFar, beside: Seen, processes: Sequence[ProcessRecord]) -> VerdictRecord | None:
    if not so_far.guests:
        return None
    adaptation = so_far.fidelity.adaptation if so_far.fidelity else None
    programs = programs_of(plan, processes, so_far.guests)
    return judge_fidelity(plan, so_far.guests, so_far.virtual_s, adaptation, beside, programs)


def _course(so_far: SoFar, processes: Sequence[ProcessRecord], plan: Plan, run_dir: Path) -> Course:
    """What expectations of a part of the run are about; outputs are read when one asks for them."""
    outputs = {process.name: process.stdout for process in plan.processes}
    by_name = {process.name: process for process in processes}

    @functools.cache
    def history(name: str) -> History:
        process = by_name[name]
        if process.start_s is None or process.end_s is None:
            return History()
        stdout = read_output(run_dir / outputs[name])
        return history_of(process.argv, stdout, process.start_s, process.end_s, so_far.date_ns / 1e9)

    faults: dict[str, Lasting] = {
        name: (begin_s, so_far.virtual_s if end_s is None else end_s)
        for name, _, begin_s, end_s in faults_of(so_far.events)
    }
    return Course(history, faults)


def evaluate_checks(plan: Plan, processes: Sequence[ProcessRecord], course: Course | None = None) -> list[CheckRecord]:
    """Evaluates the expectations of a plan on what became of its processes."""
    by_name = {process.name: process.model_dump() for process in processes}
    checks = []
    for check in plan.checks:
        passed, value = evaluate(parse_expectation(check.text), by_name, course)
        checks.append(CheckRecord(text=check.text, passed=passed, value=value))
    return checks


def judge_fidelity(
    plan: Plan,
    guests: Sequence[GuestFidelity],
    virtual_s: float,
    adaptation: Adaptation | None,
    beside: Seen,
    programs: Programs = NOBODY,
    networks: Callable[[str], Network] | None = None,
) -> VerdictRecord:
    """The verdict on a run of a plan: that on its worst guest, with the reasons of all of them; it took `virtual_s`.

    `networks` gives what `network_of` says of each guest, for who judges a plan more than once.
    """
    networks = networks or functools.partial(network_of, plan)
    reasons: list[Reason] = []
    watch = plan.time.watch
    is_adaptive = watch is not None and watch.least != watch.most
    tdf = (adaptation and adaptation.tdf_mean) or float(plan.time.tdf.ratio)
    together, lives = beside_others(programs.lives), programs.lives
    slow = {node.name for node in plan.nodes if node.cpu is not None}
    nodes = {guest.name: {node.name for node in plan.nodes if node.guest == guest.name} for guest in plan.guests}
    shortest_life_s = min((life.seconds for life in lives if life.node in slow and not life.is_background), default=0.0)
    for guest, fidelity in zip(plan.guests, guests, strict=True):
        seen = Observation(
            drive=plan.time.drive,
            tdf=tdf if guest.tdf is None else float(guest.tdf.ratio),
            lateness_counts=fidelity.lateness_ns_counts,
            disk_errors=fidelity.disk_errors,
            lateness_max_ns=round(fidelity.lateness_us.max * 1e3),
            virtual_ns=round(virtual_s * 1e9),
            busy=fidelity.busy,
            share_lost=0.0 if programs.shares_filled else _share_lost(fidelity, shortest_life_s),
            busiest_second=fidelity.busiest_second,
            busy_periods=_busy_periods(fidelity),
            waits=_waits(fidelity, sum(process.node in nodes[guest.name] for process in plan.processes)),
            together=together,
            is_filled=programs.filled,
            is_adaptive=is_adaptive,
            own_tdf=_own_tdf(plan, guest),
        )
        where = f"guest {guest.name}: " if len(guests) > 1 else ""
        found = [*judge(networks(guest.name), seen).reasons, *_late_frames(plan, guest, fidelity, seen)]
        reasons += [replace(reason, what=where + reason.what) for reason in found]
    of_the_run = Observation(
        drive=plan.time.drive,
        tdf=tdf,
        virtual_ns=round(virtual_s * 1e9),
        out_share=adaptation.out_of_bounds_share if adaptation else 0.0,
        is_adaptive=is_adaptive,
        packets_dropped=beside.packets_dropped,
        samples_lost=beside.samples_lost,
        captures_ended=beside.captures_ended,
        samplings_ended=beside.samplings_ended,
        spinning=beside.spinning,
        shortages=beside.shortages,
        offered=tuple(programs.sent),
        answered=tuple(programs.answers),
    )
    verdict = Verdict.of([*reasons, *judge(Network(), of_the_run).reasons, *late_ends(programs)])
    return VerdictRecord(level=verdict.level, reasons=[ReasonRecord(**asdict(reason)) for reason in verdict.reasons])


def _share_lost(fidelity: GuestFidelity, shortest_life_s: float) -> float:
    """By how much of its time a program may be late whose node did not get all of its CPU."""
    if (shares := fidelity.shares) is None or not shares.lost_s:
        return 0.0
    return shares.lost_s / max(shares.busy_s + shares.lost_s, shortest_life_s)


def _waits(fidelity: GuestFidelity, starts: int) -> Waits | None:
    seen, busy = fidelity.contention, fidelity.busy_periods
    if seen is None or busy is None:
        return None
    stretches = BusyPeriods(seen.ns_counts, seen.ns_totals, seen.interrupts)
    longest, talkers = ([(each.begin_s * 1e9, each.end_s * 1e9) for each in of] for of in (seen.longest, seen.waits))
    return Waits(stretches, sum(busy.interrupts), seen.jobs_ns_counts, longest, talkers, starts)


def _busy_periods(fidelity: GuestFidelity) -> BusyPeriods | None:
    seen = fidelity.busy_periods
    return None if seen is None else BusyPeriods(seen.ns_counts, seen.ns_totals, seen.interrupts, seen.longest_ns)


def _late_frames(plan: Plan, guest: Guest, fidelity: GuestFidelity, seen: Observation) -> list[Reason]:
    """What the frames that others sent to a guest say about the run."""
    frames = fidelity.frames
    if frames is None:
        return []
    max_ns = round(frames.lateness_us.max * 1e3)
    network = on_drive(network_to(plan, guest.name), plan.time.drive)
    return judge_frames(network, seen, frames.lateness_ns_counts, max_ns)


def _own_tdf(plan: Plan, guest: Guest) -> tuple[str, ...]:
    """See `Observation`."""
    if guest.tdf is None:
        return ()
    nodes = [node.name for node in plan.nodes if node.guest == guest.name]
    return (guest.name, *nodes) if len(nodes) == 1 else (guest.name,)


def _number(tdf: Fraction) -> int | float:
    return int(tdf) if tdf.denominator == 1 else float(tdf)


def write(run_dir: Path, record: Record) -> None:
    """Writes `run.json` so that whatever happens there is the record before or the record after, and whole.

    Raises:
        OSError: it cannot be written, as on a full disk; the record before is then still there.
    """
    replace_file(run_dir / RECORD_FILE, (record.model_dump_json(indent=1) + "\n").encode())


def _without_link(path: str, flags: int) -> int:
    # Nor waiting for somebody, should it be a pipe.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def load(run_dir: Path) -> Record:
    """Reads the record of a run.

    Raises:
        RecordError: there is none, it is damaged, or another version of Dilaton wrote it.
    """
    path = run_dir / RECORD_FILE
    try:
        # Never through a link, put there by a guest.
        with open(path, "rb", opener=_without_link) as file:
            data = json.loads(file.read())
    except FileNotFoundError as error:
        none = f"not a run directory, since it has no {RECORD_FILE}"
        why = none if run_dir.exists() else "there is no such directory"
        raise RecordError(f"{run_dir}: {why}{last_run_hint(run_dir)}") from error
    except NotADirectoryError as error:
        hint = last_run_hint(run_dir)
        raise RecordError(f"{run_dir}: not a directory; a run is named by its run directory{hint}") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: damaged: not JSON: {error}") from error
    written = data.get("format") if isinstance(data, dict) else None
    if not isinstance(written, int):
        raise RecordError(f"{path}: not a run record of Dilaton, since it names no format")
    if written != FORMAT:
        raise RecordError(f"{path}: format {written}; this version of Dilaton reads format {FORMAT}")
    try:
        return Record.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise RecordError(f"{path}: damaged: {field}: {first['msg']}") from error
