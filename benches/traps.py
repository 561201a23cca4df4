"""What a guest's programs cost where they meet their kernel, kernel by kernel: in CPU time of the host, with the clock.

    PYTHONPATH=python .venv/bin/python benches/traps.py debian 6.12.113 7.2.7 7.2.7+seccomp [--repeat 5]

Names are those of `dilaton kernel list`. Measured are a system call that does nothing, a page fault, a byte there and
back through two pipes between two programs, a file of the host opened, read and closed, and fork, exec and wait of
`true`. In a guest that computes CPU time is virtual time on the work drive, at TDF 1. Kernels take turns, and each
figure is the least of several runs, and the greatest beside it: what else runs on the host only ever adds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import json, mmap, os, time
def cost(turns, act):
    best = float("inf")
    for _ in range(5):
        begin = time.monotonic_ns()
        act(turns)
        best = min(best, (time.monotonic_ns() - begin) / turns / 1000)
    return best
def calls(turns):
    for _ in range(turns): os.getppid()
def faults(turns):
    room = mmap.mmap(-1, turns * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, turns * 4096, 4096): room[at] = 1
    room.close()
def pipes(turns):
    (down, to), (up, back) = os.pipe(), os.pipe()
    if os.fork() == 0:
        for _ in range(turns): os.write(back, os.read(down, 1))
        os._exit(0)
    for _ in range(turns): os.write(to, b"x"); os.read(up, 1)
    os.wait()
    for fd in (down, to, up, back): os.close(fd)
def files(turns):
    for _ in range(turns):
        fd = os.open("/etc/hostname", os.O_RDONLY); os.read(fd, 64); os.close(fd)
def spawns(turns):
    for _ in range(turns): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
print(json.dumps({
    "getppid": cost(2000, calls), "page fault": cost(500, faults), "pipe there and back": cost(300, pipes),
    "open, read, close": cost(300, files), "fork, exec, wait": cost(10, spawns),
}))
"""


def measured(kernel: str) -> dict[str, float]:
    """The costs in one guest of that kernel, microseconds."""
    command = [sys.executable, "-m", "dilaton", "exec", "--", "python3", "-I", "-S", "-c", PROGRAM]
    environment = os.environ | {"DILATON_KERNEL": kernel, "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(run.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {kernel: [] for kernel in asked.kernels}
    for _ in range(asked.repeat):
        for kernel, runs in found.items():
            runs.append(measured(kernel))
    names = list(found[asked.kernels[0]][0])
    print("| us of CPU |", " | ".join(asked.kernels), "|")
    print("| --- |", " | ".join("---" for _ in asked.kernels), "|")
    for name in names:
        cells = [[run[name] for run in runs] for runs in found.values()]
        print(f"| {name} |", " | ".join(f"{min(cell):.1f} (to {max(cell):.1f})" for cell in cells), "|")


if __name__ == "__main__":
    main()
