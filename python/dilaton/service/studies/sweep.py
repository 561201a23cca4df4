"""A sweep: many runs of one lab, and what they show together.

Each run is a process of its own: it takes its own core, and one that fails fails alone. What is done is told by its run
record, so a sweep that was interrupted goes on with the rest. When whoever sweeps dies, however that happens, the runs
are told to end in good order by the kernel.

Over hosts, each run is a run over one of them, or over as many as it is to have: it is conducted here, where what it
leaves is gathered, and its guests are there. Machines of an engine are the engine's to divide among runs. A run that
lost a machine is run again, with the same seed, wherever there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.here.doctor.doctor import require
from dilaton.lab.errors import LabError
from dilaton.lab.parts.fidelity import Confirm, Fidelity
from dilaton.lab.settings import parse_setting
from dilaton.measure.numbers import counted
from dilaton.measure.results.fairness import FAIRNESS
from dilaton.plan.model import Plan
from dilaton.run import machines
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import SWEEP_FILE, SWEEPS, replace_file
from dilaton.run.points import Labels, Point, points
from dilaton.run.record import record as records
from dilaton.run.record.record import RecordError
from dilaton.service.errors import RequestError, refusing
from dilaton.service.launch import RunProcess, launch
from dilaton.service.prepare import disk_bytes, prepare, refuse_division
from dilaton.service.request import Engine, LabText, Overrides, RunRequest, Value
from dilaton.service.studies.places import ENDLESS, HERE, NoPlaceError, Places, Room
from dilaton.service.tidings import Ended

ATTEMPTS_MAX = 3
"""How often a run is begun whose machines are lost."""

Values = dict[str, list[str]]
"""The values of each field, in the order in which they are swept."""


class SweepRequest(Value):
    """A sweep that is wanted.

    Attributes:
        lab: What is run.
        fields: Each as PATH=A,B,C: a field of the lab and its values.
        repeat: Runs of each combination, each with its own seed.
        jobs: Runs side by side; None: one, or as many as hosts have room for.
        out: The directory; None: `sweeps/<lab>`.
        confirm: Whether its runs are confirmed, as `Overrides` has it; None: as the lab says.
        max_disk: What each run's directory may take, as `RunRequest` has it.
        labels: Each as NAME=TEXT: what a field, or a number that is measured, is called in tables and figures.
        onto: The hosts that have the guests of runs; empty: machines of `engine`.
        machines: Over how many each run is spread; as `RunRequest` has it.
        engine: What machines are had from; as `RunRequest` has it.
    """

    lab: LabText
    fields: tuple[str, ...]
    repeat: int = 1
    jobs: int | None = None
    out: Path | None = None
    confirm: Confirm | None = None
    max_disk: str | None = None
    labels: tuple[str, ...] = ()
    onto: tuple[str, ...] = ()
    machines: int = 1
    engine: Engine = "local"


@dataclass(frozen=True)
class HostLost:
    """A host cannot be used any more; runs that were there go elsewhere."""

    name: str
    why: str


@dataclass(frozen=True)
class PointAgain:
    """A run was lost with a machine, and is to be run again."""

    point: Point
    why: str


@dataclass(frozen=True)
class PointEnded:
    """A run of a sweep is over.

    Attributes:
        number: Which of those that were waiting, from 1.
        point: Its values.
        why: Why it did not go well, in a line; empty: it did.
        log: Where it says more.
        was_interrupted: Whether the sweep was.
        hosts: Where it was; none: on this machine, or an engine's.
    """

    number: int
    point: Point
    why: str
    log: Path
    was_interrupted: bool
    hosts: tuple[str, ...] = ()


Happened = PointEnded | PointAgain | HostLost
"""What a sweep tells while it goes on."""


@dataclass(frozen=True)
class Concluded:
    """What a sweep came to.

    Attributes:
        table: The file with a row for each run.
        figures: How many figures are beside it.
        runs: How many runs the table has.
        doubted: How many of them have each verdict that is not valid.
        lost: Runs whose records cannot be read, and why.
        is_well: Whether all runs finished and all their checks passed.
        heads, means: Of what is asked for, as of `Swept.said`; nothing, where nothing is.
        page: The report of all runs; None: there are none.
    """

    table: Path
    figures: int
    runs: int
    doubted: dict[str, int]
    lost: list[str]
    is_well: bool
    heads: list[str]
    means: list[list[str]]
    page: Path | None


class Sweep:
    """A sweep whose directory has been taken.

    Attributes:
        directory: Where it is.
        work: All of its runs.
        waiting: Those that are not done yet.
    """

    def __init__(self, request: SweepRequest) -> None:
        """Plans all runs, and takes the directory, or goes on with the sweep in it.

        Raises:
            LabError: the lab has mistakes, with the values of some run.
            RequestError: a field has mistakes, or the directory is another sweep's, or cannot be written.
            HostLacksError: this machine cannot run guests.
        """
        self._request = request
        disk_bytes(request.max_disk)
        with refusing(ValueError):
            self._values = values_of(request.fields)
            self.work = points(self._values, request.repeat)
        prepared = [prepare(request.lab, self._overrides(point)) for point in self.work]
        labs = [each.lab for each in prepared]
        plans = [each.plan for each in prepared]
        _refuse_machines(request, plans)
        rooms = _rooms(request.onto, request.machines, plans)
        with refusing(ValueError):
            self._labels = labels_of(request.labels, self._values, [process.name for process in labs[0].run])
        self.directory = request.out or SWEEPS / labs[0].name
        with _writing(self.directory):
            take(self.directory, request.lab.text, self._values, self._labels)
        require(jailed=True)
        self._places = Places(rooms or {HERE: ENDLESS}, request.jobs or (math.inf if rooms else 1))
        self._hosts = request.machines if rooms else 1
        self._wanted = {point: Room.of(plan, self._hosts) for point, plan in zip(self.work, plans, strict=True)}
        self._seeds = {point: lab.seed for point, lab in zip(self.work, labs, strict=True)}
        self.waiting = [
            point
            for point, lab in zip(self.work, labs, strict=True)
            if not _is_done(self.directory / point.directory, lab.fidelity)
        ]
        for link in (self.directory / point.directory for point in self.waiting):
            if link.is_symlink():
                raise RequestError(f"{link}: a symbolic link, which no run replaces; remove it")

    async def run(self, stop: asyncio.Event) -> AsyncIterator[Happened]:
        """Runs all that waits, some side by side; yields each run as it ends, and what becomes of hosts.

        Args:
            stop: Set to have all runs end in good order, and none begin.

        Raises:
            RequestError: the place of a run cannot be written.
        """
        told: asyncio.Queue[Happened | None] = asyncio.Queue()
        numbered = enumerate(self.waiting, 1)
        tasks = [asyncio.create_task(self._one(number, point, stop, told.put_nowait)) for number, point in numbered]
        everything = asyncio.gather(*tasks)
        everything.add_done_callback(lambda _: told.put_nowait(None))
        try:
            while (happened := await told.get()) is not None:
                yield happened
            await everything
        finally:
            # Whoever gives up, or fails, leaves no run behind.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, everything, return_exceptions=True)

    async def _one(self, number: int, point: Point, stop: asyncio.Event, tell: Callable[[Happened], None]) -> None:
        """Runs a point, and again where a machine of its was lost."""
        on: tuple[str, ...] = ()
        try:
            for attempt in range(1, ATTEMPTS_MAX + 1):
                async with self._places.place(self._wanted[point], self._hosts) as taken:
                    if stop.is_set():
                        return
                    on = tuple(filter(None, taken))
                    why, lost = await self._run(point, on, stop)
                    doubted = [host for host in on if host in lost and self._places.shut(host)]
                if not lost or stop.is_set():
                    break
                if attempt < ATTEMPTS_MAX:
                    tell(PointAgain(point, why))
                for host in doubted:
                    await self._look_again(host, tell)
        except NoPlaceError as error:
            on, why = (), f"too few hosts are left: {error}"
        tell(PointEnded(number, point, why, self._log(point), stop.is_set(), on))

    async def _look_again(self, host: str, tell: Callable[[Happened], None]) -> None:
        """Asks a host on which a run was lost whether it is still there."""
        ((_, refusals),) = await asyncio.to_thread(machines.look, [host])
        if refusals:
            tell(HostLost(host, refusals[0]))
            self._places.drop(host, refusals[0])
        else:
            self._places.open(host)

    async def _run(self, point: Point, hosts: tuple[str, ...], stop: asyncio.Event) -> tuple[str, Sequence[str]]:
        """Runs a point on hosts; returns why that did not go well, and for which machines that may be."""
        run_dir = self.directory / point.directory
        with _writing(run_dir):
            if run_dir.exists():
                # What is left of a run that was interrupted or failed.
                shutil.rmtree(run_dir)
            run_dir.parent.mkdir(parents=True, exist_ok=True)
            overrides = self._overrides(point, f"seed={self._seeds[point] + point.repeat}")
            request = RunRequest(
                lab=self._request.lab,
                overrides=overrides,
                out=run_dir,
                max_disk=self._request.max_disk,
                onto=hosts,
                machines=1 if hosts else self._request.machines,
                engine=self._request.engine,
            )
            process = launch(request, journal=self._log(point))
        ended = asyncio.create_task(process.end())
        asked = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                process.stop()
            why = _why(run_dir, await ended)
            lost = records.load(run_dir).lost_machine if why else None
            return why, [] if lost is None else [lost]
        except HostLacksError as error:
            # A host that is gone before a run begins lacks all that it needs; which one it is does not matter.
            return error.what.strip().splitlines()[-1], hosts
        except (LabError, ControlError, RecordError) as error:
            return str(error).strip().splitlines()[-1], []
        finally:
            asked.cancel()
            await _let_go(process, ended)

    def _overrides(self, point: Point, *settings: str) -> Overrides:
        values = tuple(f"{path}={value}" for path, value in point.settings)
        return Overrides(settings=(*settings, *values), confirm=self._request.confirm)

    def _log(self, point: Point) -> Path:
        return (self.directory / point.directory).with_suffix(".log")

    def conclude(self) -> Concluded:
        """Writes the table and the plots of all runs that have left a record."""
        return conclude(self.directory, self.work, self._values, self._labels)


def _refuse_machines(request: SweepRequest, plans: Sequence[Plan]) -> None:
    """Refuses what cannot run on such machines.

    Raises:
        RequestError: Why it cannot.
    """
    with refusing(ValueError, field="engine"):
        given = machines.at_hand(request.engine)
    if given is not None and (request.jobs or 1) > 1:
        raise RequestError(
            f"{request.jobs}: this is in a job of Slurm's, which each run takes for itself; outside of one, each asks "
            "for a job of its own",
            "jobs",
        )
    if request.onto and request.machines > len(request.onto):
        named = counted(len(request.onto), "host")
        raise RequestError(f"{request.machines}: --onto names {named}, and each run is to be on so many", "machines")
    for plan in plans:
        if request.onto:
            refuse_division(plan, 1, request.onto[: request.machines], request.engine)
        else:
            refuse_division(plan, given if given and request.machines == 1 else request.machines, (), request.engine)


def _rooms(hosts: tuple[str, ...], each: int, plans: Sequence[Plan]) -> dict[str, Room]:
    """What hosts have for runs, of which each is on so many; that of others, which have begun before, is not theirs.

    Raises:
        RequestError: No host can have such a name, or the runs cannot be on one at all.
        HostLacksError: One lacks something.
    """
    if not hosts:
        return {}
    with refusing(ValueError, field="onto"):
        found = machines.look(hosts, plans)
    if wrong := [f"{name}: {why}" for name, (_, refusals) in zip(hosts, found, strict=True) for why in refusals]:
        raise HostLacksError("\n".join(wrong), f"dilaton cluster status {' '.join(hosts)}")
    # Who shares all cores of a host with others is late, but not wrong.
    rooms = {
        name: Room(max(1, has.free_cores), has.memory_bytes)
        for name, (has, _) in zip(hosts, found, strict=True)
        if not isinstance(has, GuestError)
    }
    wanted = max(Room.of(plan, each).memory_bytes for plan in plans)
    if sum(room.memory_bytes >= wanted for room in rooms.values()) < each:
        raise RequestError(
            f"guests of a run take {wanted / 1e9:.3g} GB of {counted(each, 'host')}, and not so many have that", "onto"
        )
    return rooms


def conclude(directory: Path, work: Sequence[Point], values: Values, labels: Labels) -> Concluded:
    """Writes the table and the plots of all runs in a sweep's directory that have left a record."""
    from dilaton.report.export import save
    from dilaton.report.page import write_sweep
    from dilaton.report.pictures import picture_of
    from dilaton.report.style import applied
    from dilaton.report.sweeps import Swept, table_of, write_means

    done, lost = [], []
    for point in work:
        try:
            done.append((point, Path(point.directory), records.load(directory / point.directory)))
        except RecordError as error:
            lost.append(str(error))
    table, path = table_of(done), directory / "sweep.csv"
    table.to_csv(path, index=False)
    table.to_parquet(directory / "sweep.parquet", index=False)
    figures, page = 0, None
    heads: list[str] = []
    means: list[list[str]] = []
    if done:
        swept = Swept.of(directory, done, values, labels)
        write_means(directory, swept)
        with applied():
            # What a figure was saved as shows in how it is saved next, and the same sweep is to give the same page.
            figures = len([save(drawing, directory / f"{drawing.name}.svg") for drawing in swept.drawings()])
            page = write_sweep(directory, swept, [picture_of(drawing) for drawing in swept.drawings()])
        if swept.asked:
            heads, means = swept.said(swept.asked)
    doubted = {level: int(sum(table.verdict == level)) for level in ("suspect", "invalid")}
    is_well = not lost and bool((table.state == "finished").all() and table.passed.ne(False).all())
    return Concluded(path, figures, len(table), doubted, lost, is_well, heads, means, page)


