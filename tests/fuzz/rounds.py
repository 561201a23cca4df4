"""A round: a random lab is run, by hands or twice, and all is looked at that has to be so of every lab.

- The command ends. What takes long is interrupted, which ends it, too; whose virtual time stands by then has failed.
- Its exit status is one of those that are documented, nothing is an error of Python's, and what fails a run is the
  lab's matter.
- `run.json` keeps to its schema, `events.jsonl` is in the order of virtual time.
- Nothing is left: no process, no mount, no file.
- On the event drive, where nobody works in it, it comes out to the byte as it did, also held in between or with its
  speed limited, and `resume --at` finds the state of an instant again.
- What was saved goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import hashlib
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from dilaton.host.here.uml import kernels
from tests.conftest import ROOT, command_line, environment
from tests.fuzz.hands import SAVED, STATUSES, let_go, make_hands, steer
from tests.fuzz.labs import make_lab
from tests.fuzz.networks import Fields, Network
from tests.host.processes import children, descendants, name_of

RUN_HOST_S = 60.0
"""After which a run is interrupted."""

END_HOST_S = 90.0
"""Within which a command ends that is interrupted."""

STANDS_HOST_S = 15.0
"""Within which virtual time moves, however busy the machine is."""

LEFT_HOST_S_MAX = 10.0
"""After which nothing may be left."""

PR_SET_CHILD_SUBREAPER = 36

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/run.schema.json").read_text()))


@dataclass
class Report:
    """What a round showed.

    Attributes:
        failures: What was not as it has to be.
        words: How each command ended.
        log: What hands did, and how it was answered.
    """

    failures: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """A command that has ended, with what it printed and, if it ran a lab, its run directory."""

    status: int
    text: str
    path: Path

    @property
    def record(self) -> Fields | None:
        """`run.json`, if there is one."""
        path = self.path / "run.json"
        return json.loads(path.read_text()) if path.exists() else None

    @property
    def spins(self) -> bool:
        """Whether a program waited in a loop for another one."""
        return '"spinning"' in (self.path / "events.jsonl").read_text()


def adopt() -> None:
    """Has whatever loses its parent become our child, so that nothing that is left can hide from us."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@dataclass
