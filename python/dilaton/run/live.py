"""Runs that go on, from Python: `dilaton.start` and `dilaton.attach`.

A run is a process of its own, the same `dilaton run` that the command line starts, and is steered through its control
socket (`run/control.py`); so whatever this program does cannot delay it, and what is seen here is what `dilaton clock`
and `dilaton link` show. A run that was started here ends with the thread that has started it, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from dilaton.host.processes import OURSELVES, ending_with_us
from dilaton.lab.loader import check_stays
from dilaton.lab.loader import load as load_lab
from dilaton.lab.settings import parse_setting
from dilaton.run.control import Client, ControlError, Result, find
from dilaton.run.directory import RunDirError, take_default
from dilaton.run.loading import Run, load
from dilaton.run.record import RecordError
from dilaton.run.session_client import capture

LOOK_HOST_S = 0.02
"""How often it is looked whether a run that was started listens already."""

REFUSED = (2, 3)
"""Exit statuses of a run that never began: its lab has mistakes, or this machine lacks something."""

Instant = str | float
"""Virtual time since the run's virtual 0: `"5s"`, or a number of seconds."""


class NotBegunError(ControlError):
    """A run that never began.

    The message is what it said, a line per problem, each as the command line has it.

    Attributes:
        status: its exit status.
    """

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


@dataclass(frozen=True)
class ClockState:
    """The clock of a run: both times in seconds, the TDF, and whether virtual time stands still."""

    virtual_s: float
    host_s: float
    tdf: float
    held: bool


class LiveLink:
    """A link of a run that goes on."""

    def __init__(self, client: Client, name: str) -> None:
        """Use `LiveRun.link`."""
        self._client = client
        self.name = name

    def show(self) -> Result:
        """What it is now: `up`, and for each of its `ends` the `egress` and the `wire_delay_ns`, as in the plan.

        Of a segment this is its first port.
        """
        found: Result = self._client.request("link.show", link=self.name)["links"][0]
        return found

    def set(self, *, at: Instant | None = None, **fields: Any) -> float:
        """Changes some of its fields; what is not named stays as it is.

        Args:
            at: When; None: now.
            fields: As in the lab: `loss="5%"`, `delay={"jitter": "2ms"}`, `b_to_a={"rate": "1Mbit"}`.

        Returns:
            The virtual instant of the change, seconds.

        Raises:
            ControlError: it is wrong, or the run has ended; the link stays as it was.
        """
        settings = [(field, value if isinstance(value, str) else json.dumps(value)) for field, value in fields.items()]
        when = {} if at is None else {"at": _text(at)}
        done = self._client.request("link.change", link=self.name, settings=settings, directory=os.getcwd(), **when)
        return float(done["at_ns"] / 1e9)

    def down(self, *, at: Instant | None = None) -> float:
        """Takes both its interfaces down; as `set`."""
        return self.set(at=at, down=True)

    def up(self, *, at: Instant | None = None) -> float:
        """Takes them up again, with their addresses and routes; as `set`."""
        return self.set(at=at, down=False)


