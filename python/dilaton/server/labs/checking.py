"""Labs are read by workers, each a process in a jail with limits, which see what their labs may name of this machine.

Paths in a lab mean files of the server's machine. Whoever may not use these (`Host.Files`) has their labs read where
only the system is: a file elsewhere is not there. Nobody's lab sees the server's own data.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.host.errors import HostLacksError
from dilaton.host.files import EXAMPLES, program
from dilaton.host.processes import PYTHON
from dilaton.lab.errors import LabError, Problem
from dilaton.server.labs.drawing import Drawing
from dilaton.server.problems import Problem as Refusal
from dilaton.service.errors import RequestError
from dilaton.service.launch import places
from dilaton.service.request import Overrides

WORKER = (*PYTHON, "-m", "dilaton.server.labs.worker")
TEMPLATING = (*PYTHON, "-m", "dilaton.server.labs.templating")
CAPTURING = (*PYTHON, "-m", "dilaton.server.labs.capturing")

CPU_S_MAX = 60
MEMORY_BYTES_MAX = 4 << 30
"""The most address space that a worker may take; its libraries take most of it."""

WAIT_HOST_S_MAX = 300.0
"""After which a worker that takes no CPU is taken to wait for what never comes."""

AT_ONCE = 2

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/sys")
"""What everybody's labs may name: what every program in a guest sees."""

OURS = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[3], EXAMPLES)
"""What the worker itself needs."""


@dataclass(frozen=True)
class Checked:
    """A lab without mistakes.

    Attributes:
        name: Its own.
        doubts: What is likely to be a mistake, and keeps nothing from running.
        drawing: What is drawn of it.
        plan: All that a run of it would do; None: it is only drawn.
    """

    name: str
    doubts: list[Problem]
    drawing: Drawing
    plan: dict[str, Any] | None


class Checker:
    """Reads labs; see `check`."""

    def __init__(self, hidden: Path) -> None:
        """`hidden` is a directory that no lab is to see."""
        self._hidden = hidden.resolve()
        self._free = asyncio.Semaphore(AT_ONCE)

    async def check(self, text: str, overrides: Overrides, *, sees_host: bool, is_drawn: bool = False) -> Checked:
        """Reads a lab as a run would.

        Args:
            text: Of the lab.
            overrides: What counts instead of what it says.
            sees_host: Whether it may name files of this machine.
            is_drawn: Whether only its drawing is wanted, and not its plan.

        Raises:
            LabError: it has mistakes, or takes more than a lab may.
            RequestError: what is to count instead has.
            HostLacksError: this machine lacks something that it needs.
        """
        asked = {"text": text, "overrides": overrides.model_dump(mode="json"), "is_drawn": is_drawn}
        said = await self._said(WORKER, asked, sees_host)
        doubts = [Problem(**doubt) for doubt in said["doubts"]]
        return Checked(said["name"], doubts, Drawing.model_validate(said["drawing"]), said["plan"])

    async def template(self, asked: dict[str, Any], *, sees_host: bool) -> dict[str, Any]:
        """What a template says of itself, or the lab that begins with it.

        Args:
            asked: `text` and `description`; to begin a lab, also its `name` and what was `chosen`.
            sees_host: Whether its lab may name files of this machine.

        Raises:
            LabError, RequestError, HostLacksError: as by `check`.
        """
        return await self._said(TEMPLATING, asked, sees_host)

    async def _said(self, worker: tuple[str, ...], asked: dict[str, Any], sees_host: bool) -> dict[str, Any]:
        """What a worker says of a lab that can be run.

        Raises:
            LabError, RequestError, HostLacksError: it cannot.
        """
        async with self._free:
            said = await _ask([*self._jail(sees_host), *worker], json.dumps(asked).encode())
        if "problems" in said:
            raise LabError([Problem(**problem) for problem in said["problems"]])
        if "wrong" in said:
            raise RequestError(said["wrong"], said["field"])
        if "lacks" in said:
            raise HostLacksError(said["lacks"], said["fix"])
        return said

    async def capture_command(self, asked: dict[str, Any]) -> tuple[str, list[str]]:
        """What is to be executed where to capture in a run, whose plan and filter a worker reads.

        Args:
            asked: As `run.control.following.capture_command` takes it; `plan` as text.

        Raises:
            Refusal: nothing can be captured so.
        """
        async with self._free:
            try:
                said = await _ask([*self._jail(sees_host=False), *CAPTURING], json.dumps(asked).encode())
            except LabError:
                raise Refusal(409, "run-refused", "the plan of the run cannot be read") from None
        if "wrong" in said:
            raise Refusal(422, "argument", said["wrong"])
        return said["node"], said["argv"]

    def _jail(self, sees_host: bool) -> list[str]:
        argv = [str(program("bwrap", "bubblewrap")), "--unshare-all", "--die-with-parent", "--new-session"]
        if sees_host:
            argv += ["--ro-bind", "/", "/"]
        else:
            for path in SYSTEM:
                argv += (
                    ["--symlink", os.readlink(path), path] if Path(path).is_symlink() else ["--ro-bind-try", path, path]
                )
        # What is ours may be below /tmp, and what is hidden below what is ours.
        argv += ["--tmpfs", "/tmp"]  # noqa: S108
        for ours in (*OURS, Path.home() / ".cache/dilaton", Path.home() / ".config/dilaton"):
            argv += ["--ro-bind-try", str(ours), str(ours)]
        argv += ["--tmpfs", str(self._hidden), "--dev", "/dev", "--proc", "/proc"]
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(Path.home()),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "PYTHONPATH": places(),
            # Threads of libraries would each take addresses.
            "OPENBLAS_NUM_THREADS": "1",
        }
        argv += ["--chdir", "/tmp", "--clearenv"]  # noqa: S108
        for name, value in environment.items():
            argv += ["--setenv", name, value]
        return [*argv, "--"]


async def _ask(command: list[str], asked: bytes) -> dict[str, Any]:
    """What a worker says.

    Raises:
        LabError: it took too much, or broke.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=_limit,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(asked), WAIT_HOST_S_MAX)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if not isinstance(error, TimeoutError):
            raise
        output = errors = b""
    try:
        said: dict[str, Any] = json.loads(output)
    except ValueError:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        why = f"it took more than {CPU_S_MAX} s of CPU or {MEMORY_BYTES_MAX >> 30} GiB, or the worker broke"
        raise LabError([Problem("lab.yaml", 0, 0, "", ": ".join(["cannot be read", why, *last]))]) from None
    return said


def _limit() -> None:
    """Limits what this process may use, as the child does before it becomes the jail."""
    for what, most in ((resource.RLIMIT_CPU, CPU_S_MAX), (resource.RLIMIT_AS, MEMORY_BYTES_MAX)):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
