"""How what a run costs its host grows with the lab: CPU time per packet, hop, flow, node, guest, and node of a plan.

    PYTHONPATH=python .venv/bin/python benches/growth.py [packets] [hops] [flows] [nodes] [guests] [plans] [--most 1000]

Each size is ten times the one before, guests twice. A figure is the CPU time of all that a run makes, less that of the
same lab with one of them, or with one datagram, per unit; of guests it is all. Plans are of networks of several shapes,
by `dilaton plan`, three turns each of which the least counts. The slope says how the whole grows from
one size to the next: 1 is linearly, 2 as the square. Where the start of a lab is most of it, the slope is below 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEND = """
import socket, sys, time
sink = (socket.gethostbyname(sys.argv[2]), 9)
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(int(sys.argv[1])):
    source.sendto(bytes(1472), sink)
    if number % 20 == 19: time.sleep(0.0025)
time.sleep(0.5)
"""
"""Half of what the links carry, so that the queues stay short."""

SERVE = """
import socket, threading
def take(giver):
    while giver.recv(1 << 16): pass
server = socket.create_server(("", 9000), backlog=4096)
while True: threading.Thread(target=take, args=[server.accept()[0]], daemon=True).start()
"""

FLOW = """
import socket, sys, threading
def give():
    giver = socket.create_connection(("b", 9000))
    giver.sendall(bytes(1448 * 50))
    giver.shutdown(socket.SHUT_WR)
    giver.recv(1)
givers = [threading.Thread(target=give) for _ in range(int(sys.argv[1]))]
for giver in givers: giver.start()
for giver in givers: giver.join()
"""
"""Flows of 50 packets side by side."""

Lab = dict[str, Any]

LINK = {"rate": "100Mbit", "delay": "1ms"}
QUIET = {"sysctls": {"net.ipv4.icmp_ratelimit": 3_600_000}}
"""Nobody listens, and nobody says so."""


def python(program: str, *arguments: object) -> list[str]:
    """The command that runs it, of the machine's own Python."""
    return ["python3", "-I", "-c", program, *map(str, arguments)]


def packets(count: int) -> Lab:
    """So many datagrams over a link."""
    send = {"on": "a", "name": "send", "exec": python(SEND, count, "b")}
    return {"defaults": QUIET, "nodes": {"a": {}, "b": {}}, "links": [{"endpoints": "a -- b", **LINK}], "run": [send]}


def line(bridges: int, count: int) -> Lab:
    """So many datagrams over a chain of bridges."""
    return {
        "defaults": QUIET,
        "topology": {"generate": "line", "nodes": str(bridges), "hosts": "1", **LINK},
        "groups": {"fabric": {"kind": "switch"}},
        "run": [{"on": "h0", "name": "send", "exec": python(SEND, count, f"h{bridges - 1}")}],
    }


def flows(count: int) -> Lab:
    """So many flows of TCP at once."""
    serve = {"on": "b", "name": "serve", "exec": python(SERVE), "ready": {"tcp": 9000}, "background": True}
    give = {"on": "a", "name": "give", "exec": python(FLOW, count), "after": "serve"}
    return {"nodes": {"a": {}, "b": {}}, "links": [{"endpoints": "a -- b", **LINK}], "run": [serve, give]}


def nodes(count: int) -> Lab:
    """So many nodes in a line, with nothing to do."""
    names = [f"n{number}" for number in range(count)]
    links = [{"endpoints": f"{one} -- {other}", **LINK} for one, other in itertools.pairwise(names)]
    return {"nodes": {name: {} for name in names}, "links": links, "run": [{"on": names[0], "exec": "true"}]}


def guests(count: int) -> Lab:
    """So many guests in a line, the first of which pings the last."""
    lab = nodes(count)
    ping = {"on": "n0", "name": "ping", "exec": f"ping -c 20 -i 0.05 n{count - 1}"}
    return {**lab, "guests": "per-node", "run": [ping]}