def values_of(fields: tuple[str, ...]) -> Values:
    """The values of each field.

    Raises:
        ValueError: a field is given twice, or a value is missing.
    """
    values: Values = {}
    for text in fields:
        path, value = parse_setting(text)
        if path in values:
            raise ValueError(f"--set {path}: given twice; write its values with commas between them")
        values[path] = [each.strip() for each in value.split(",")]
        if not all(values[path]) or len(set(values[path])) < len(values[path]):
            raise ValueError(f"--set {text}: every value must be there, and once")
    return values


def labels_of(texts: tuple[str, ...], values: Values, processes: Sequence[str] | None) -> dict[str, str]:
    """What each field, or number that is measured, is called.

    Args:
        texts: Each as NAME=TEXT.
        values: Of the sweep.
        processes: The names of those that may measure something; None: not known here.

    Raises:
        ValueError: one is not NAME=TEXT, is of nothing that there is, or is said twice.
    """
    labels: dict[str, str] = {}
    for text in texts:
        name, _, label = (part.strip() for part in text.partition("="))
        if not (name and label):
            raise ValueError(f"--label {text}: write NAME=TEXT, such as links.0.loss=loss or bulk.throughput=goodput")
        if processes is not None and name not in values and name.partition(".")[0] not in (*processes, FAIRNESS):
            known = ", ".join([*values, *(f"{process}.…" for process in processes)])
            raise ValueError(f"--label {name}: not a field of this sweep, nor of a process; there are {known}")
        if name in labels or label in labels.values():
            raise ValueError(f"--label {text}: said twice, or of two things")
        labels[name] = label
    return labels


