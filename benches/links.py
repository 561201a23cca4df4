"""What a packet costs when there are many links: one node that sends over 1, 10, 100 and 1,000 of them in turn.

    .venv/bin/python benches/links.py [LINKS ...]

The cost is CPU time of the guest, its kernel and the sender, while packets are on their way: on the work drive virtual
time is CPU time, and what passes while nothing computes is known, so waiting for a core does not count.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path

import dilaton

PACKETS = 20_000
REPEAT = 3
PYTHON = str(Path(sys.executable).resolve())
SEND = """
import itertools, socket, sys, time
names = sys.argv[2:]
sinks = [(socket.gethostbyname(name), 9) for name in names]
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
payload = bytes(1400)
for _, sink in zip(range(int(sys.argv[1])), itertools.cycle(sinks)):
    source.sendto(payload, sink)
time.sleep(0.5)
"""
"""Sends so many datagrams round robin, and waits until the last one has arrived."""


def lab(links: int, packets: int) -> dict[str, object]:
    """A star of so many links of 1 Gbit/s and 1 ms, and what its hub sends."""
    leaves = [f"n{number}" for number in range(links)]
    return {
        "name": f"star-{links}",
        "time": {"drive": "work"},
        # Nobody listens, and nobody says so: answers would be limited at each node, and so be more with more nodes.
        "defaults": {"sysctls": {"net.ipv4.icmp_ratelimit": 3_600_000}},
        "nodes": {name: {} for name in ("hub", *leaves)},
        "links": [{"endpoints": f"hub -- {leaf}", "rate": "1Gbit", "delay": "1ms"} for leaf in leaves],
        "run": [{"on": "hub", "name": "send", "exec": [PYTHON, "-c", SEND, str(packets), *leaves]}],
    }


def cpu_s(links: int, packets: int) -> float:
    """CPU time of a run."""
    with tempfile.TemporaryDirectory() as directory:
        run = dilaton.start(lab(links, packets), out=Path(directory) / "run").wait()
        assert run.record.state == "finished", run.record.reason
        assert run.record.fidelity
        assert run.record.fidelity.busy is not None
        return run.record.fidelity.busy * run.record.time.virtual_s


def least_cpu_s(links: int, packets: int) -> float:
    """The least of several runs: what else runs on the host takes caches away, and only ever adds."""
    return min(cpu_s(links, packets) for _ in range(REPEAT))


def main() -> None:
    """Prints a row for each number of links: the cost of a packet beyond what a run without packets costs."""
    counts = [int(word) for word in sys.argv[1:]] or [1, 10, 100, 1000]
    found = {links: (least_cpu_s(links, PACKETS) - least_cpu_s(links, 0)) / PACKETS for links in counts}
    for links, each_s in found.items():
        print(f"{links:5} links: {each_s * 1e6:.2f} us a packet")
    for (few, cheap), (many, dear) in itertools.pairwise(found.items()):
        print(f"{few} to {many} links: {dear / cheap - 1:+.1%}")


if __name__ == "__main__":
    main()
