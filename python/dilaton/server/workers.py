"""Workers: processes in a jail with limits, which read what others wrote. What one does to itself no other meets.

A worker sees the system, what is ours, and the store of images, all of it read-only, and neither the network nor the
server's own data. What else one sees is said where it is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dilaton.host.files import EXAMPLES, program
from dilaton.host.tasks import within
from dilaton.images.store import default_directory as images_directory
from dilaton.server.priority import as_begun
from dilaton.service.launch import places

Result = TypeVar("Result")

CPU_S_MAX = 60
MEMORY_BYTES_MAX = 4 << 30
"""The most address space that a worker may take; its libraries take most of it."""

LIMITS = {resource.RLIMIT_CPU: CPU_S_MAX, resource.RLIMIT_AS: MEMORY_BYTES_MAX}
"""What each worker may take, as setrlimit(2) has it."""

OWN = "/tmp/own"  # noqa: S108
"""Where a worker that shares its jail has files that the others do not see."""

WAIT_HOST_S_MAX = 300.0
"""After which a worker that takes no CPU is taken to wait for what never comes."""

LINE_BYTES_MAX = 16 << 20
"""Of what a worker says at once."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/sys")
"""What everybody's labs may name: what every program in a guest sees."""

OURS = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[2], EXAMPLES)
"""What the worker itself needs."""

PASSED_ON = ("XDG_DATA_HOME",)
"""Variables that say where things are."""

OF_NETWORK = ("XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")
"""Those that say how registries are reached."""

CREDENTIALS = (Path.home() / ".config/containers", Path.home() / ".docker/config.json")
"""Where those of this account for registries are, beside `$XDG_RUNTIME_DIR/containers`."""


TELL_HOST_S = 0.5
"""How often a worker tells how far it is."""


def teller() -> Callable[[str, int], None]:
    """For a worker: tells by a line, from time to time, how far something is, as `lines_of` hears it."""
    told = 0.0

    def tell(what: str, size_bytes: int) -> None:
        nonlocal told
        if time.monotonic() - told >= TELL_HOST_S:
            told = time.monotonic()
            print(json.dumps({"what": what, "bytes": size_bytes}), flush=True)

    return tell


_BETWEEN: set[asyncio.Task[Any]] = set()
"""What starts processes, or waits for their ends."""


class BrokenError(Exception):
    """A worker took more than it may, or broke; the text says what is known."""


def jail(
    hidden: Path,
    *,
    sees_host: bool = False,
    has_network: bool = False,
    reaches_runs: bool = False,
    is_shared: bool = False,
    reads: Sequence[Path] = (),
    writes: Sequence[Path] = (),
) -> list[str]:
    """The command line of a jail, to which that of the worker is added.

    Args:
        hidden: A directory that nothing in it sees.
        sees_host: Whether it sees the files of this machine.
        has_network: Whether it reaches what this machine reaches, with this account's credentials for registries.
        reaches_runs: Whether it reaches the control sockets of runs, whose names are those of this machine's network.
        is_shared: Whether several workers are in it, one after the other or at once: then none writes anything there.
        reads: Directories that it sees as well, also below what is hidden.
        writes: Directories in which it may write.
    """
    argv = [str(program("bwrap", "bubblewrap")), "--unshare-all", "--die-with-parent", "--new-session"]
    passed = (*PASSED_ON, *(OF_NETWORK if has_network else ()))
    if has_network or reaches_runs:
        argv += ["--share-net"]
    if sees_host:
        argv += ["--ro-bind", "/", "/"]
    else:
        for path in SYSTEM:
            argv += ["--symlink", os.readlink(path), path] if Path(path).is_symlink() else ["--ro-bind-try", path, path]
    # What is ours may be below /tmp, and what is hidden below what is ours.
    argv += ["--tmpfs", "/tmp"]  # noqa: S108
    seen = [*OURS, Path.home() / ".cache/dilaton", Path.home() / ".config/dilaton", images_directory()]
    if has_network:
        seen += [*CREDENTIALS, Path(os.environ.get("XDG_RUNTIME_DIR", "/run/none")) / "containers"]
    # Only what is there, so that the command is another one once there is more, as after the first image.
    for ours in filter(Path.exists, seen):
        argv += ["--ro-bind-try", str(ours), str(ours)]
    argv += ["--tmpfs", str(hidden), "--dev", "/dev", "--proc", "/proc"]
    for place in reads:
        argv += ["--ro-bind", str(place), str(place)]
    for place in writes:
        argv += ["--bind", str(place), str(place)]
    if is_shared:
        argv += ["--dir", OWN]
        for path in ("/tmp", str(hidden), "/dev", "/"):  # noqa: S108
            argv += ["--remount-ro", path]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(Path.home()),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONPATH": places(),
        # Threads of libraries would each take addresses.
        "OPENBLAS_NUM_THREADS": "1",
    } | {name: os.environ[name] for name in passed if name in os.environ}
    argv += ["--chdir", "/tmp", "--clearenv"]  # noqa: S108
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    return [*argv, "--"]


