"""Nodes of a cluster that Slurm looks after: it reserves them and starts a host agent on each, in a step of its own.

Within a job, as of `sbatch` or `salloc`, the nodes are those of the job. Otherwise one is asked for by `salloc`, with
whole nodes and all of their memory, since others on them would make a run late, and what a partition gives who says
nothing may be less than its guests take. It waits in Slurm's queue, and ends with the run, however that ends, as its
program only waits for the end of its standard input. What else there is to say of a job (partition, account, time)
Slurm takes from `SALLOC_…`. Each agent is a step with one task, whose standard streams srun passes on; if a node dies,
or the job's time is over, Slurm ends the job, and so the run, and is asked why.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from dilaton.cluster.engines.asking import Asking
from dilaton.cluster.engines.engine import Host
from dilaton.cluster.engines.processes import last_line
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.processes import ending_with_us
from dilaton.host.tasks import within

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

JOB, NODES, CPUS = "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE"
MEMORY, MEMORY_OF_CPU = "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"
TOLD = (JOB, NODES, CPUS, MEMORY, MEMORY_OF_CPU)
"""What Slurm tells a program of its job; memory in MiB, where it was asked for."""

SAY_JOB = "; ".join([*(f'printf "%s\\n" "${name}"' for name in TOLD), "exec cat"])
"""The program of a job that was asked for: says what Slurm has told it, and waits."""

ASKED_MEMORY = "SALLOC_MEM_PER_"
"""How the variables begin by which whoever asks for a job says how much memory it is to have."""

WHY_HOST_S_MAX = 0.4
"""In which Slurm says why it has ended a job; whoever asks for that does not wait much longer."""

END_HOST_S_MAX = 10.0


@dataclass(frozen=True)
class Job:
    """A job, which has nodes.

    Attributes:
        number: Its number.
        nodes: The names of its nodes.
        cpus: How many each of them gives it.
        memory_bytes: How much each of them gives it.
    """

    number: str
    nodes: Sequence[str]
    cpus: Sequence[int]
    memory_bytes: Sequence[float]


def given() -> int | None:
    """How many nodes the job has in which this program runs; None: it runs in none."""
    return len(repeated(os.environ[CPUS])) if os.environ.get(JOB) else None


def repeated(counts: str) -> list[int]:
    """The numbers that Slurm writes as `2(x3),4`.

    Raises:
        ValueError: It is none of that.
    """
    found = []
    for each in counts.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", each)
        if match is None:
            raise ValueError(f"{counts!r}: not the counts of a job's nodes, such as 2(x3),4")
        found += [int(match[1])] * int(match[2] or 1)
    return found


def memory_bytes(told: Mapping[str, str], cpus: Sequence[int]) -> list[float]:
    """How much memory each node gives a job, as was said when it was asked for; else as much as there is."""
    if told.get(MEMORY, "").isdigit():
        return [float(int(told[MEMORY]) << 20)] * len(cpus)
    if told.get(MEMORY_OF_CPU, "").isdigit():
        return [float((int(told[MEMORY_OF_CPU]) << 20) * count) for count in cpus]
    return [math.inf] * len(cpus)


class Slurm(Asking):
    """The engine of so many nodes."""

    def __init__(self, machines: int, program: Sequence[str], hub: str) -> None:
        """Asks for nothing yet.

        Args:
            machines: How many nodes.
            program: The command of Dilaton's on them.
            hub: As `Asking` has it.
        """
        super().__init__(hub)
        self._machines, self._program = machines, program
        self._asked: asyncio.subprocess.Process | None = None
        self._job: Job | None = None
        self._addresses: dict[str, str] = {}

    @property
    def names(self) -> Sequence[str]:
        """See `Asking`."""
        return () if self._job is None else self._job.nodes[: self._machines]

    @property
    def fix(self) -> str:
        """See `Asking`."""
        return f"srun --nodelist={','.join(self.names)} {' '.join(self._program)} doctor"

    def _command(self, name: str) -> Sequence[str]:
        assert self._job is not None
        step = ["--nodes=1", "--ntasks=1", f"--nodelist={name}", f"--cpus-per-task={self._cpus(name)}", "--mem=0"]
        # All of the job's node is the run's, beside whatever else runs in the job.
        step += ["--overlap", "--cpu-bind=none", "--unbuffered", "--quiet", f"--jobid={self._job.number}"]
        return ["srun", *step, *self._program, "cluster", "host-agent"]

    def _cpus(self, name: str) -> int:
        assert self._job is not None
        return self._job.cpus[list(self._job.nodes).index(name)]

    def _reached_at(self, name: str) -> str | None:
        return self._addresses[name]

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """See `Engine`: it may wait until Slurm has nodes."""
        told = dict(os.environ) if os.environ.get(JOB) else await self._ask_for_job()
        nodes = (await _printed("scontrol", "show", "hostnames", told[NODES])).split()
        cpus = repeated(told[CPUS])
        self._job = job = Job(told[JOB], nodes, cpus, memory_bytes(told, cpus))
        if len(nodes) < self._machines:
            raise HostLacksError(
                f"job {job.number} has {len(nodes)} nodes, and the run is to have {self._machines}",
                f"salloc --nodes={self._machines} --exclusive",
            )
        for name in self.names:
            shown = await _printed("scontrol", "show", "node", name, "--oneliner")
            self._addresses[name] = addresses[1] if (addresses := re.search(r"\bNodeAddr=(\S+)", shown)) else name
        found = await super().hosts(planned, jailed=jailed)
        return [
            replace(host, memory_bytes=int(min(host.memory_bytes, given_bytes)))
            for host, given_bytes in zip(found, job.memory_bytes, strict=False)
        ]

    async def ended(self, host: Host) -> str:
        """See `Engine`: with the reason for which Slurm has ended the job, if it has."""
        how = await super().ended(host)
        return "; ".join(filter(None, [how, await self._why()]))

    async def _why(self) -> str:
        """What Slurm says of a job that does not run any more; empty where it runs, or that is not known in time."""
        assert self._job is not None
        try:
            asking = _printed("scontrol", "show", "job", self._job.number, "--oneliner")
            shown = await within(WHY_HOST_S_MAX, asking)
        except (TimeoutError, GuestError, HostLacksError):
            return ""
        found = re.search(r"\bJobState=(\S+) Reason=(\S+)", shown)
        if found is None or found[1] == "RUNNING":
            return ""
        return f"job {self._job.number} is over for Slurm: {found[1]}, {found[2]}"

    async def _ask_for_job(self) -> Mapping[str, str]:
        """Waits for a job of one's own; what Slurm tells of it."""
        command = ["salloc", f"--nodes={self._machines}", "--exclusive", "--job-name=dilaton"]
        if not any(name.startswith(ASKED_MEMORY) for name in os.environ):
            command.append("--mem=0")
        with tempfile.TemporaryFile() as errors:
            self._asked = asked = await _started(*command, "sh", "-c", SAY_JOB, errors=errors)
            assert asked.stdout is not None
            lines = [(await asked.stdout.readline()).decode().rstrip("\n") for _ in TOLD]
            if not lines[0]:
                await asked.wait()
                raise GuestError(f"Slurm gives no {self._machines} nodes: {last_line(errors)}")
        return dict(zip(TOLD, lines, strict=True))

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        """See `Engine`: a job that was asked for is given back."""
        await super().stop(lost)
        asked, self._asked = self._asked, None
        if asked is None or asked.returncode is not None:
            return
        assert asked.stdin is not None
        asked.stdin.close()
        if self._job is None:
            # It still waits in the queue.
            asked.terminate()
        with contextlib.suppress(TimeoutError):
            await within(END_HOST_S_MAX, asked.wait())
            return
        asked.kill()
        await asked.wait()


async def _started(*command: str, errors: IO[bytes]) -> asyncio.subprocess.Process:
    """Starts a program of Slurm's, which ends with this one.

    Raises:
        HostLacksError: It is not there.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True, preexec_fn=ending_with_us()
        )
    except OSError as error:
        what = f"{command[0]} cannot be started ({error.strerror}): Slurm's programs are not on this machine"
        raise HostLacksError(what, "apt install slurm-client, or use --onto") from error


async def _printed(*command: str) -> str:
    """What a program of Slurm's prints.

    Raises:
        HostLacksError: It is not there.
        GuestError: It fails.
    """
    with tempfile.TemporaryFile() as errors:
        process = await _started(*command, errors=errors)
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise GuestError(f"{' '.join(command)} failed: {last_line(errors)}")
    return printed.decode(errors="replace")
