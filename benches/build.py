"""How long a guest takes to be ready, and how much memory it holds: lines of nodes.

    .venv/bin/python benches/build.py [NODES ...]

Ready is from the start of the kernel to all nodes and links up, in host seconds. Memory is the sum of the proportional
set sizes (PSS) of the kernel and its user processes, each address space counted once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import sys
import tempfile
import time
from pathlib import Path

from dilaton.host.here.guests import open_files
from dilaton.host.here.guests.guest import Guest
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan

SYS_KCMP, KCMP_VM = 312, 1
HELPERS_AMONG = 8
"""The kernel's helpers are among the first processes of a guest; no others share memory."""


def line(nodes: int) -> str:
    """A lab of `nodes` nodes in a line."""
    names = [f"n{number}" for number in range(nodes)]
    links = [f"{a} -- {b}" for a, b in itertools.pairwise(names)]
    described = "".join(f"  - {{endpoints: '{link}', rate: 1Gbit, delay: 1ms}}\n" for link in links)
    return "name: line\nnodes:\n" + "".join(f"  {name}:\n" for name in names) + "links:\n" + described


def below(root: int) -> list[int]:
    """A process and all that descend from it; nothing of those that have just ended."""
    try:
        children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    except OSError:
        return []
    return [root, *(pid for child in children for pid in below(int(child)))]


def share_memory(one: int, other: int) -> bool:
    """Whether two processes are threads of one address space, as helpers of the kernel are (kcmp(2), KCMP_VM)."""
    return bool(ctypes.CDLL(None).syscall(SYS_KCMP, one, other, KCMP_VM, 0, 0) == 0)


def pss_bytes(root: int) -> int:
    """The memory of a process and all below it."""
    counted: list[int] = []
    total = 0
    for pid in below(root):
        if not any(share_memory(pid, other) for other in counted[:HELPERS_AMONG]):
            counted.append(pid)
            with contextlib.suppress(OSError):  # It has just ended.
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += sum(int(row.split()[1]) for row in rollup.splitlines() if row.startswith("Pss:")) * 1024
    return total


async def measure(nodes: int) -> str:
    """One row of the table."""
    plan = compile_plan(loads(line(nodes), "line"))
    with tempfile.TemporaryDirectory() as directory:
        run_dir = Path(directory)
        (run_dir / "nodes").mkdir()
        (run_dir / "plan.json").write_text(plan.model_dump_json())
        open_files.allow()
        begin = time.monotonic()
        guest = await Guest.start(Wanted("guest0", plan.guests[0].memory_bytes), Placement(run_dir, jailed=True))
        try:
            booted = time.monotonic()
            await guest.build(lambda _: None)
            ready = time.monotonic()
            memory = pss_bytes(guest.process.pid)
        finally:
            await guest.close()
    return f"| {nodes} | {booted - begin:.2f} | {ready - booted:.2f} | {ready - begin:.2f} | {memory / 2**20:.0f} |"


def main() -> None:
    """Prints the table."""
    print("| nodes | boot, s | build, s | ready, s | memory, MiB |")
    print("| --- | --- | --- | --- | --- |")
    for nodes in [int(text) for text in sys.argv[1:]] or [2, 100, 500]:
        print(asyncio.run(measure(nodes)), flush=True)


if __name__ == "__main__":
    main()
