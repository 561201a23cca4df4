"""What several guests gain and cost on this machine, as ratios, so that they mean something beside other load too.

    PYTHONPATH=python .venv/bin/python benches/guests.py [pairs] [transfer] [windows] [light] [computing] [hundred]

- `pairs`: two pairs of nodes with as much to send each, in one guest and in two: how many times as fast two are.
- `transfer`: TCP from a guest to another over 10 ms: bit/s for a second of the host, and of the busier guest's CPU.
- `windows`: two guests that compute side by side, by the delay of the link between them: what keeping to each
  other's time costs.
- `light`: 40 guests on a ring of links of 1 ms that ping their neighbours: virtual seconds for a host second.
- `computing`: a computation in one guest on a core and in 40 at once: virtual time, over the CPU time of the same in
  up to ten programs of the host that take turns with them there, as cores of a virtual machine are neither equally fast
  nor at all times. How much these programs differ from each other is what no guest on this host can be better than.
- `hundred`: 100 guests: how long they take to be there, and what memory they hold.

SPECIFICATION.md quotes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import dilaton
from dilaton.host.here.guests.room import available_bytes

COMPUTE = """
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);
for (1 .. TIMES) {
    my $least = 9;
    for (1 .. LOOPS) {
        my ($begin, $sum) = (clock_gettime(CLOCK), 0);
        $sum += $_ for 1 .. 60_000;
        my $took = clock_gettime(CLOCK) - $begin;
        $least = $took if $took < $least;
    }
    print "$least\n";
}
"""
"""In Perl, which starts in a tenth of Python's time."""
LOOPS = 500
PROGRAMS, TIMES = 10, 3
RING = 40


