"""`dilaton sweep`: many runs of one lab, and what they show together.

Each run is `dilaton run` in a process of its own: it takes its own core, and one that fails fails alone. What is done
is told by its run record, so a sweep that was interrupted goes on with the rest. When the sweep dies, however it does,
its runs are told to end in good order by the kernel.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cli.check import Overrides, lab_file, read_lab
from dilaton.cli.errors import PROGRAM, BadInputError, complain, refusing, writing
from dilaton.host.doctor import require
from dilaton.host.processes import OURSELVES, ending_with_us
from dilaton.lab.loader import check_stays
from dilaton.lab.settings import parse_setting
from dilaton.run import record as records
from dilaton.run.outputs import read_tail
from dilaton.run.record import RecordError

if TYPE_CHECKING:
    from dilaton.report.sweeps import Point

LAST_WORDS_BYTES = 4096


def sweep_lab(path: Path, settings: list[str], repeat: int, jobs: int, out: Path | None) -> int:
    """Runs a sweep; returns the exit status: 1 when a run did not finish or a check failed, 130 when interrupted.

    Raises:
        BadInputError: a setting has mistakes, the directory is another sweep's, or cannot be written.
        HostLacksError: this machine cannot run guests.
    """
    from dilaton.report.sweeps import points

    with refusing(ValueError):
        values = _values(settings)
        work = points(values, repeat)
        check_stays(lab_file(path))
        labs = [read_lab(path, _overrides(point))[0] for point in work]
        directory = out or Path("sweeps") / labs[0].name
        with writing(directory):
            _take(directory, lab_file(path).read_text(), values)
        require(jailed=True)
    waiting = [point for point in work if not _is_done(directory / point.directory)]
    for link in (directory / point.directory for point in waiting):
        if link.is_symlink():
            raise BadInputError(f"{link}: a symbolic link, which no run replaces; remove it")
    print(f"{len(work)} runs in {directory}, {len(work) - len(waiting)} of them done already")
    seeds = {point: lab.seed for point, lab in zip(work, labs, strict=True)}
    if asyncio.run(_run_all(path, waiting, seeds, directory, jobs)):
        print(f"interrupted; the same command goes on with what is left in {directory}", file=sys.stderr)
        return 130
    return _conclude(work, values, directory)


def _values(settings: list[str]) -> dict[str, list[str]]:
    """The values of each field.

    Raises:
        ValueError: a field is given twice, or a value is missing.
    """
    values: dict[str, list[str]] = {}
    for text in settings:
        path, value = parse_setting(text)
        if path in values:
            raise ValueError(f"--set {path}: given twice; write its values with commas between them")
        values[path] = [each.strip() for each in value.split(",")]
        if not all(values[path]) or len(set(values[path])) < len(values[path]):
            raise ValueError(f"--set {text}: every value must be there, and once")
    return values


def _overrides(point: Point) -> Overrides:
    return Overrides(settings=tuple(f"{path}={value}" for path, value in point.settings))


def _take(directory: Path, lab: str, values: dict[str, list[str]]) -> None:
    """Takes a directory for a sweep, or goes on with the sweep in it.

    Raises:
        ValueError: it belongs to another sweep.
    """
    from dilaton.report.sweeps import FILE

    text = json.dumps({"lab": lab, "fields": list(values)}, indent=1) + "\n"
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / FILE).exists():
        if (directory / FILE).read_text() != text:
            raise ValueError(
                f"{directory}: holds a sweep of another lab or other fields; --out takes another directory"
            )
    elif any(directory.iterdir()):
        raise ValueError(f"{directory}: is not empty and holds no sweep; --out takes a new directory")
    else:
        (directory / FILE).write_text(text)


def _is_done(run_dir: Path) -> bool:
    try:
        return records.load(run_dir).state == "finished"
    except RecordError:
        return False


async def _run_all(path: Path, waiting: list[Point], seeds: dict[Point, int], directory: Path, jobs: int) -> bool:
    """Runs all points, `jobs` side by side; returns whether it was interrupted, and then all have ended."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    places = asyncio.Semaphore(jobs)

    async def run(number: int, point: Point) -> None:
        async with places:
            if stop.is_set():
                return
            what = " ".join([*(f"{name}={value}" for name, value in point.settings), f"#{point.repeat}"])
            status = await _run(path, point, seeds[point] + point.repeat, directory / point.directory, stop)
            run_dir = directory / point.directory
            failed = f"exit status {status}: {_why(run_dir)}; see {_log(run_dir)}"
            ending = "well" if status == 0 else "interrupted" if stop.is_set() else failed
            print(f"{number}/{len(waiting)} {what}: {ending}", flush=True)

    await asyncio.gather(*(run(number, point) for number, point in enumerate(waiting, 1)))
    return stop.is_set()


def _log(run_dir: Path) -> Path:
    """Where a run's terminal text goes."""
    return run_dir.with_suffix(".log")


def _why(run_dir: Path) -> str:
    """Why a run did not go well, in a line: what its record says, or what it said last where it never began."""
    try:
        record = records.load(run_dir)
    except RecordError:
        said = read_tail(_log(run_dir), LAST_WORDS_BYTES).decode(errors="replace")
    else:
        said = record.reason or f"not so: {', '.join(check.text for check in record.checks if not check.passed)}"
    lines = said.strip().splitlines() or ["it said nothing"]
    return lines[-1].removeprefix(PROGRAM)


async def _run(path: Path, point: Point, seed: int, run_dir: Path, stop: asyncio.Event) -> int:
    with writing(run_dir):
        if run_dir.exists():
            # What is left of a run that was interrupted or failed.
            shutil.rmtree(run_dir)
        run_dir.parent.mkdir(parents=True, exist_ok=True)
    command = [*OURSELVES, "run", str(path), "--out", str(run_dir), "--set", f"seed={seed}"]
    for name, value in point.settings:
        command += ["--set", f"{name}={value}"]
    with _log(run_dir).open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=ending_with_us()
        )
    asked, ended = asyncio.create_task(stop.wait()), asyncio.create_task(process.wait())
    await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        process.send_signal(signal.SIGTERM)
    asked.cancel()
    return await ended


def _conclude(work: list[Point], values: dict[str, list[str]], directory: Path) -> int:
    """Writes the table and the plots of a sweep."""
    from dilaton.report.export import save
    from dilaton.report.style import applied
    from dilaton.report.sweeps import draw_sweep, table_of, units_of

    done = []
    for point in work:
        try:
            done.append((point, Path(point.directory), records.load(directory / point.directory)))
        except RecordError as error:
            complain(error)
    table = table_of(done)
    table.to_csv(directory / "sweep.csv", index=False)
    table.to_parquet(directory / "sweep.parquet", index=False)
    with applied():
        figures = [
            save(drawing, directory / f"{drawing.name}.svg") for drawing in draw_sweep(table, values, units_of(done))
        ]
    print(f"table: {directory / 'sweep.csv'}; {len(figures)} figures beside it")
    if doubted := [f"{count} {level}" for level in ("suspect", "invalid") if (count := sum(table.verdict == level))]:
        print(
            f"not valid: {' and '.join(doubted)} of {len(table)} runs; sweep.csv says which, the log of each says why"
        )
    well = len(done) == len(work) and bool((table.state == "finished").all() and table.passed.all())
    return 0 if well else 1
