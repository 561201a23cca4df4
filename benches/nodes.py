"""How much more a node takes than a bare loop that makes the same of its kernel: memory of its guest, and CPU time.

    PYTHONPATH=python:. .venv/bin/python benches/nodes.py [--few 20] [--many 120] [--repeat 3]

The loop (`nodes.c`) runs in a guest, too: a process for each node with namespaces of its own, and a pair of veth(4) to
the one before. It mounts nothing, and has no addresses, control groups and queues, all of which a node has. Memory is
what /proc/meminfo says in the guest when all nodes are there, of many less of few, by their number. So is CPU time: of
the loop in virtual time of its guest on the work drive, of nodes what all processes of a run took. Figures are
least and greatest of the turns, the distance that of their medians.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from traps import ROOT, in_guest

KINDS = ("Slab", "KernelStack", "PageTables", "Percpu", "AnonPages")
"""Of /proc/meminfo, beside `FREE`."""

FREE = "MemFree"
TIME = "CPU, us"


def memory(text: str) -> dict[str, float]:
    """What /proc/meminfo says, kB: what there is of each kind, and all that is not free."""
    lines = (line.partition(":") for line in text.splitlines())
    said = {name: float(rest.split()[0]) for name, _, rest in lines if rest}
    return {**{name: said[name] for name in KINDS}, "all": said["MemTotal"] - said[FREE]}


def loop(program: Path, nodes: int) -> dict[str, float]:
    """What the loop takes for so many nodes."""
    before, after, took_s = in_guest(str(program), str(nodes)).split("end\n")
    begin = memory(before)
    return {name: kb - begin[name] for name, kb in memory(after).items()} | {TIME: float(took_s) * 1e6}


def line(directory: Path, nodes: int) -> dict[str, float]:
    """What there is in a guest with a line of so many nodes, and what its run took."""
    names = [f"n{number}" for number in range(nodes)]
    links = [{"endpoints": f"{one} -- {other}"} for one, other in itertools.pairwise(names)]
    run = [{"on": names[0], "name": "memory", "exec": "cat /proc/meminfo"}]
    lab, out = directory / "lab.yaml", Path(tempfile.mkdtemp(dir=directory)) / "run"
    lab.write_text(json.dumps({"name": "line", "nodes": {name: {} for name in names}, "links": links, "run": run}))
    command = [sys.executable, "-m", "dilaton", "run", str(lab), "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return memory((out / "nodes" / names[0] / "memory.stdout").read_text()) | {TIME: took_s * 1e6}


def each(few: dict[str, float], many: dict[str, float], more: int) -> dict[str, float]:
    """What one more takes, of two numbers of nodes."""
    return {name: (many[name] - few[name]) / more for name in few}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=20, metavar="N")
    parser.add_argument("--many", type=int, default=120, metavar="N")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    asked = parser.parse_args()
    more = asked.many - asked.few
    bare: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        # Where guests see it.
        program = ROOT / "target" / "nodes"
        subprocess.run(["cc", "-O2", "-static", "-o", program, ROOT / "benches" / "nodes.c"], check=True)
        for _ in range(asked.repeat):
            bare.append(each(loop(program, asked.few), loop(program, asked.many), more))
            ours.append(each(line(directory, asked.few), line(directory, asked.many), more))
            print(json.dumps([bare[-1], ours[-1]]), file=sys.stderr, flush=True)
    print("| a node: kB | loop | line | distance |", "| --- | --- | --- | --- |", sep="\n")
    for kind in bare[0]:
        loops, lines = [turn[kind] for turn in bare], [turn[kind] for turn in ours]
        least = statistics.median(loops)
        # A few nodes may take nothing more of what the kernel hands out by many.
        distance = f"{statistics.median(lines) / least:.2f}" if least else "none"
        spans = [f"{min(turns):.0f} to {max(turns):.0f}" for turns in (loops, lines)]
        print(f"| {kind} | {' | '.join(spans)} | {distance} |")


if __name__ == "__main__":
    main()
