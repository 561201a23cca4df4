"""The known disks as fio measures them: a table, in virtual time at TDF 10. docs/disks.md quotes it.

    PYTHONPATH=python .venv/bin/python benches/disks.py

Latencies are those of fio from submission to end; they have the CPU time of the guest's kernel in them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

JOBS = {
    "random read, 1": "--rw=randread --bs=4k --number_ios={few}",
    "random read, 4": "--rw=randread --bs=4k --ioengine=libaio --iodepth=4 --number_ios={many}",
    "random read, 32": "--rw=randread --bs=4k --ioengine=libaio --iodepth=32 --number_ios={many}",
    "random write, 1": "--rw=randwrite --bs=4k --number_ios={few}",
    "random write, 32": "--rw=randwrite --bs=4k --ioengine=libaio --iodepth=32 --number_ios={many}",
    "sequential read, 4": "--rw=read --bs=1M --ioengine=libaio --iodepth=4 --number_ios=200",
    "sequential write, 4": "--rw=write --bs=1M --ioengine=libaio --iodepth=4 --number_ios=200",
}
"""Command lines of fio by what they do, with the depth of the queue."""

COUNTS = {"hdd-7200": (300, 1000), "hdd-15k": (300, 1000), "ssd-sata": (1000, 5000), "nvme": (1000, 5000)}
"""How many requests make `few` and `many`."""


def lab(model: str) -> str:
    """A lab in which one node does all jobs, one after the other."""
    few, many = COUNTS[model]
    lines = ["name: disks", "time: {tdf: 10}", f"nodes: {{a: {{disk: {{model: {model}, mount: none}}}}}}", "run:"]
    for number, job in enumerate(JOBS.values()):
        command = f"fio --name=x --filename=/dev/vda --direct=1 --output-format=json {job.format(few=few, many=many)}"
        after = f", after: job{number - 1}" if number else ""
        lines.append(f"  - {{on: a, name: job{number}, exec: {command}{after}}}")
    return "\n".join(lines) + "\n"


def measure(model: str, directory: Path) -> None:
    """Runs the jobs on one disk, and prints a line for each."""
    path, out = directory / f"{model}.yaml", directory / model
    path.write_text(lab(model))
    subprocess.run([sys.executable, "-m", "dilaton", "run", path, "--out", out], check=True, capture_output=True)
    for number, what in enumerate(JOBS):
        text = (out / "nodes" / "a" / f"job{number}.stdout").read_text()
        job = json.loads(text[text.index("{") :])["jobs"][0]
        part = job["read"] if job["read"]["total_ios"] else job["write"]
        p50, p99 = (part["clat_ns"]["percentile"][f"{share}.000000"] / 1e6 for share in (50, 99))
        rate = f"{part['iops']:,.0f}" if "random" in what else f"{part['bw_bytes'] / 1e6:,.0f} MB/s"
        print(
            f"| {model} | {what} | {rate} | {part['clat_ns']['mean'] / 1e6:.3f} | {p50:.3f} | {p99:.3f} |", flush=True
        )


def main() -> None:
    """Measures all known disks."""
    print("| disk | what, depth | IOPS or MB/s | mean, ms | median | 99 % |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as directory:
        for model in COUNTS:
            measure(model, Path(directory))


if __name__ == "__main__":
    main()
