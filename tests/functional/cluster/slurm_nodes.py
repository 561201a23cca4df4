"""A Slurm of two nodes, both this machine, in namespaces of its own: the real one, installed or unpacked in target/slurm.

An ordinary user makes it. Its daemons refuse to be root where they cannot change groups, as in a namespace of one user, so
they are another user of a second one.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import PATIENCE_HOST_S, ROOT, command_line, environment

UNPACKED = ROOT / "target/slurm/usr"
"""Where `./dev engines` unpacks Debian's packages."""

IS_THERE = UNPACKED.is_dir() or bool(shutil.which("slurmctld") and shutil.which("salloc"))

CONDUCTOR = "10.78.0.1"

NOBODY = 65534

# Slurm keeps what can never be had in its queue, unless it is told to refuse it; and its limits, ten seconds for an answer and
# two for a connection, are for machines that do nothing else.
SETTINGS = """ClusterName=dilaton
SlurmctldHost=localhost({conductor})
SlurmctldPidFile={directory}/slurmctld.pid
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/%n
SlurmdPidFile={directory}/%n.pid
SlurmUser=nobody
SlurmdUser=nobody
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
EnforcePartLimits=ALL
MessageTimeout=100
TCPTimeout=60
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
NodeName=td[1-2] NodeHostname=localhost NodeAddr={conductor} Port=[17821-17822] CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes=ALL DefMemPerCPU=10 MaxTime=30 State=UP
"""

MAKE = """set -e
ip link set lo up
ip link add slurm0 type veth peer name slurm1
ip address add {conductor}/24 dev slurm0
ip link set slurm0 up
ip link set slurm1 up
[ ! -d {unpacked} ] || mount -t overlay overlay -o lowerdir={unpacked}:/usr /usr
exec unshare --user --map-user={nobody} --map-group={nobody} sh -c '
    slurmctld -D & slurmd -D -N td1 & slurmd -D -N td2 & exec sleep infinity'
"""


@dataclass(frozen=True)
class SlurmNodes:
    """The cluster."""

    directory: Path
    pid: int
    """Of who holds its namespaces."""

    def entered(self, *command: str) -> list[str]:
        """A command, executed on both nodes, which are one machine."""
        return ["nsenter", f"--target={self.pid}", "--user", "--mount", "--net", "--preserve-credentials", *command]

    def environment(self) -> dict[str, str]:
        """That of whoever uses it."""
        program = ["env", f"PYTHONPATH={environment()['PYTHONPATH']}", sys.executable, "-m", "dilaton"]
        ours = {"SLURM_CONF": str(self.directory / "slurm.conf"), "DILATON_REMOTE": shlex.join(program)}
        return environment() | ours | {"XDG_CACHE_HOME": str(self.directory / "cache")}

    def done(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a command there to its end."""
        command_there = self.entered(*map(str, command))
        return subprocess.run(
            command_there, env=self.environment(), capture_output=True, text=True, check=False, cwd=self.directory
        )

    def dilaton(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs `dilaton` there to its end."""
        return self.done(*command_line(*arguments))

    @contextlib.contextmanager
    def started(self, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
        """Starts `dilaton` there, and ends it with the context."""
        command = self.entered(*command_line(*arguments))
        with subprocess.Popen(command, env=self.environment(), stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def jobs(self) -> str:
        """The jobs that there are, a line each."""
        return self.done("squeue", "--noheader").stdout


@contextlib.contextmanager
def slurm_nodes(directory: Path) -> Iterator[SlurmNodes]:
    """The cluster, for as long as the context is."""
    if UNPACKED.is_dir():
        # Debian's packages make these when they are installed.
        for name in ("slurmctld", "slurmd", "slurmstepd"):
            with contextlib.suppress(FileExistsError):
                (UNPACKED / "sbin" / name).symlink_to(f"{name}-wlm")
    (directory / "slurm.conf").write_text(SETTINGS.format(directory=directory, conductor=CONDUCTOR))
    for name in ("state", "td1", "td2", "cache"):
        (directory / name).mkdir()
    make = MAKE.format(conductor=CONDUCTOR, unpacked=UNPACKED, nobody=NOBODY)
    command = ["unshare", "--user", "--map-root-user", "--mount", "--net"]
    with (directory / "daemons.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "sh", "-c", make],
            env=os.environ | {"SLURM_CONF": str(directory / "slurm.conf")},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + PATIENCE_HOST_S
        # It is what waits itself in the end.
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n" or not is_up(
            SlurmNodes(directory, process.pid)
        ):
            assert time.monotonic() < end and process.poll() is None, (directory / "daemons.log").read_text()
            time.sleep(0.1)
        yield SlurmNodes(directory, process.pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_up(nodes: SlurmNodes) -> bool:
    """Whether both nodes can be had."""
    return nodes.done("sinfo", "--noheader", "--format=%T %D").stdout == "idle 2\n"
