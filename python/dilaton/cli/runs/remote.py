"""`dilaton --server URL …`: verbs whose runs are a server's."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from dilaton.cli.errors import BadInputError, FailedError, refusing
from dilaton.cli.output import visible
from dilaton.cli.runs.result import print_result
from dilaton.cli.runs.run import exit_status, write_junit
from dilaton.cli.steering.control import PLAIN_COLUMNS, argument_of, print_clock
from dilaton.cli.terminal import Output
from dilaton.lab.errors import LabError, Problem
from dilaton.remote.asking import ServerError
from dilaton.remote.server import FINAL, RemoteRun, Server
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import RunDirError, take_default
from dilaton.run.loading import load
from dilaton.run.record.record import RecordError
from dilaton.service.request import UNNAMED, RunRequest

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Of a lab, as it may be part of a directory's name here, whoever says it."""

NEVER_RAN = ("refused", "cancelled")
"""States in which a run has left nothing."""


def run_there(url: str, request: RunRequest, *, strict: bool, junit: Path | None) -> int:
    """Runs a lab at a server, copies what it leaves, and shows that; returns the exit status.

    Raises:
        BadInputError: the lab has mistakes, or something is asked for that a server does not do.
        FailedError: the server refuses, or cannot be reached.
    """
    out = request.out
    if out is not None and out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise BadInputError(f"--out: {out}: is there already; name a new directory")
    with asking(request):
        run = _launched(url, request)
        try:
            for state in run.states():
                tell(run, state)
        except KeyboardInterrupt:
            print(f"it goes on; dilaton --server {url} down {run.identity} ends it", file=sys.stderr)
            return 130
        shown = run.show()
        if shown["state"] in NEVER_RAN:
            raise FailedError(f"{run.identity}: {shown['state']}: {shown['reason'] or 'by somebody'}")
        name = str(shown["name"])
        with refusing(RunDirError):
            path = out or take_default(name if PLAIN_NAME.fullmatch(name) else UNNAMED)
        run.fetch(path)
    try:
        left = load(path)
    except RecordError as error:
        raise FailedError(str(error)) from error
    if left.plan is not None:
        print_result(left.plan, left.record, path)
    if junit is not None:
        write_junit(left.record, path, junit, strict=strict)
    return exit_status(left.record, strict=strict)


def bring_up_there(url: str, request: RunRequest, *, detached: bool) -> int:
    """Starts a lab at a server that stays, and waits until it runs; returns the exit status.

    Raises:
        BadInputError, FailedError: as of `run_there`.
    """
    if not detached or request.out is not None:
        raise BadInputError("up: at a server a lab stays in the background (--detach), and has no --out")
    with asking(request):
        run = _launched(url, request)
        for state in run.states():
            tell(run, state)
            if state in ("running", "held"):
                print(run.identity)
                return 0
        shown = run.show()
    raise FailedError(f"{run.identity}: {shown['state']}: {shown['reason'] or 'it has ended'}")


def list_there(url: str, *, also_over: bool) -> int:
    """Prints the runs of a server that one may see, and those that are over only if wanted; returns the exit status."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("run", "lab", "state", "folder", "person", "virtual", "verdict"):
        table.add_column(column, overflow="fold")
    with asking():
        for run in Server(url).runs():
            if also_over or run["state"] not in FINAL:
                virtual = "" if run["virtual_s"] is None else f"{run['virtual_s']:.6f} s"
                words = (run["run"], run["name"], run["state"], run["folder"], run["person"])
                table.add_row(*(str(word) for word in words), virtual, run["verdict"] or "")
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    console.print(table if table.rows else "nothing runs")
    return 0


def stop_there(url: str, name: str) -> int:
    """Ends a run of a server, and waits for that; returns the exit status."""
    with asking():
        run = found_at(Server(url), name)
        run.stop()
        run.wait()
    return 0


@refusing(ControlError)
def steer_there(url: str, name: str, action: str, value: str | None) -> int:
    """Does something with the clock of a server's run, and shows the clock; returns the exit status."""
    argument_of(action, value)
    with asking():
        print_clock(found_at(Server(url), name).clock(action, value))
    return 0


def _launched(url: str, request: RunRequest) -> RemoteRun:
    if request.metrics is not None or request.onto or not request.jailed or request.engine != "local":
        raise BadInputError("--metrics, --onto, --engine, --no-jail: not at a server")
    if request.saved is not None and request.machines != 1:
        raise BadInputError("--machines: a saved lab goes on on one machine")
    asked: dict[str, Any] = {"hold_at": request.hold_at, "stays": request.stays, "max_disk": request.max_disk}
    overrides = request.overrides.model_dump(mode="json")
    if request.saved is not None:
        return Server(url).launch_saved(request.saved, overrides=overrides, **asked)
    return Server(url).launch(request.lab.text, overrides=overrides, machines=request.machines, **asked)


def tell(run: RemoteRun, state: str) -> None:
    """Prints the state of a run, as it comes."""
    why = f": {run.show()['reason']}" if state == "requested" else ""
    print(visible(f"{run.identity} {state}{why}"), file=sys.stderr, flush=True)


def found_at(server: Server, name: str) -> RemoteRun:
    """The run of an identity, or the one that goes on, or waits, whose lab has this name.

    Raises:
        BadInputError: there is none, or more than one.
    """
    going = [run for run in server.runs() if run["state"] not in FINAL and name in (run["run"], run["name"])]
    if len(going) != 1:
        found = ", ".join(run["run"] for run in going) or "none"
        raise BadInputError(f"{name}: names no single run that goes on: {found}; see dilaton --server URL ps")
    return server.run(going[0]["run"])


def any_at(server: Server, name: str) -> RemoteRun:
    """A run by its identity, also one that is over; or the newest of a lab's name.

    Raises:
        BadInputError: there is none.
    """
    for run in server.runs():
        if name in (run["run"], run["name"]):
            return server.run(run["run"])
    raise BadInputError(f"{name}: no run, and no lab that has one; see dilaton --server URL ps --all")


@contextlib.contextmanager
def asking(request: RunRequest | None = None) -> Iterator[None]:
    """Tells what a server refuses in the words and with the exit status of the command line."""
    try:
        yield
    except ServerError as error:
        if request is not None and error.problems and "line" in error.problems[0]:
            name = request.lab.name
            raise LabError(
                [
                    Problem(name, int(one["line"]), int(one["column"]), str(one["field"]), str(one["message"]))
                    for one in error.problems
                ]
            ) from error
        if 400 <= error.status < 500 or (not error.status and not error.__cause__):
            raise BadInputError(f"--server: {error}") from error
        raise FailedError(str(error)) from error
