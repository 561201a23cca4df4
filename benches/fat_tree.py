"""A fat tree of 1,344 nodes: how long it takes to plan and to be ready, its memory, and whether hosts reach each other.

    .venv/bin/python benches/fat_tree.py [K [PAIRS]]

Planned is `dilaton plan` from its start to its end, in host seconds and in seconds of CPU time; ready is from the start
of the kernel to all nodes and links up. Memory is the largest that the whole run held, Python and guest, looked at
every 5 s. Each pair is a ping of a host to another, both drawn by a seeded generator.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from build import pss_bytes

PINGS_PER_HOST = 8


def lab(k: int, pairs: int) -> str:
    """The lab: pings of random pairs of hosts, some by each host."""
    random = Random(1)
    hosts = [f"h{number + 1}" for number in range(k**3 // 4)]
    runs = []
    for number in range(pairs // PINGS_PER_HOST):
        source = random.choice(hosts)
        targets = random.sample([host for host in hosts if host != source], PINGS_PER_HOST)
        script = (
            f"for host in {' '.join(targets)}; do ping -c 1 -W 2 -q $host >/dev/null && echo reached $host; done; true"
        )
        runs.append({"on": source, "name": f"ping-{number}", "exec": ["sh", "-c", script], "start": f"{number * 20}ms"})
    topology = {"generate": "fat-tree", "k": str(k), "host_rate": "1Gbit", "fabric_rate": "10Gbit", "delay": "10us"}
    return json.dumps(
        {"name": "fat-tree", "time": {"drive": "work"}, "topology": topology, "routing": "ecmp", "run": runs}
    )


def main() -> None:
    """Plans, runs and counts."""
    k = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    dilaton = [sys.executable, "-m", "dilaton"]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lab.yaml"
        path.write_text(lab(k, pairs))
        begin = time.monotonic()
        printed = subprocess.run([*dilaton, "plan", path], check=True, stdout=subprocess.PIPE).stdout
        planned = time.monotonic() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        plan = json.loads(printed)
        routes = sum(len(node["routes"]) for node in plan["nodes"])
        counts = f"{len(plan['nodes'])} nodes, {len(plan['links'])} links, {routes} routes"
        print(f"{counts}: planned in {planned:.1f} s, {usage.ru_utime + usage.ru_stime:.1f} s of CPU", flush=True)
        out = Path(directory) / "run"
        command = [*dilaton, "run", str(path), "--out", str(out)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            memory = 0
            while running.poll() is None:
                time.sleep(5)
                memory = max(memory, pss_bytes(running.pid))
        record = json.loads((out / "run.json").read_text())
        reached = sum(file.read_text().count("reached") for file in out.glob("nodes/*/*.stdout"))
    times = record["time"]
    print(f"{record['state']} {record.get('reason') or ''}")
    print(f"ready in {times['boot_host_s']:.1f} s, {memory / 2**20:.0f} MiB")
    print(f"{reached} of {pairs // PINGS_PER_HOST * PINGS_PER_HOST} pairs reached each other")
    print(f"{times['virtual_s']:.1f} s of virtual time in {times['host_s']:.1f} s")


if __name__ == "__main__":
    main()
