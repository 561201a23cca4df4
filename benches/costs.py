"""What the hot paths of the clock cost, in CPU time of the host.

    PYTHONPATH=python .venv/bin/python benches/costs.py [reading] [system-call] [wake] [packet] [flow] [--repeat 5]

- *reading*: a reading of the clock on each drive, and one that takes over another TDF, made by CPython under the clock
  library, which takes it for a kernel.
- *system-call*: `clock_gettime` in a guest, and `getppid`, which reads no clock; where the guest's kernel keeps its
  time-stamp counter, and where it gives it up.
- *wake*: from timer to timer of an idle kernel, with nothing else to do: timers whose signals are ignored.
- *packet*: a datagram of 1,500 bytes on one hop more: a chain of 20 bridges against one of 2, with links of 100 Mbit/s
  and 1 ms, less the same chains without packets.
- *flow*: a data packet of a TCP flow over 10 Gbit/s and 20 ms with an MTU of 1,500: both of its ends, the
  acknowledgements, iperf3 and the start of all that among it.

Each figure is the least of several runs, and the greatest beside it: what else runs on the host only ever adds. That of
a hop is a difference of runs, and so their median.
In a guest CPU time is virtual time on the work drive, less what idling took. SPECIFICATION.md quotes the output.

Counts do not depend on how fast the host is. What does is printed also as it would be at the speed of the reference
core (`yardstick.py`): versions are to be compared by that, run by turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from yardstick import beside

import dilaton
from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.memory.clock_page import OWN_COUNTER, OWN_COUNTER_WISHES, ClockPage, layout
from dilaton.host.here.memory.layout import WORD
from dilaton.host.orders import DRIVES, Orders

PYTHON = str(Path(sys.executable).resolve())

READ = """
import mmap, struct, sys
from gc import isenabled
from time import monotonic, process_time
from timeit import repeat
def best(call):
    return min(repeat(call, timer=process_time, repeat=30, number=10_000)) / 10_000 * 1e9
page_fd, sequence_at, tdf_at = map(int, sys.argv[1:])
memory = mmap.mmap(page_fd, 0)
sequence = struct.unpack_from("Q", memory, sequence_at)[0]
def order(step):
    global sequence
    sequence += step
    struct.pack_into("Q", memory, tdf_at, 10 + sequence % 8)
    struct.pack_into("Q", memory, sequence_at, sequence)
    monotonic()
same = best(lambda: order(0))
print(best(monotonic) - best(isenabled), best(lambda: order(2)) - same)
"""

SYSTEM_CALLS = """
import ctypes, time
libc = ctypes.CDLL(None)
stamp = ctypes.create_string_buffer(16)
def cost(*call):
    begin = time.monotonic_ns()
    for _ in range(5_000):
        libc.syscall(*call)
    return (time.monotonic_ns() - begin) / 5_000
pairs = [(cost(228, 1, stamp), cost(110)) for _ in range(20)]
print(*map(min, zip(*pairs)))
"""

TIMERS = """
import ctypes, signal, struct, sys, time
count, period_ns, seconds = 100, 10_000_000, int(sys.argv[1])
libc = ctypes.CDLL(None)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
event = struct.pack("QiiQ40x", 0, signal.SIGUSR1, 0, 0)
base = time.monotonic_ns() + 100_000_000
for number in range(count if seconds else 0):
    timer = ctypes.c_void_p()
    assert libc.timer_create(1, event, ctypes.byref(timer)) == 0
    first = base + number * period_ns // count
    setting = struct.pack("qqqq", 0, period_ns, first // 10**9, first % 10**9)
    assert libc.timer_settime(timer, 1, setting, None) == 0
time.sleep(max(seconds, 1))
"""

SEND = """
import socket, sys, time
sink = (socket.gethostbyname(sys.argv[2]), 9)
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[1]) // 20):
    for _ in range(20):
        source.sendto(bytes(1472), sink)
    time.sleep(0.0025)