def shapes(count: int) -> dict[str, Lab]:
    """Networks of about so many nodes, by their shapes; a grid has the most routes that a plan can have."""
    side = math.isqrt(count)
    ports = max(2, 2 * round((2 * count) ** (1 / 3) / 2))
    rates = {"host_rate": "1Gbit", "fabric_rate": "10Gbit"}
    topologies: dict[str, Lab] = {
        "line": {"generate": "line", "nodes": str(count), **LINK},
        "star": {"generate": "star", "leaves": str(count - 1), **LINK},
        "switch": {"generate": "star", "leaves": str(count - 1), **LINK},
        "fat tree": {"generate": "fat-tree", "k": str(ports), "delay": "10us", **rates},
        "grid": {"generate": "grid", "rows": str(side), "columns": str(side), **LINK},
    }
    centre = {"nodes": {"n0": {"kind": "switch"}}}
    return {name: {"topology": one} | (centre if name == "switch" else {}) for name, one in topologies.items()}


HOP_PACKETS = 10_000


def decades(most: int, first: int = 1) -> list[int]:
    """Sizes up to the most, each ten times the one before."""
    return [first * 10**power for power in range(9) if first * 10**power <= most]


def cpu_s(lab: Lab) -> float:
    """CPU time of the host that a run of this lab takes, seconds, with all that it makes."""
    return spent_s(lab, "run")[0]


def spent_s(lab: Lab, verb: str) -> tuple[float, str]:
    """CPU time of the host that a verb of Dilaton takes for a lab, seconds, with all that it makes; what it printed."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lab.yaml"
        path.write_text(json.dumps({"name": "growth", "time": {"tdf": "4", "drive": "work"}, **lab}))
        out = ["--out", str(Path(directory) / "run")] if verb == "run" else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "dilaton", verb, str(path), *out]
        done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def plans(most: int) -> None:
    """Measures and prints how plans grow, per node, and how many routes they have."""
    sizes = decades(most, 10)
    base_s = min(spent_s(nodes(1), "plan")[0] for _ in range(3))
    for shape in shapes(1):
        counts, costs = [], []
        for size in sizes:
            turns = [spent_s(shapes(size)[shape], "plan") for _ in range(3)]
            planned = json.loads(turns[0][1])["nodes"]
            counts.append(len(planned))
            costs.append(min(cost for cost, _ in turns) - base_s)
            print(f"{shape}: {len(planned)} nodes have {sum(len(node['routes']) for node in planned)} routes")
        growth(f"{shape}, less {base_s:.2f} s of a lab of one", counts, costs, [float(count) for count in counts])


def growth(name: str, sizes: list[int], costs_s: list[float], units: list[float]) -> None:
    """Prints what each size costs, per unit, and the slopes."""
    print(f"{name}:")
    for place, (size, cost_s, unit) in enumerate(zip(sizes, costs_s, units, strict=True)):
        text = f"  {size:>7}  {cost_s:8.2f} s  {cost_s / unit * 1e6:12.1f} us each"
        if place and min(cost_s, costs_s[place - 1]) > 0:
            slope = math.log(cost_s / costs_s[place - 1]) / math.log(unit / units[place - 1])
            text += f"  slope {slope:.2f}"
        print(text, flush=True)


def measure(name: str, most: int) -> None:
    """Measures and prints how one thing grows."""
    if name == "hops":
        sizes = decades(min(most, 100), 10)
        costs = [cpu_s(line(size, HOP_PACKETS)) - cpu_s(line(size, 1)) for size in sizes]
        return growth(
            f"bridges, {HOP_PACKETS} datagrams over all", sizes, costs, [float(size * HOP_PACKETS) for size in sizes]
        )
    if name == "plans":
        return plans(most)
    if name == "guests":
        sizes = [2, 4, 8, 16]
        return growth("guests", sizes, [cpu_s(guests(size)) for size in sizes], [float(size) for size in sizes])
    lab: Callable[[int], Lab] = {"packets": packets, "flows": flows, "nodes": nodes}[name]
    sizes = decades(100 * most, 1000) if name == "packets" else decades(most, 10)
    base_s = cpu_s(lab(1))
    costs = [cpu_s(lab(size)) - base_s for size in sizes]
    return growth(f"{name}, less {base_s:.2f} s of a lab of one", sizes, costs, [float(size) for size in sizes])


NAMES = ("packets", "hops", "flows", "nodes", "guests", "plans")


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"of {', '.join(NAMES)}; else all")
    parser.add_argument("--most", type=int, default=1000, help="flows and nodes, and hundreds of packets, at most")
    asked = parser.parse_args()
    if unknown := set(asked.what) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: what grows is {', '.join(NAMES)}")
    for name in asked.what or NAMES:
        measure(name, asked.most)


if __name__ == "__main__":
    main()
