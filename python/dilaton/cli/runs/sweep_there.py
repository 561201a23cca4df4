"""`dilaton --server URL sweep`: the runs are a server's, and what they leave is here, as if they had run here.

The directory of a sweep has the name by which the server knows it. So the same command, after an interruption or a lost
answer, finds the sweep that there is, and copies what is not here yet.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
from pathlib import Path

from dilaton.cli.errors import BadInputError, refusing
from dilaton.cli.runs.remote import NEVER_RAN, PLAIN_NAME, asking
from dilaton.cli.runs.sweep import tell
from dilaton.measure.numbers import counted
from dilaton.remote.server import RemoteRun, Server
from dilaton.run.files.directory import SWEEPS
from dilaton.run.points import Point, points
from dilaton.run.record import record as records
from dilaton.run.record.record import RecordError
from dilaton.service.request import UNNAMED, RunRequest
from dilaton.service.studies.sweep import SweepRequest, conclude, labels_of, take, values_of

KEY_FILE = "server-key"
"""By which the server knows the sweep of a directory."""


def sweep_there(url: str, request: SweepRequest) -> int:
    """Runs a sweep at a server, and copies what it leaves; returns the exit status, as of `sweep_lab`.

    Raises:
        LabError, BadInputError, FailedError: as of `run_there`; or the directory is another sweep's.
    """
    is_placed = request.onto or request.engine != "local"
    if request.jobs is not None or request.confirm is not None or is_placed:
        raise BadInputError(
            "--jobs, --onto, --engine, --confirm, --no-confirm, --confirm-suspect: not at a server, which has its own "
            "queue and machines"
        )
    with refusing(ValueError):
        values = values_of(request.fields)
        labels = labels_of(request.labels, values, None)
    work = points(values, request.repeat)
    text = request.lab.text
    with asking(RunRequest(lab=request.lab)):
        server = Server(url)
        name = server.check(text)
        directory = request.out or SWEEPS / (name if PLAIN_NAME.fullmatch(name) else UNNAMED)
        with refusing(ValueError, OSError):
            take(directory, text, values, labels)
        fields = [{"path": path, "values": found} for path, found in values.items()]
        asked = {
            "fields": fields,
            "repeat": request.repeat,
            "machines": request.machines,
            "max_disk": request.max_disk,
            "key": _key(directory),
        }
        sweep = server.sweep(server.keep(name, text), asked)
        print(f"{counted(len(work), 'run')} at {url}, sweep {sweep['sweep']}; what they leave: {directory}")
        runs = {run["point"]: server.run(run["run"]) for run in sweep["runs"]}
        try:
            for number, point in enumerate(work):
                _fetch(runs.get(number), directory, point, f"{number + 1}/{len(work)}")
        except KeyboardInterrupt:
            print(f"it goes on there; the same command goes on with what is not in {directory}", file=sys.stderr)
            return 130
    return tell(conclude(directory, work, values, labels))


def _key(directory: Path) -> str:
    path = directory / KEY_FILE
    with contextlib.suppress(FileExistsError), path.open("x") as file:
        file.write(secrets.token_hex(16))
    return path.read_text()


def _fetch(run: RemoteRun | None, directory: Path, point: Point, place: str) -> None:
    """Waits for a run, and copies what it has left unless that is here."""
    target = directory / point.directory
    what = " ".join([*(f"{name}={value}" for name, value in point.settings), f"#{point.repeat}"])
    with contextlib.suppress(RecordError):
        records.load(target)
        return
    state = "removed there" if run is None else run.wait()
    if run is not None and state not in NEVER_RAN:
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        run.fetch(part)
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    print(f"{place} {what}: {'well' if state == 'finished' else state}", flush=True)