class LiveRun:
    """A run that goes on. As a context it stops, at the end, the run that was started with it.

    All methods wait until what they ask for is done, and raise `ControlError` when it is refused or the run has ended.
    """

    def __init__(self, path: Path, started: _Started | None = None) -> None:
        """Use `dilaton.start` or `dilaton.attach`."""
        self.path = path
        self._started = started

    @cached_property
    def _client(self) -> Client:
        return Client(self.path)

    def __enter__(self) -> LiveRun:
        """This run."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the run, if it was started here and still goes on."""
        if self._started:
            with contextlib.suppress(ControlError):
                self.stop()
            self._started.close()
        self._disconnect()

    def _disconnect(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()
            del self._client

    @property
    def clock(self) -> ClockState:
        """Its clock, now."""
        return _clock(self._client.request("clock.show"))

    def hold(self) -> ClockState:
        """Stops virtual time."""
        return _clock(self._client.request("clock.hold"))

    def release(self) -> ClockState:
        """Lets it go on."""
        return _clock(self._client.request("clock.release"))

    def until(self, at: Instant) -> ClockState:
        """Lets it go on to exactly `at`, and holds it there."""
        return _clock(self._client.request("clock.until", at=_text(at)))

    def step(self) -> ClockState:
        """Lets it go on to the guests' next timer, and holds it there."""
        return _clock(self._client.request("clock.step"))

    def set_tdf(self, tdf: float | str) -> ClockState:
        """Changes the TDF."""
        return _clock(self._client.request("clock.tdf", tdf=str(tdf)))

    def link(self, name: str) -> LiveLink:
        """A link by its ends, as `a--b` or `a:eth0--b:eth1`; a segment by all of its nodes."""
        return LiveLink(self._client, self._client.request("link.show", link=name)["name"])

    @property
    def links(self) -> list[str]:
        """The names of all links."""
        return [one["link"] for one in self._client.request("link.show")["links"]]

    def execute(self, node: str, command: str | Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Executes a command in a node, a shell's if it is one text, and returns what it printed and its status."""
        argv = ["sh", "-c", command] if isinstance(command, str) else command
        return capture(self.path, node, argv)

    def result(self) -> Run:
        """What there is of the run so far, or in the end: tables, events, outputs, as of `dilaton.load`."""
        return load(self.path)

    def stop(self) -> Run:
        """Ends the run in good order, and waits for that."""
        self._client.request("stop")
        return self.wait()

    def wait(self) -> Run:
        """Waits for the end of the run, whose clock must not be held for ever; returns what it has measured."""
        with contextlib.suppress(ControlError):
            self._client.request("show")
            self._client.wait_for_end()
        self._disconnect()
        if self._started:
            self._started.close()
        return load(self.path)


@dataclass
class _Started:
    """The process of a run that was started here, and what it has said."""

    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def close(self) -> str:
        """Waits for the end of the process; returns what it has said."""
        self.process.wait()
        if self.said.closed:
            return ""
        with self.said:
            self.said.seek(0)
            return self.said.read().decode(errors="replace").strip()


def attach(run: str | Path) -> LiveRun:
    """A run that goes on already, by its directory or the name of its lab.

    Raises:
        ControlError: there is none, or there are several of that name.
    """
    return LiveRun(find(str(run)))


def start(
    lab: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    hold_at: Instant | None = None,
    tdf: float | str | None = None,
    drive: str | None = None,
    max_speed: float | str | None = None,
    settings: Mapping[str, Any] | None = None,
    stay: bool = False,
    detached: bool = False,
) -> LiveRun:
    """Starts a run in a process of its own, and returns once its clock is released, or held at `hold_at`.

    Args:
        lab: A lab's file, its directory, or its contents as a mapping.
        out: The run directory; None: `runs/<lab>-<UTC>-<n>`.
        hold_at: Where the run holds its clock at first.
        tdf, drive, max_speed: Instead of the lab's.
        settings: Fields instead of the lab's: `{"links.0.rate": "1Gbit"}`.
        stay: Whether it goes on when nothing is left to do, at host speed at most, until it is stopped.
        detached: Whether it outlives this program, and the `with` in which it is used.

    Raises:
        LabError: the lab has mistakes.
        NotBegunError: it cannot be planned, or not run on this machine.
        ControlError: the run ended before it could be steered.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(lab, Mapping):
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dilaton-")))
            path = directory / "lab.yaml"
            path.write_text(json.dumps(lab, indent=1))
        else:
            path = Path(lab) / "lab.yaml" if Path(lab).is_dir() else Path(lab)
        check_stays(path)
        chosen = [f"{field}={_yaml(value)}" for field, value in (settings or {}).items()]
        name = load_lab(path, [parse_setting(text) for text in chosen]).name
        try:
            run_dir = Path(out) if out else take_default(name)
        except RunDirError as error:
            raise ControlError(str(error)) from error
        options = {
            "--out": str(run_dir),
            "--hold-at": None if hold_at is None else _text(hold_at),
            "--tdf": tdf,
            "--drive": drive,
            "--max-speed": max_speed,
        }
        argv = [str(word) for option, value in options.items() if value is not None for word in (option, value)]
        argv += [word for text in chosen for word in ("--set", text)] + (["--stay"] if stay else [])
        try:
            run = _begun(run_dir, _spawn(["run", str(path), *argv], detached), is_held=hold_at is not None)
        except NotBegunError:
            if out is None:
                with contextlib.suppress(OSError):
                    run_dir.rmdir()
            raise
    return attach(run_dir) if detached else run


def _spawn(arguments: list[str], detached: bool) -> _Started:
    places = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")]
    said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the run
    process = subprocess.Popen(
        [*OURSELVES, *arguments],
        # An empty one would be the present directory.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))},
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        # What a terminal sends, as at Ctrl-C, is for the program, which then stops its runs.
        start_new_session=True,
        preexec_fn=None if detached else ending_with_us(),
    )
    return _Started(process, said)


def _begun(run_dir: Path, started: _Started, *, is_held: bool) -> LiveRun:
    """The run, once it can be steered, or is held; or is over already, if it was so short."""
    run = LiveRun(run_dir.absolute(), started)
    try:
        while started.process.poll() is None:
            with contextlib.suppress(ControlError), Client(run_dir) as client:
                shown = client.request("show")
                is_ours = shown["pid"] == started.process.pid
                if is_ours and shown["state"] == "running" and (shown["held"] or not is_held):
                    return run
            time.sleep(LOOK_HOST_S)
    except BaseException:
        started.process.terminate()
        started.close()
        raise
    said = started.close()
    if started.process.returncode in REFUSED:
        raise NotBegunError(said, started.process.returncode)
    try:
        record = run.result().record
    except RecordError:
        raise ControlError(f"{run_dir}: the run ended before it could be steered: {said}") from None
    if record.state != "finished":
        raise ControlError(f"{run_dir}: the run {record.state} before it could be steered: {record.reason}")
    return run


def _clock(state: Result) -> ClockState:
    return ClockState(state["virtual_s"], state["host_s"], state["tdf"], state["held"])


def _text(at: Instant) -> str:
    return at if isinstance(at, str) else f"{at:.9f}s"


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