async def answer_of(command: Sequence[str], asked: bytes) -> dict[str, Any]:
    """What a worker says that is asked one thing, with limits of CPU and memory.

    Raises:
        BrokenError: it took too much, or broke.
    """
    return await answer(await begun(command), asked)


async def begun(command: Sequence[str]) -> Process:
    """A worker that waits for what it is asked, with limits of CPU and memory."""
    pipe = asyncio.subprocess.PIPE
    return await started(_limited(command), stdin=pipe, stdout=pipe, stderr=pipe)


async def answer(process: Process, asked: bytes) -> dict[str, Any]:
    """What a worker says that is asked one thing, after which it is gone.

    Raises:
        BrokenError: it took too much, or broke.
    """
    try:
        output, errors = await within(WAIT_HOST_S_MAX, process.communicate(asked))
    except BaseException as error:
        await ended(process)
        if not isinstance(error, TimeoutError):
            raise
        output = errors = b""
    return said_by(output, errors)


def said_by(output: bytes, errors: bytes) -> dict[str, Any]:
    """What a worker says by its output.

    Raises:
        BrokenError: that is nothing; the last line of `errors` may say why.
    """
    try:
        said: dict[str, Any] = json.loads(output)
    except ValueError:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        why = f"it took more than {CPU_S_MAX} s of CPU or {MEMORY_BYTES_MAX >> 30} GiB, or the worker broke"
        raise BrokenError(": ".join([why, *last])) from None
    return said


async def lines_of(
    command: list[str], asked: bytes, file_bytes_max: int | None = None
) -> AsyncGenerator[dict[str, Any], None]:
    """What a worker says that works for long, line by line as it says it. Once nobody listens there is no worker.

    Args:
        command: Of the worker.
        asked: What it is asked.
        file_bytes_max: How large a file it writes may be; None: any size.

    Raises:
        BrokenError: it broke.
    """
    if file_bytes_max is not None:
        command = [str(program("prlimit", "util-linux")), f"--fsize={file_bytes_max}", "--", *command]
    pipe = asyncio.subprocess.PIPE
    process = await started(command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=LINE_BYTES_MAX)
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(asked)
        process.stdin.close()
        async for line in process.stdout:
            yield json.loads(line)
    except ValueError:
        raise BrokenError("it says what is no JSON") from None
    finally:
        await ended(process)


async def ended(process: Process) -> None:
    """Ends a worker, and lets go of its pipes, which what it began may have for a moment more."""
    transport = process._transport  # type: ignore[attr-defined]
    if transport._proc is not None:
        # To kill and to close ask first, by a waitpid(2) that would take the end of the process from asyncio's thread.
        transport._proc.poll = lambda: None if is_alive(process) else 0
    if is_alive(process):
        process.kill()
    # Before anything is waited for, in which the server may end. There is no public way to it; otherwise pipes stay
    # open until the last who has them ends.
    transport.close()
    await asyncio.shield(_noted(process.wait()))


def is_alive(process: Process) -> bool:
    """Whether a process has not ended, which asyncio hears of a moment later than the kernel."""
    if process.returncode is not None:
        # Its number may be another's by now.
        return False
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False


async def settled() -> None:
    """Waits until no process starts or ends any more, before the server's loop does."""
    while _BETWEEN:
        await asyncio.wait(_BETWEEN)


async def started(command: Sequence[str], **settings: Any) -> Process:
    """A process, with settings as of `asyncio.create_subprocess_exec`.

    Of one whose start is given up, asyncio leaves pipes open, or waits for its end without ending it. So what nobody
    wants any more is ended once it is there. It does not go first where this server does.
    """
    start = _noted(asyncio.create_subprocess_exec(*as_begun(), *command, **settings))

    async def unwanted() -> None:
        await ended(await start)

    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        _noted(unwanted())
        raise


def _noted(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Has something done for which a server that ends waits."""
    task = asyncio.create_task(work)
    _BETWEEN.add(task)
    task.add_done_callback(_BETWEEN.discard)
    return task


def limit_of(what: int) -> int:
    """How much of something a worker may take, which is no more than this process may."""
    hard = resource.getrlimit(what)[1]
    return LIMITS[what] if hard == resource.RLIM_INFINITY else min(LIMITS[what], hard)


def _limited(command: Sequence[str]) -> list[str]:
    """A command with limits of what it may use.

    By a program, since what Python could do in the child before it becomes the command takes a copy of this process's
    memory map each time, for which all who ask something wait.
    """
    words = []
    for option, what in (("cpu", resource.RLIMIT_CPU), ("as", resource.RLIMIT_AS)):
        words.append(f"--{option}={limit_of(what)}")
    return [str(program("prlimit", "util-linux")), *words, "--", *command]