class Round:
    """A round of the lab of a seed on a kernel, in a directory of its own."""

    seed: int
    kernel: str
    directory: Path
    run_host_s: float = RUN_HOST_S
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        """Draws it."""
        self.before = set(descendants(os.getpid()))
        self.lab = make_lab(self.seed)
        self.net = Network(self.lab["nodes"], self.lab["links"], self.lab.get("routing"), False)
        self.hands = make_hands(self.seed)
        self.draw = random.Random(self.seed + 2 * 10**6)
        self.file = self.directory / "lab.json"
        self.file.write_text(json.dumps(self.lab))
        self.places = {name: self.directory / name for name in ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_STATE_HOME")}
        for place in self.places.values():
            place.mkdir()
        own = {name: str(place) for name, place in self.places.items()}
        self.environment = environment() | own | {kernels.VARIABLE: self.kernel}
        self.environment["XDG_CACHE_HOME"] = str(kernels.cache().parents[1])

    def fail(self, text: str) -> None:
        """Notes a failure."""
        self.report.failures.append(text)

    def do(self, name: str, *arguments: str | Path, is_steered: bool = False, at: str = "") -> Ended:
        """Has a command of ours run a lab into the directory `name`, to its end or until it is interrupted.

        Args:
            name: Of the run directory.
            arguments: Those of the command.
            is_steered: Whether hands are at work in the run meanwhile.
            at: Where it holds its clock, from where it is let go on; nowhere, if empty.
        """
        path = self.directory / name
        line = command_line(*arguments, "--out", path, *(["--hold-at", at] if at else []))
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(
                line, env=self.environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT
            )
            beside: Coroutine[Any, Any, None] | None = None
            if is_steered:
                beside = steer(path, self.hands, self.lab, self.net, self.environment, self.report.log)
            elif at:
                beside = let_go(path)
            person = threading.Thread(target=self._beside, args=(beside, process))
            person.start()
            begin_s = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.run_host_s)
            if process.poll() is None:
                self._interrupt(process, path)
            person.join()
            printed.seek(0)
            ended = Ended(process.returncode, printed.read().decode(errors="replace"), path)
        record = ended.record or {}
        if ended.status == 0 and record.get("state") != "finished":
            self.fail(f"status 0 without a run that has finished: {ended.text[-1000:]}")
        took_s = time.monotonic() - begin_s
        reason = record.get("reason") or ""
        state = record.get("state", "-")
        self.report.words.append(f"{arguments[0]} {ended.status} {state} {took_s:.0f}s {reason}".strip())
        self._look(ended)
        return ended

    def _beside(self, beside: Coroutine[Any, Any, None] | None, process: subprocess.Popen[bytes]) -> None:
        """Has somebody be at work while a process goes on, and for a moment longer, as its end is to be told to them."""

        async def both(beside: Coroutine[Any, Any, None]) -> None:
            working = asyncio.ensure_future(beside)
            while process.poll() is None and not working.done():
                await asyncio.wait([working], timeout=0.05)
            await asyncio.wait([working], timeout=5.0)
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

        if beside:
            try:
                asyncio.run(both(beside))
            except Exception as error:
                self.fail(f"by hand: {error!r}"[:2000])

    def _interrupt(self, process: subprocess.Popen[bytes], path: Path) -> None:
        """Ends a run that takes long."""
        before = _clock(path)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STANDS_HOST_S)
        if process.poll() is not None:
            return
        if before == _clock(path):
            self.fail(f"virtual time stands: {before}; {self.report.log}")
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_HOST_S)
        except subprocess.TimeoutExpired:
            self.fail(f"an interrupt does not end it within {END_HOST_S:g} s")
            process.kill()
            process.wait()

    def _look(self, ended: Ended) -> None:
        """Looks at what a command has left, whatever it did."""
        if "Traceback" in ended.text or "Error(" in ended.text:
            self.fail(ended.text[-3000:])
        if ended.status not in STATUSES:
            self.fail(f"exit status {ended.status}: {ended.text[-1000:]}")
        record = ended.record
        if record is not None:
            self.report.failures += [f"run.json: {error.message}"[:500] for error in SCHEMA.iter_errors(record)]
            if is_ours(record):
                self.fail(f"{record['state']}: {record['reason']}")
        events = ended.path / "events.jsonl"
        if record is not None and events.exists():
            instants = [json.loads(line).get("t_ns") for line in events.read_text().splitlines()]
            known = [instant for instant in instants if instant is not None]
            if known != sorted(known):
                self.fail("events.jsonl is not in the order of virtual time")

    def nothing_is_left(self) -> None:
        """Looks for processes, files and mounts of this round."""
        end_s = time.monotonic() + LEFT_HOST_S_MAX
        while left := self._remaining():
            if time.monotonic() > end_s:
                self.fail(f"left: {[(pid, name_of(pid)) for pid in left]}")
                break
            time.sleep(0.05)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # Matplotlib makes a directory of its own in the home of whoever draws figures.
        files = [path for name in ("HOME", "TMPDIR") for path in self.places[name].rglob("*") if path.is_file()]
        files = [str(path) for path in files if "matplotlib" not in path.parts]
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.directory) in line]
        if files or mounts:
            self.fail(f"left: {files} {mounts}")

    def _remaining(self) -> list[int]:
        """What lives below us, and did not before; what is dead is buried."""
        for pid in set(children(os.getpid())) - self.before:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return [pid for pid in descendants(os.getpid()) if pid not in self.before]

    def go(self) -> Report:
        """Does all of it."""
        # Who works in a run that skips idle time mostly comes late.
        slow = ["--max-speed", "1"] if self.hands and self.draw.random() < 0.7 else []
        ended = self.do("run", "run", self.file, *slow, is_steered=bool(self.hands))
        record = ended.record
        is_repeatable = self.lab["time"]["drive"] == "event" and not self.hands
        # What spins is preempted when the host says so.
        if is_repeatable and record and record["state"] == "finished" and not ended.spins:
            self.again(ended, record["time"]["virtual_s"])
        saved = self.places["XDG_DATA_HOME"] / "dilaton" / "saved"
        if any(line.startswith("save") for line in self.report.log) and saved.exists():
            self.do("again", "run", SAVED)
        self.nothing_is_left()
        return self.report

    def again(self, first: Ended, virtual_s: float) -> None:
        """Runs the lab once more, which has to come out as it did, or has an instant of it repeated."""
        way = self.draw.choice(["same", "held", "slow", "state"])
        at_s = self.draw.uniform(0, virtual_s)
        if way == "state":
            path = self.directory / "state"
            done = subprocess.run(
                command_line("resume", first.path, "--at", f"{at_s:.9f}s", "--out", path),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self.run_host_s + END_HOST_S,
                check=False,
            )
            self.report.words.append(f"resume {done.returncode} {done.stderr.strip()[-200:]}")
            if done.returncode == 0:
                stop = command_line("stop", path)
                subprocess.run(stop, env=self.environment, capture_output=True, timeout=END_HOST_S, check=False)
            self._look(Ended(done.returncode, done.stdout + done.stderr, path))
            if done.returncode not in (0, 2):
                self.fail(f"resume --at {at_s:.9f}s: {done.stderr[-1000:]}")
            return
        arguments: list[str] = ["--max-speed", "2"] if way == "slow" else []
        second = self.do("second", "run", self.file, *arguments, at=f"{at_s:.9f}s" if way == "held" else "")
        one, other = (self._bytes(ended) for ended in (first, second))
        if different := sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
            self.fail(f"another run, {way} at {at_s:.9f}s, is not the same: {different}")

    def _bytes(self, ended: Ended) -> dict[str, str]:
        """What has to be the same of two runs on the event drive, digested."""
        files = [path for place in ("nodes", "measure", "captures") for path in (ended.path / place).rglob("*")]
        files = [path for path in (ended.path / "events.jsonl", *files) if path.is_file()]
        found = {str(path.relative_to(ended.path)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
        record = ended.record or {}
        return found | {name: json.dumps(record.get(name)) for name in ("state", "processes", "checks")}


def is_ours(record: Fields) -> bool:
    """Whether a run has failed for what no lab may fail by."""
    reason = record["reason"] or ""
    words = ("guest ", "guests ", "Dilaton", "does not answer", "panic", "protocol", "Traceback", "assert")
    return record["state"] == "failed" and any(word in reason for word in words)


def _clock(path: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (path / "clock.csv").read_text().splitlines()[-1]
    return ""