def run(lab: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The record of a lab's run, and what each of its processes printed."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(lab))
        subprocess.run([sys.executable, "-m", "dilaton", "run", path, "--out", out], check=True, capture_output=True)
        printed = {file.stem: file.read_text() for file in out.glob("nodes/*/*.stdout")}
        return json.loads((out / "run.json").read_text()), printed


def pairs() -> None:
    """Two busy pairs in one guest and in two, and in two runs side by side: what the host can do at most."""
    transfers = [
        part
        for sender, receiver in ("ab", "cd")
        for part in (
            {"on": receiver, "name": f"sink-{receiver}", "exec": "iperf3 -s -1", "ready": {"tcp": 5201}},
            {
                "on": sender,
                "name": f"send-{sender}",
                "exec": f"iperf3 -c {receiver} -n 2G",
                "after": f"sink-{receiver}",
            },
        )
    ]
    host_s = {}
    for count, guests in (1, "xx"), (2, "xy"):
        nodes = {name: {"guest": guests[number // 2]} for number, name in enumerate("abcd")}
        links = [{"endpoints": f"{one} -- {other}", "delay": "10us"} for one, other in ("ab", "cd")]
        record, _ = run({"name": "pairs", "time": {"tdf": 1}, "nodes": nodes, "links": links, "run": transfers})
        host_s[count] = record["time"]["host_s"]
    one = {"name": "pair", "time": {"tdf": 1}, "nodes": {"a": {}, "b": {}}, "links": links[:1], "run": transfers[:2]}
    with ThreadPoolExecutor(2) as pool:
        apart_s = max(record["time"]["host_s"] for record, _ in pool.map(run, [one, one]))
    print(
        f"| two busy pairs | {host_s[1]:.1f} s in one guest, {host_s[2]:.1f} s in two: "
        f"{host_s[1] / host_s[2]:.2f} times as fast; {apart_s:.1f} s in two runs side by side, "
        f"{host_s[1] / apart_s:.2f} times |"
    )


def transfer() -> None:
    """TCP between two guests."""
    buffers = {"net.ipv4.tcp_rmem": "4096 1048576 268435456", "net.ipv4.tcp_wmem": "4096 1048576 268435456"}
    for offload in (True, False):
        lab = {
            "name": "transfer",
            "time": {"tdf": 1},
            "guests": "per-node",
            "defaults": {"sysctls": buffers},
            "nodes": {"a": {}, "b": {}},
            "links": [{"endpoints": "a -- b", "delay": "10ms", "offload": offload}],
            "run": [
                {"on": "b", "name": "sink", "exec": "iperf3 -s -1", "ready": {"tcp": 5201}},
                {"on": "a", "name": "send", "exec": "iperf3 -c b -n 4G -J", "after": "sink"},
            ],
        }
        record, _ = run(lab)
        sent = next(process for process in record["processes"] if process["name"] == "send")["result"]
        throughput, duration_s = sent["throughput"] / 1e9, 4 * 2**30 * 8 / sent["throughput"]
        busy = max(guest["fidelity"]["busy"] for guest in record["guests"])
        print(
            f"| TCP over 10 ms, offload {'on' if offload else 'off'} | {throughput:.2f} Gbit/s of virtual time at "
            f"TDF 1, {sent['retransmits']} retransmits, the busier guest busy for {busy:.0%}; "
            f"the run took {record['time']['host_s']:.1f} s of the host "
            f"for {duration_s:.1f} virtual s |",
            flush=True,
        )


def windows() -> None:
    """Two guests that compute, by their lookahead."""
    for delay in ("10ms", "1ms", "100us", "10us"):
        lab = {
            "name": "windows",
            "time": {"tdf": 1},
            "guests": "per-node",
            "nodes": {"a": {}, "b": {}},
            "links": [{"endpoints": "a -- b", "delay": delay}],
            "run": [{"on": name, "name": f"compute-{name}", "exec": compute(50)} for name in "ab"],
        }
        record, printed = run(lab)
        took_s = statistics.mean(float(text) for text in printed.values())
        waits = [guest["waits"] for guest in record["guests"]]
        agreements = sum(each["agreements"] for each in waits)
        waited_us = sum(each["waited_host_s"] for each in waits) * 1e6 / agreements
        print(
            f"| {delay} between two | {took_s * 1e3:.2f} virtual ms for a computation, "
            f"{record['time']['host_s']:.2f} s for the run; {agreements} agreements, "
            f"{waited_us:.0f} us of waiting each |",
            flush=True,
        )


def light() -> None:
    """A ring of guests with light traffic."""
    names = [f"n{number}" for number in range(RING)]
    neighbours = [(name, names[(number + 1) % RING]) for number, name in enumerate(names)]
    lab = {
        "name": "light",
        "time": {"tdf": 1},
        "guests": "per-node",
        "nodes": {name: {} for name in names},
        "links": [{"endpoints": f"{one} -- {other}", "delay": "1ms"} for one, other in neighbours],
        "run": [{"on": one, "name": f"ping-{one}", "exec": f"ping -c 10 -i 1 {other}"} for one, other in neighbours],
    }
    record, printed = run(lab)
    assert all("10 received" in text for text in printed.values())
    virtual_s, host_s = record["time"]["virtual_s"], record["time"]["host_s"]
    print(f"| {RING} guests, 1 ms, a ping a second each | {virtual_s:.1f} virtual s in {host_s:.1f} s |")


def computing() -> None:
    """The same computation in one guest and in many on a core, over what it takes in programs of the host there."""
    for core in sorted(os.sched_getaffinity(0)):
        for count in 1, RING:
            in_guests, on_host = beside(count, core)
            unit = statistics.median(on_host)
            print(
                f"| a computation in {count} guests on core {core}, over its CPU time in programs of the host there | "
                f"{spread(in_guests, unit)}; these themselves {spread(on_host, unit)}; {unit * 1e3:.2f} ms |",
                flush=True,
            )


def spread(values: list[float], unit: float) -> str:
    """Median, least and most of some values over a unit."""
    middle, least, most = (of(values) / unit for of in (statistics.median, min, max))
    return f"median {middle:.3f}, {least:.3f} to {most:.3f} ({len(values)})"


def beside(count: int, core: int) -> tuple[list[float], list[float]]:
    """The least that a computation takes of `LOOPS` in each of so many guests on one core, virtual seconds, and of as
    many, three times, in each of some programs of the host that take turns with them, seconds of CPU time."""
    names = [f"n{number}" for number in range(count)]
    lab = {
        "name": "computing",
        "time": {"tdf": 1},
        "guests": "per-node",
        "nodes": {name: {} for name in names},
        "run": [{"on": name, "name": f"compute-{name}", "exec": compute(LOOPS)} for name in names],
    }
    with tempfile.TemporaryDirectory() as directory, on_core(core):
        out, times = Path(directory) / "run", Path(directory) / "times"
        with dilaton.start(lab, out=out) as run, times.open("a") as file:
            program = compute(LOOPS, TIMES, "CLOCK_PROCESS_CPUTIME_ID")
            programs = [subprocess.Popen(program, stdout=file) for _ in range(min(count, PROGRAMS))]
            try:
                record = run.wait()
                for each in programs:
                    each.wait()
            finally:
                for each in programs:
                    each.kill()
                    each.wait()
        in_guests = [float(record.output(f"compute-{name}")) for name in names]
        return in_guests, [float(line) for line in times.read_text().splitlines()]


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """Has this program, and what it starts meanwhile, on one core of the host."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def compute(loops: int, times: int = 1, clock: str = "CLOCK_MONOTONIC") -> list[str]:
    """A command that prints the least that a loop takes of so many, so many times."""
    values = {"LOOPS": loops, "TIMES": times, "(CLOCK)": f"({clock})"}
    return ["/usr/bin/perl", "-e", reduce(lambda text, name: text.replace(name, str(values[name])), values, COMPUTE)]


def hundred() -> None:
    """A hundred guests in a row."""
    names = [f"n{number}" for number in range(100)]
    lab = {
        "name": "hundred",
        "guests": "per-node",
        "nodes": {name: {} for name in names},
        "links": [{"endpoints": f"{one} -- {other}", "delay": "10ms"} for one, other in pairwise(names)],
        "run": [{"on": names[0], "name": "sleep", "exec": "sleep 1"}],
    }
    before, least = host_available_bytes(), [host_available_bytes()]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            least.append(host_available_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.monotonic()
    try:
        record, _ = run(lab)
    finally:
        over.set()
        watcher.join()
    print(
        f"| 100 guests | {time.monotonic() - begin:.0f} s for a run that lasts {record['time']['virtual_s']:.1f} s, "
        f"of which {record['time']['host_s']:.1f} s after boot; {(before - min(least)) / 2**30:.1f} GiB |"
    )


def host_available_bytes() -> int:
    """What memory the host could still give."""
    return available_bytes(Path("/proc/meminfo").read_text())


def main() -> None:
    """Prints a table of what was asked for; all of it without arguments."""
    all_parts = {part.__name__: part for part in (pairs, transfer, windows, light, computing, hundred)}
    print("| what | measured |\n| --- | --- |", flush=True)
    for name in sys.argv[1:] or all_parts:
        all_parts[name]()


if __name__ == "__main__":
    main()
