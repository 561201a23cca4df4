"""The keeper of Ray on this machine (`own.py`): all of Ray's processes are below it, and none is left when it is gone.

Ray's programs start others and leave them. Linux gives those to the nearest ancestor that has asked for it
(PR_SET_CHILD_SUBREAPER), which is this process. Where Ray has its files the head says to all machines.

Ray makes its workers as nice as can be (15), and so would be what they start: a guest for which it has reserved a core
would get a thirtieth of one beside other work. Here it is as nice as who has started the cluster.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from dilaton.cluster import own
from dilaton.cluster.own import Part
from dilaton.host.processes import ending_with_us

PR_SET_CHILD_SUBREAPER = 36
"""prctl(2)"""

NICENESS = "RAY_worker_niceness"
"""The variable by which Ray is told how much nicer its workers are to be than itself."""

START_HOST_S_MAX = 60.0

LOOK_HOST_S = 0.2


class Ended(Exception):
    """It is over, and why."""


def command(part: Part, number: int, directory: Path) -> list[str]:
    """What starts Ray for one of the machines that this one is."""
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--node-ip-address={part.address}"]
    ray += ["--disable-usage-stats", "--include-log-monitor=false", "--object-store-memory=80000000"]
    if part.is_head and number == 0:
        port = part.head.rpartition(":")[2]
        return [*ray, "--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={directory}"]
    return [*ray, f"--address={part.head}"]


def below(pid: int) -> list[int]:
    """The processes below one."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *below(child)]
    return found


def end_all() -> None:
    """Kills all that is below this process, until nothing is."""
    while everything := below(os.getpid()):
        for pid in everything:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def machines_alive(log: Path) -> int:
    """How many of Ray's machines have said that they run."""
    return log.read_text(errors="replace").count("Ray runtime started.")


def keep(part: Part, directory: Path) -> None:
    """Keeps Ray until the first of it ends, or somebody wants its end.

    Raises:
        Ended: Always.
    """
    log, started = own.directory() / "keeper.log", []
    for number in range(part.machines):
        process = subprocess.Popen(
            command(part, number, directory),
            env={NICENESS: "0"} | os.environ,
            stdout=2,
            stdin=subprocess.DEVNULL,
            preexec_fn=ending_with_us(),
        )
        started.append(process)
        end = time.monotonic() + START_HOST_S_MAX
        while machines_alive(log) <= number:
            if process.poll() is not None or time.monotonic() > end:
                raise Ended(f"it did not come up; {log} says why")
            time.sleep(LOOK_HOST_S)
    print("ready", flush=True)
    os.close(1)
    while all(process.poll() is None for process in started):
        time.sleep(LOOK_HOST_S)
    raise Ended("a part of it has ended")


def main() -> int:
    """Keeps what is noted; returns the exit status. Its argument is the lock that it holds."""

    def stop(*_: object) -> None:
        raise Ended("it was stopped")

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, stop)
    noted = own.directory()
    status = 0
    directory = own.files((noted / "token").read_text())
    try:
        fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)
        (noted / "keeper.pid").write_text(str(os.getpid()))
        keep(Part(**json.loads((noted / "part.json").read_text())), directory)
    except Ended as ended:
        status = 0 if str(ended) == "it was stopped" else 1
        with contextlib.suppress(OSError):
            print(ended, flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all()
        shutil.rmtree(directory, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
