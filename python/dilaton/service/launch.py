"""Launching a run in a process of its own, and waiting for what becomes of it.

The run ends with the process that launched it, however that ends, unless it is to outlive it. By the kernel's rules it
is the *thread* that counts, so a coroutine here is awaited in a loop whose thread lives as long as the program does:
that of a server, or of `portal.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dilaton.host.files import program
from dilaton.host.processes import NICEST, PYTHON, ending_with_us, is_session_nice
from dilaton.run.control.errors import ControlError
from dilaton.service.request import RunRequest, to_json
from dilaton.service.tidings import Begun, Ended, Tiding, tiding_of

RUNNER = (*PYTHON, "-m", "dilaton.service.runner")

BEHIND = 5
"""By how much a run is nicer that goes behind: of a core that both want it gets a quarter (sched(7))."""

BEHIND_PER_DOUBLING = 2
"""By how much nicer guests are where twice as many runs go behind, so that each weighs two thirds as much."""

TIDING_BYTES_MAX = 1 << 24

LAST_WORDS_BYTES = 4096


@dataclass(frozen=True)
class User:
    """Another user than this process's, as whom a run goes on. Only root launches one.

    Attributes:
        uid: Its number, and that of its only group.
        home: A directory of its own.
    """

    uid: int
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """What its processes are told: nothing of ours, in which there may be secrets."""
        ours = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**ours, "HOME": str(self.home), "PYTHONPATH": places()}

    @property
    def options(self) -> dict[str, Any]:
        """Of `subprocess`, for a process that is this user's; what it makes the group of the directory may read."""
        return {"user": self.uid, "group": self.uid, "extra_groups": (), "umask": 0o027, "env": self.environment}