time.sleep(0.5)
"""
"""Half of what the links carry, so that the queues stay short."""

TDF = 4
"""Of most guests: a slow enough CPU to have hardly a timer that is late, a fast enough one for the wall drive."""

REFERENCE = " at the reference's speed"

SEGMENT_BYTES = 1448
"""Data of a TCP packet of 1,500 bytes with time stamps."""

Numbers = Sequence[float]


def figure(values: Numbers, unit: str, digits: int = 2) -> str:
    """The least and the greatest of several."""
    return f"{min(values):.{digits}f} {unit} (least of {len(values)}, at most {max(values):.{digits}f})"


def reading(repeat: int) -> None:
    """Prints what a reading costs on each drive, and one that takes over a new TDF."""
    offsets = [
        str(layout().sections[""].offsets[field] * WORD.size) for field in ("command_sequence", "command_tdf_numerator")
    ]
    for drive in DRIVES:
        found: list[Numbers] = []
        for _ in range(repeat):
            page = ClockPage(0)
            page.command(Orders(Fraction(10), drive))
            variable = ",".join(map(str, (*page.guest_fds, -1, -1)))
            environment = {"LD_PRELOAD": str(CLOCK_LIBRARY), "DILATON_CLOCK": variable}
            environment["GLIBC_TUNABLES"] = "glibc.pthread.rseq=0"
            command = [PYTHON, "-c", READ, str(page.fd), *offsets]
            fds = page.guest_fds
            run = subprocess.run(command, env=environment, pass_fds=fds, stdout=subprocess.PIPE, text=True, check=True)
            page.close()
            found.append([float(word) for word in run.stdout.split()])
        reads, orders = zip(*found, strict=True)
        print(f"reading, {drive} drive: {figure(reads, 'ns', 0)}", flush=True)
        if drive != "event":  # where commands wait until the kernel idles
            print(f"reading that takes over a TDF, {drive} drive: {figure(orders, 'ns', 0)} more", flush=True)


@dataclass(frozen=True)
class Cost:
    """What a run took.

    Attributes:
        cpu_s: CPU time of its guest, seconds.
        reference_s: The same at the speed of the reference core.
        timers, reads: That its kernel served, and of its clock.
        output: Of its first process.
    """

    cpu_s: float
    reference_s: float
    timers: int
    reads: int
    output: str


def run_lab(lab: dict[str, Any]) -> Cost:
    """What a run of this lab takes."""
    with tempfile.TemporaryDirectory() as directory:
        run, speed = beside(lambda: dilaton.start(lab, out=Path(directory) / "run").wait())
        fidelity, process = run.record.fidelity, run.record.processes[0]
        assert run.record.state == "finished", run.record.reason
        assert fidelity
        assert fidelity.busy is not None
        output = (Path(directory) / "run/nodes" / process.node / f"{process.name}.stdout").read_text()
        cpu_s = fidelity.busy * run.record.time.virtual_s * float(lab["time"]["tdf"])
        return Cost(cpu_s, cpu_s * speed, fidelity.timers, fidelity.reads, output)


def alone(program: str, *arguments: str, drive: str = "work") -> dict[str, Any]:
    """A lab of one node that runs a Python program."""
    process = {"on": "a", "name": "program", "exec": [PYTHON, "-c", program, *arguments]}
    return {"name": "costs", "time": {"drive": drive, "tdf": str(TDF)}, "nodes": {"a": {}}, "run": [process]}


def system_call(repeat: int) -> None:
    """Prints what system calls of a guest cost, by turns where its kernel keeps its counter and where it does not."""
    ways = list(itertools.product(("wall", "work"), OWN_COUNTER_WISHES[1:]))
    calls: dict[tuple[str, str], list[list[float]]] = {way: [] for way in ways}
    for _, (drive, wish) in itertools.product(range(repeat), ways):
        os.environ[OWN_COUNTER] = wish
        calls[drive, wish].append([float(word) for word in run_lab(alone(SYSTEM_CALLS, drive=drive)).output.split()])
    del os.environ[OWN_COUNTER]
    for (drive, wish), rows in calls.items():
        for name, values in zip(("clock_gettime", "getppid"), zip(*rows, strict=True), strict=True):
            costs = figure([ns * TDF / 1e3 for ns in values], "us")
            print(f"{name} in a guest, {drive} drive, counter {wish}: {costs}", flush=True)


def wake(repeat: int) -> None:
    """Prints what it costs to idle from timer to timer."""
    with_timers, without = ([run_lab(alone(TIMERS, seconds)) for _ in range(repeat)] for seconds in ("60", "0"))
    least_s, timers = min(run.cpu_s for run in without), min(run.timers for run in without)
    costs = [(run.cpu_s - least_s) / (run.timers - timers) * 1e6 for run in with_timers]
    print(f"idle wake, {with_timers[0].timers - timers} of them: {figure(costs, 'us')}", flush=True)


def chain(bridges: int, packets: int) -> dict[str, Any]:
    """A lab of bridges in a row, with a host at each, the first of which sends datagrams to the last."""
    return {
        "name": "chain",
        "time": {"drive": "work", "tdf": str(TDF)},
        # Nobody listens, and nobody says so.
        "defaults": {"sysctls": {"net.ipv4.icmp_ratelimit": 3_600_000}},
        "topology": {"generate": "line", "nodes": str(bridges), "hosts": "1", "rate": "100Mbit", "delay": "1ms"},
        "groups": {"fabric": {"kind": "switch"}},
        "run": [{"on": "h0", "name": "send", "exec": [PYTHON, "-c", SEND, str(packets), f"h{bridges - 1}"]}],
    }


CHAINS = [(bridges, packets) for bridges in (20, 2) for packets in (8_000, 20)]
"""Long and short, with packets and with hardly any."""


def each_hop(runs: Sequence[Cost], what: Callable[[Cost], float]) -> float:
    """Of a packet on a hop, from a run of each of the chains."""
    (long, packets), (_, few), (short, _) = CHAINS[:3]
    a, b, c, d = map(what, runs)
    return (a - b - c + d) / ((packets - few) * (long - short))


def hop_us() -> float:
    """What a packet costs on one hop more, microseconds of CPU, by one run of each of the chains."""
    return 1e6 * each_hop([run_lab(chain(*kind)) for kind in CHAINS], lambda run: run.cpu_s)


def packet(repeat: int) -> None:
    """Prints what a packet costs on one hop more."""
    runs = [[run_lab(chain(*kind)) for kind in CHAINS] for _ in range(repeat)]

    def each(what: Callable[[Cost], float]) -> list[float]:
        return [each_hop(row, what) for row in runs]

    timers, reads = (statistics.median(each(what)) for what in (lambda run: run.timers, lambda run: run.reads))
    print(f"packet and hop: {timers:.2f} timers, {reads:.1f} readings of the clock")
    for name, costs_s in (("", each(lambda run: run.cpu_s)), (REFERENCE, each(lambda run: run.reference_s))):
        costs_us = [1e6 * cost_s for cost_s in costs_s]
        # A difference of runs, so that what else ran may also have taken from it.
        spread = f"median of {repeat}, {min(costs_us):.2f} to {max(costs_us):.2f}"
        print(f"packet and hop{name}: {statistics.median(costs_us):.2f} us ({spread})", flush=True)


def flow(repeat: int) -> None:
    """Prints what a data packet of a fast TCP flow costs."""
    lab = {
        "name": "flow",
        "time": {"drive": "work", "tdf": "10"},
        "nodes": {"a": {}, "b": {}},
        "links": [{"endpoints": ["a", "b"], "rate": "10Gbit", "delay": "20ms", "queue": {"limit": "1bdp"}}],
        "run": [
            {"on": "a", "name": "bulk", "exec": "iperf3 -c b -t 1 -J", "after": "server"},
            {"on": "b", "name": "server", "exec": "iperf3 -s", "ready": {"tcp": 5201}, "background": True},
        ],
    }
    runs = [run_lab(lab) for _ in range(repeat)]
    packets = [json.loads(run.output)["end"]["sum_sent"]["bytes"] / SEGMENT_BYTES for run in runs]
    costs = [run.cpu_s / sent * 1e6 for run, sent in zip(runs, packets, strict=True)]
    reference = [run.reference_s / sent * 1e6 for run, sent in zip(runs, packets, strict=True)]
    print(f"data packet of a flow, {packets[0]:.0f} of them: {figure(costs, 'us')}")
    print(f"data packet of a flow{REFERENCE}: {figure(reference, 'us')}", flush=True)


COSTS: dict[str, Callable[[int], None]] = {
    "reading": reading,
    "system-call": system_call,
    "wake": wake,
    "packet": packet,
    "flow": flow,
}


def main() -> None:
    """Prints the costs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("costs", nargs="*", metavar="COST", help=f"of {', '.join(COSTS)}; else all")
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args()
    if unknown := set(asked.costs) - COSTS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: costs are {', '.join(COSTS)}")
    for name in asked.costs or COSTS:
        COSTS[name](asked.repeat)


if __name__ == "__main__":
    main()
