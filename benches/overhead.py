"""What a guest costs beside its host: system calls, processes, faults, pipes, TCP, files.

    .venv/bin/python benches/overhead.py

Guests run at TDF 1: on the work drive their figures are CPU time, metered at every entry into the kernel; on the wall
drive host time, without metering. The fastest of seven batches counts, on one core of the host as in a guest, but for
TCP, which there has all cores. A file is opened, 4 KiB of it are read, and it is closed again.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DILATON = HERE.parent / "dilaton"
FILE = "/etc/services"
TCP_S = 2
DRIVES = ["work", "wall"]

OPERATIONS = {
    "getppid": ("getppid", 1e3, "us"),
    "fork+exec": ("fork, exec and wait of `true`", 1e6, "ms"),
    "page-fault": ("page fault, anonymous memory", 1e3, "us"),
    "ping-pong": ("pipe, there and back between processes", 1e3, "us"),
    "host-file": ("open, read, close of the host's file: hostfs", 1e3, "us"),
    "node-file": ("the same in a node: overlay over hostfs", 1e3, "us"),
    "tmp-file": ("the same in memory: tmpfs", 1e3, "us"),
}

TCP = f"""
mount -t tmpfs none /run && ip netns add a && ip netns add b
ip link add eth0 netns a type veth peer name eth0 netns b
ip -n a address add 10.0.0.1/24 dev eth0 && ip -n a link set eth0 up
ip -n b address add 10.0.0.2/24 dev eth0 && ip -n b link set eth0 up
ip netns exec b iperf3 -s -D -I /run/pid && sleep 1
ip netns exec a iperf3 -c 10.0.0.2 -t {TCP_S} -J
kill $(tr -d '\\0' < /run/pid)
"""

IN_GUEST = f"""
mkdir /tmp/host && mount -t hostfs none /tmp/host -o /etc && cp {FILE} /tmp/file
exec ./overhead host=/tmp/host/{Path(FILE).name} node={FILE} tmp=/tmp/file
"""


def output(command: list[str], directory: Path) -> str:
    """What a command prints; it has to succeed."""
    return subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, text=True, check=True).stdout


def in_guest(drive: str) -> list[str]:
    """Runs the script that follows in a guest."""
    return [str(DILATON), "exec", "--drive", drive, "--", "sh", "-c"]


def figures(text: str) -> dict[str, float]:
    """By operation, nanoseconds."""
    return {name: float(ns) for name, ns in map(str.split, text.splitlines())}


def gbit_per_s(text: str) -> float:
    """What iperf3's receiver measured."""
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 1e9


def main() -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        subprocess.run(["cc", "-O2", "-o", directory / "overhead", HERE / "overhead.c"], check=True)
        core = str(max(os.sched_getaffinity(0)))
        host = figures(output(["taskset", "-c", core, "./overhead", f"host={FILE}", "tmp=overhead"], directory))
        guests = [figures(output([*in_guest(drive), IN_GUEST], directory)) for drive in DRIVES]
        apart = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        host_tcp = gbit_per_s(output([*apart, "sh", "-c", TCP], directory))
        guests_tcp = [gbit_per_s(output([*in_guest(drive), TCP], directory)) for drive in DRIVES]
    print("| operation | host |", " | ".join(f"guest, {drive} drive" for drive in DRIVES), "|")
    print("| --- | --- |", " | ".join("---" for _ in DRIVES), "|")
    for key, (title, unit_ns, unit) in OPERATIONS.items():
        native = f"{host[key] / unit_ns:.3g} {unit}" if key in host else ""
        dilated = " | ".join(f"{guest[key] / unit_ns:.3g} {unit}" for guest in guests)
        print(f"| {title} | {native} | {dilated} |")
    print(f"| TCP over veth | {host_tcp:.1f} Gbit/s |", " | ".join(f"{tcp:.1f} Gbit/s" for tcp in guests_tcp), "|")


if __name__ == "__main__":
    main()
