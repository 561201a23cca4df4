"""The known disks as fio measures them, beside their data sheets; and what requests cost the host.

    PYTHONPATH=python .venv/bin/python benches/disks.py [--costs] [--figure docs/disks.svg]

Latencies are those of fio from submission to end, in virtual time; they have the CPU time of the guest's kernel and of
fio in them, of which a TDF of 50 leaves little. Costs are at TDF 1, where a virtual second is a second of the guest's
CPU and what it is idle. docs/disks.md and SPECIFICATION.md quote both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

from dilaton.report.style import COLOURS, WIDTH_IN, applied, below

FIO = "fio --direct=1 --ioengine=libaio --output-format=json+"
DEPTHS = (1, 2, 4, 8, 16, 32)
PATTERNS = {
    "randread": "random read",
    "read": "sequential read",
    "write": "sequential write",
    "randwrite": "random write",
}
"""In an order in which what is left in write caches disturbs nobody."""
DRAWN = "randread"
QUOTED_DEPTHS = (1, 4, 32)
"""In the table, and of all patterns but that of the figure."""


@dataclass(frozen=True)
class Sheet:
    """What is specified of a disk's random reads: by its maker, or where that says nothing by its flash."""

    requests: int
    """That a job makes."""
    one_ms: float
    """The mean latency of one at a time."""
    per_s: float | None
    """At a depth of 32; None: it is not said."""


SHEETS = {
    "hdd-7200": Sheet(400, 8.5 + 8.333 / 2 + 0.1, None),
    "hdd-15k": Sheet(400, 3.5 + 4 / 2 + 0.06, None),
    "ssd-sata": Sheet(4000, 0.05, 75_000),
    "nvme": Sheet(4000, 0.0769, None),
}

COSTS = {
    "nvme, random reads, fio as it is": "--filename=/dev/vda --rw=randread --bs=4k --iodepth=32 --number_ios=20000",
    "nvme, random reads, fio without clock": (
        "--filename=/dev/vda --rw=randread --bs=4k --iodepth=32 --number_ios=20000 --gtod_reduce=1"
    ),
    "nvme, random writes, fio without clock": (
        "--filename=/dev/vda --rw=randwrite --bs=4k --iodepth=32 --number_ios=20000 --gtod_reduce=1"
    ),
    "nvme, random reads, 16 at once": (
        "--filename=/dev/vda --rw=randread --bs=4k --iodepth=32 --number_ios=40000 --gtod_reduce=1 "
        "--iodepth_batch=16 --iodepth_batch_complete_min=16 --iodepth_batch_complete_max=32"
    ),
    "nvme, sequential writes": "--filename=/dev/vda --rw=write --bs=1M --iodepth=4 --size=1G",
    "nvme, sequential reads": "--filename=/dev/vda --rw=read --bs=1M --iodepth=4 --size=1G",
    "ram, sequential writes": "--filename=/tmp/x --direct=0 --rw=write --bs=1M --size=256M",
    "ram, sequential reads": "--filename=/tmp/x --direct=0 --rw=read --bs=1M --size=256M",
}
"""Options of fio. `ram` is a file in the node's memory."""


def run(directory: Path, name: str, tdf: int, node: Mapping[str, Any], options: str) -> dict[str, Any]:
    """Runs fio in a lab of one node; what it says of each of its jobs, by name."""
    process = {"on": "a", "name": "fio", "exec": f"{FIO} {options}"}
    lab = {"name": "disks", "time": {"tdf": str(tdf)}, "nodes": {"a": node}, "run": [process]}
    path, out = directory / f"{name}.yaml", directory / name
    path.write_text(json.dumps(lab))
    subprocess.run([sys.executable, "-m", "dilaton", "run", path, "--out", out], check=True, capture_output=True)
    text = (out / "nodes" / "a" / "fio.stdout").read_text()
    jobs = json.loads(text[text.index("{") :])["jobs"]
    return {job["jobname"]: job["read"] if job["read"]["total_ios"] else job["write"] for job in jobs}