def take(directory: Path, lab: str, values: Values, labels: Labels) -> None:
    """Takes a directory for a sweep, or goes on with the sweep in it, which may be called otherwise by now.

    Raises:
        RequestError: it belongs to another sweep.
    """
    known = {"lab": lab, "fields": list(values)}
    path = directory / SWEEP_FILE
    directory.mkdir(parents=True, exist_ok=True)
    if path.exists():
        if {key: value for key, value in _read(path).items() if key != "labels"} != known:
            raise RequestError(
                f"{directory}: holds a sweep of another lab or other fields; --out takes another directory"
            )
    elif any(directory.iterdir()):
        raise RequestError(f"{directory}: is not empty and holds no sweep; --out takes a new directory")
    replace_file(path, (json.dumps(known | ({"labels": labels} if labels else {}), indent=1) + "\n").encode())


def _read(path: Path) -> dict[str, object]:
    """A sweep's file; nothing, where it is damaged."""
    try:
        found = json.loads(path.read_text())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_done(run_dir: Path, fidelity: Fidelity) -> bool:
    try:
        record = records.load(run_dir)
        is_proof_due = fidelity.is_proof_due(is_believed=record.is_believed)
        return record.state == "finished" and (record.confirmation is not None or not is_proof_due)
    except RecordError:
        return False


def _why(run_dir: Path, ended: Ended) -> str:
    """Why a run did not go well, in a line; empty if it did."""
    if ended.is_well:
        return ""
    if ended.reason:
        return ended.reason.strip().splitlines()[-1]
    record = records.load(run_dir)
    return f"failed: {', '.join(check.text for check in record.checks if not check.passed)}"


async def _let_go(process: RunProcess, ended: asyncio.Task[Ended]) -> None:
    """Ends a run that nobody waits for any more, and waits for that."""
    ended.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await ended
    process.stop()
    await process.wait()


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Writes `path`, or files below it.

    Raises:
        RequestError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RequestError(f"{error.filename or path}: cannot be written: {error.strerror}") from error
