"""Answers of a server that shares its guest, at several TDFs that take turns within one run, and under naive quotas.

    PYTHONPATH=python .venv/bin/python benches/answers.py [--tdfs 1,10,50] [--repeats 4] [--requests 600] [--quotas]

A core of the host may be half as fast again a minute later, and that is in every node's CPU: two runs at TDF 1 can be
further apart than TDF 1 and 50. So the TDF changes every 100 ms of virtual time, which changes nothing for nodes with a
CPU of their own, and what the host does meanwhile is shared by all. Each TDF has two turns of each round: how far it is
from itself is what a distance between two of them has to be seen beside.

With `--quotas` the server has what a control group gives it (cpu.max) instead, in runs one after the other, since a
quota holds for one TDF: of the guest's CPU the node may have its CPU's speed over the TDF, all of it at the beginning
of each period, of 100 ms if that is a millisecond, the least that the kernel takes, else of a second. docs/cpu.md
quotes the tables.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import dilaton
from dilaton.measure.statistics import distance
from dilaton.report.comparison import TOLERANCE

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "cpu-shares" / "lab.yaml"
BEGIN_MS, TURN_MS = 1000, 100
QUOTA_US_MIN = 1000
ASKS = """
import http.client, socket, time
server = http.client.HTTPConnection("server", 8000)
server.connect()
server.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
asked = []
for number in range(COUNT):
    begin = time.time_ns()
    server.request("GET", f"/NAME/{number}")
    server.getresponse().read()
    asked.append((begin, time.time_ns()))
for begin, end in asked:
    print(begin, end)
"""
Answers = dict[str, list[float]]
"""How long answers took, virtual seconds, by the turn: the TDF and which of its two."""


def lab(requests: int) -> str:
    """The server of the example, and two clients that say when they have asked and been answered."""
    text, _ = EXAMPLE.read_text().split("  - on: one\n")
    for name in ("one", "two"):
        program = ASKS.replace("COUNT", str(requests)).replace("NAME", name)
        text += f"  - {json.dumps({'on': name, 'name': name, 'after': 'serve', 'exec': ['python3', '-c', program]})}\n"
    return text


def asked(out: Path) -> Iterator[tuple[int, int]]:
    """When each request of a run began and ended, by the clocks of its nodes, nanoseconds."""
    for file in sorted(out.glob("nodes/*/*.stdout")):
        for line in file.read_text().splitlines():
            begin, end = line.split()
            yield int(begin), int(end)


def in_turns(tdfs: Sequence[str], requests: int, answers: Answers) -> None:
    """Adds what the answers of a run took, of those that came within one turn."""
    turns = [f"{tdf} {which}" for which in "ab" for tdf in tdfs]
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(lab(requests))
        with dilaton.start(path, hold_at=f"{BEGIN_MS}ms", out=out) as run:
            begin_ns = int(run.execute("switch", "date +%s%N").stdout)
            taken = 0
            try:
                while True:
                    run.set_tdf(int(turns[taken % len(turns)].split()[0]))
                    taken += 1
                    run.until(f"{BEGIN_MS + taken * TURN_MS}ms")
            except dilaton.ControlError:
                run.wait()  # it was over
        ends_ns = [begin_ns + turn * TURN_MS * 1_000_000 for turn in range(taken + 1)]
        for begin, end in asked(out):
            turn = bisect(ends_ns, begin) - 1
            if turn >= 0 and turn == bisect(ends_ns, end) - 1:
                answers.setdefault(turns[turn % len(turns)], []).append((end - begin) / 1e9)


def with_quota(tdf: str, requests: int) -> list[float]:
    """How long answers take where control groups have the place of shares, virtual seconds."""
    text = lab(requests)
    speeds = dict(re.findall(r"(\w+): \{cpu: ([0-9.]+)\}", text))
    text = re.sub(r"\{cpu: [0-9.]+\}", "{}", text).replace("    ready:", "    after: quota\n    ready:")
    orders = ["mkdir -p /tmp/cg", "mount -t cgroup2 cg /tmp/cg"]
    for node, speed in speeds.items():
        of_guest = float(speed) / float(tdf)
        period_us = 100_000 if of_guest * 100_000 >= QUOTA_US_MIN else 1_000_000
        orders.append(f"echo {round(of_guest * period_us)} {period_us} > /tmp/cg/nodes/{node}/cpu.max")
    quota = {"on": "switch", "name": "quota", "exec": ["sh", "-ec", "; ".join(orders)]}
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(text.replace("\nrun:\n", f"\nrun:\n  - {json.dumps(quota)}\n"))
        with dilaton.start(path, out=out, tdf=tdf) as run:
            run.wait()
        return [(end - begin) / 1e9 for begin, end in asked(out)]


def row(name: str, tdf: str, times: Sequence[float], reference: Sequence[float]) -> str:
    """A row of the tables: the answers in milliseconds, and how far they are from those of a reference."""
    marks = " | ".join(f"{1e3 * value:.2f}" for value in (np.mean(times), *np.percentile(times, (5, 50, 95))))
    apart = distance(reference, times)
    verdict = "different" if apart.relative > TOLERANCE else "indistinguishable"
    return f"| {name} | {tdf} | {len(times)} | {marks} | {apart.ks:.2f} | {apart.relative:.1%} | {verdict} |"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdfs", default="1,10,50", help="the first is the one that the others are compared with")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--requests", type=int, default=600, help="of each of two clients in a run")
    parser.add_argument("--quotas", action="store_true", help="naive quotas in the place of shares")
    given = parser.parse_args()
    tdfs = given.tdfs.split(",")
    print("| CPU | TDF | answers | mean, ms | 5 % | median | 95 % | KS | Wasserstein | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    if given.quotas:
        quotas = {tdf: [time for _ in range(given.repeats) for time in with_quota(tdf, given.requests)] for tdf in tdfs}
        for tdf, times in quotas.items():
            print(row("quota", tdf, times, quotas[tdfs[0]]))
        return
    answers: Answers = {}
    for _ in range(given.repeats):
        in_turns(tdfs, given.requests, answers)
    both = {tdf: answers[f"{tdf} a"] + answers[f"{tdf} b"] for tdf in tdfs}
    for tdf, times in both.items():
        print(row("share", tdf, times, both[tdfs[0]]))
    for tdf in tdfs:
        print(row("share, half of the turns to the other", tdf, answers[f"{tdf} b"], answers[f"{tdf} a"]))


if __name__ == "__main__":
    main()