def latencies(model: str, directory: Path) -> dict[str, Any]:
    """All patterns at all depths, one after the other, by one fio, since starting one costs seconds at this TDF."""
    options = "--filename=/dev/vda"
    for pattern in PATTERNS:
        for depth in DEPTHS if pattern == DRAWN else QUOTED_DEPTHS:
            size, count = ("4k", SHEETS[model].requests) if pattern.startswith("rand") else ("1M", 100)
            options += f" --name={pattern}-{depth} --stonewall --rw={pattern} --bs={size}"
            options += f" --iodepth={depth} --number_ios={count}"
    return run(directory, model, 50, {"disk": {"model": model, "mount": "none"}}, options)


def print_latencies(model: str, found: Mapping[str, Any]) -> None:
    """The rows of a disk."""
    for pattern, words in PATTERNS.items():
        for depth in QUOTED_DEPTHS:
            part = found[f"{pattern}-{depth}"]
            p50, p99 = (part["clat_ns"]["percentile"][f"{share}.000000"] / 1e6 for share in (50, 99))
            is_random = pattern.startswith("rand")
            rate = f"{part['iops']:,.0f}" if is_random else f"{part['bw_bytes'] / 1e6:,.0f} MB/s"
            mean = part["clat_ns"]["mean"] / 1e6
            print(f"| {model} | {words}, {depth} | {rate} | {mean:.3f} | {p50:.3f} | {p99:.3f} |", flush=True)


def draw(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """How latencies of random reads are distributed at each depth, and what the data sheets say."""
    figure = Figure(figsize=(WIDTH_IN, 4.4))
    for where, (model, of_model) in zip(figure.subplots(2, 2, sharey=True).flat, found.items(), strict=True):
        for number, depth in enumerate(DEPTHS):
            bins = {int(ns): count for ns, count in of_model[f"{DRAWN}-{depth}"]["clat_ns"]["bins"].items()}
            ends = sorted(bins)
            share = np.cumsum([bins[end] for end in ends]) / sum(bins.values())
            where.step([end / 1e6 for end in ends], share, where="post", color=COLOURS[number], label=f"depth {depth}")
        sheet = SHEETS[model]
        where.axvline(sheet.one_ms, color="black", linestyle=":", label="specified: mean of one at a time")
        if sheet.per_s:
            least_ms = DEPTHS[-1] / sheet.per_s * 1e3
            where.axvline(least_ms, color="black", linestyle="--", label="specified: mean at depth 32, of its IOPS")
            legend = where.get_legend_handles_labels()
        where.set_xscale("log")
        where.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        where.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        where.xaxis.set_minor_formatter(NullFormatter())
        where.set_title(model)
        where.set_xlabel("latency (ms)")
        where.set_ylabel("share of requests")
    below(figure, *legend)
    return figure


def costs(directory: Path) -> None:
    """Prints what requests and bytes cost, each in a run of its own."""
    print("| what | requests per host second | MB per host second |\n| --- | --- | --- |")
    for what, options in COSTS.items():
        node = {"disk": {"model": "nvme", "mount": "none"}} if what.startswith("nvme") else {}
        name = what.replace(", ", "-").replace(" ", "-")
        part = run(directory, name, 1, node, f"--name=x {options}")["x"]
        # At least: in a virtual second there is no more than one of the CPU.
        print(f"| {what} | {part['iops']:,.0f} | {part['bw_bytes'] / 1e6:,.0f} |", flush=True)


def main() -> None:
    """Measures the costs, then all known disks."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--figure", type=Path, help="where the figure of the random reads goes")
    parser.add_argument("--costs", action="store_true", help="what requests cost, and no more")
    chosen = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        costs(Path(directory))
        if chosen.costs:
            return
        print(
            "\n| disk | what, depth | IOPS or MB/s | mean, ms | median | 99 % |\n| --- | --- | --- | --- | --- | --- |"
        )
        for model in SHEETS:
            found[model] = latencies(model, Path(directory))
            print_latencies(model, found[model])
    if chosen.figure:
        with applied():
            draw(found).savefig(chosen.figure, metadata={"Date": None})


if __name__ == "__main__":
    main()