class RunProcess:
    """The process of a run that was launched here."""

    def __init__(self, process: subprocess.Popen[bytes], tidings: int, journal: IO[bytes]) -> None:
        """Use `launch`."""
        self._process = process
        self._pipe = open(tidings, "rb", buffering=0)  # noqa: SIM115 - closed by `leave`
        self._tidings = _lines(self._pipe)
        self._journal = journal

    @property
    def pid(self) -> int:
        """The number of the run's process."""
        return self._process.pid

    async def begin(self) -> Path:
        """Waits until the run can be steered, or is over already, if it was so short; returns its directory.

        Raises:
            LabError: the lab has mistakes.
            RequestError: the request has.
            HostLacksError: this machine lacks something that the run needs.
            ControlError: the run ended before it could be steered.
        """
        async for tiding in self._tidings:
            match tiding:
                case Begun(run_dir=run_dir) | Ended(state="finished", run_dir=run_dir):
                    return run_dir
                case Ended(run_dir=run_dir, state=state, reason=reason):
                    raise ControlError(f"the run {state} before it could be steered: {reason}", run_dir=run_dir)
                case refusal:
                    raise refusal.error()
        await self._wait()
        raise ControlError(f"the run ended before it could be steered: {self._last_words()}")

    async def end(self) -> Ended:
        """Waits for the end of the run, and of what follows it; to be used without `begin`, or after it.

        Raises:
            As `begin`; ControlError: its process was killed.
        """
        ended = None
        async for tiding in self._tidings:
            match tiding:
                case Begun():
                    pass
                case Ended():
                    ended = tiding
                case refusal:
                    raise refusal.error()
        await self._wait()
        if ended is None:
            raise ControlError(f"the run was killed: {self._last_words()}")
        return ended

    async def wait(self) -> None:
        """Waits until the process is gone; what it said is then gone, too."""
        await self._wait()
        await self.leave()

    async def leave(self) -> None:
        """Lets go of the run, which goes on."""
        await self._tidings.aclose()
        # Also where nobody had begun to read, or the loop ends before its transport would close it.
        self._pipe.close()
        self._journal.close()
        if self._process.poll() is None:
            # It is nobody's to wait for any more; what is not said so, Popen takes for forgotten.
            self._process.returncode = 0

    async def _wait(self) -> None:
        over = asyncio.Event()
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(self.pid)
            asyncio.get_running_loop().add_reader(process, over.set)
            try:
                await over.wait()
            finally:
                asyncio.get_running_loop().remove_reader(process)
                os.close(process)
        self._process.wait()

    def stop(self) -> None:
        """Asks the run to end in good order."""
        self._process.send_signal(signal.SIGTERM)

    def _last_words(self) -> str:
        """What it said last."""
        self._journal.seek(max(0, self._journal.seek(0, os.SEEK_END) - LAST_WORDS_BYTES))
        lines = self._journal.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def launch(
    request: RunRequest,
    *,
    detached: bool = False,
    behind: int = 0,
    journal: Path | None = None,
    directory: Path | None = None,
    user: User | None = None,
) -> RunProcess:
    """Launches a run; to be called where an event loop runs.

    Args:
        request: What is run.
        detached: Whether it outlives this process.
        behind: By how much nicer it is than this process, which it then lets go first where both want a core.
        journal: The file that gets in plain text what happens in it; None: it is kept until then. The run's process
            holds a lock on it as long as it lives, by which `is_alive` finds it.
        directory: Where files are that a lab without a file names; None: the present directory.
        user: Whose it is; None: ours.

    Raises:
        BlockingIOError: a run of this journal goes on.
        HostLacksError: there is no nice(1), which `behind` takes.
    """
    command = [*([str(program("nice", "coreutils")), f"--adjustment={behind}"] if behind else []), *RUNNER]
    said: IO[bytes] = tempfile.TemporaryFile() if journal is None else _locked(journal)  # noqa: SIM115
    tidings, told = os.pipe()
    with _as_file(request) as asked:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=asked,
            stdout=told,
            stderr=said,
            # What a terminal sends, as at Ctrl-C, is for the face, which then stops its runs.
            start_new_session=True,
            preexec_fn=None if detached else ending_with_us(),
            **({"env": os.environ | {"PYTHONPATH": places()}} if user is None else user.options),
        )
    os.close(told)
    # From its first instruction on, of which to import takes half a second; if Linux does not take it now, it does so.
    is_session_nice(process.pid, min(NICEST, os.getpriority(os.PRIO_PROCESS, 0) + behind))
    if journal is not None:
        # Its lock is the run's alone.
        said.close()
        said = journal.open("rb")
    return RunProcess(process, tidings, said)


def behind_of(runs: int) -> int:
    """By how much nicer guests are than the process of their run, which answers, where so many runs go behind at once.

    Of one run they are as nice as that.
    """
    return round(BEHIND_PER_DOUBLING * math.log2(runs))


def is_alive(journal: Path) -> bool:
    """Whether the process of the run lives that was launched with this journal, by whomever."""
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _locked(journal: Path) -> IO[bytes]:
    """A journal, made empty, with a lock that goes with the last process that has it open as we have."""
    file = journal.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
    except BaseException:
        file.close()
        raise
    return file


def _as_file(request: RunRequest) -> IO[bytes]:
    """A request as an open file, which takes it whole, however late it is read."""
    file = open(os.memfd_create("request"), "w+b")  # noqa: SIM115
    file.write(to_json(request))
    file.seek(0)
    return file


def places() -> str:
    """Where another Python finds this package: its PYTHONPATH."""
    ours = Path(__file__).resolve().parents[2]
    # An empty one would be the present directory.
    return os.pathsep.join(filter(None, [str(ours), os.environ.get("PYTHONPATH")]))


async def _lines(pipe: IO[bytes]) -> AsyncGenerator[Tiding, None]:
    """The tidings that come out of a pipe, up to its end."""
    reader = asyncio.StreamReader(limit=TIDING_BYTES_MAX)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        while line := await reader.readline():
            yield tiding_of(line)
    finally:
        transport.close()
        pipe.close()
