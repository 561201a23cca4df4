"""Thirty people at once at a server: what a call of the API and an echo of a terminal take, and what the server costs.

    PYTHONPATH=python:. .venv/bin/python benches/server_class.py [--people 30] [--host-s 60] [--kernel] [--profile FILE]

Each person listens to their events, keeps a lab of two nodes, has it run, opens a terminal in it, and then types a byte
every 300 ms and asks the API for something every second, not in step with the others; in the end they stop their runs
within some seconds. Runs are on a machine without a kernel, unless `--kernel`
is given: the server is what is measured, and the same for it. Latencies are those that clients see, beside whatever
else the machine does, which is printed, too; they are told apart by whether runs were still being launched. CPU seconds
and memory are the server process's alone. With py-spy installed, `--profile` says where they went.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from tests.unit.server.runs.server_process import Process, let_in, process
from tests.unit.server.serving import ENDLESS, LAB, Client

TYPE_HOST_S, ASK_HOST_S, STOP_HOST_S = 0.3, 1.0, 10.0

KERNEL_LAB = LAB.replace('"true"', "sleep 100000")

SIZE = {"rows": 24, "columns": 80}


@dataclass
class Seen:
    """What was seen, by all together; seconds of the host."""

    calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of calls of the API, by their kind, once all terminals were open."""
    early: list[float] = field(default_factory=list)
    """Of those before."""
    echoes: list[float] = field(default_factory=list)
    events: int = 0


class Asker:
    """Somebody who asks over one connection, as browsers do."""

    def __init__(self, client: Client, took: list[float]) -> None:
        self._client, self._took = client, took
        self._connection = http.client.HTTPConnection(client.settings.host, client.settings.port, timeout=120)

    def ask(self, method: str, path: str, body: Any = None, took: list[float] | None = None) -> Any:
        """What is answered; how long that took is noted."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._client.headers | ({} if data is None else {"Content-Type": "application/json"})
        began = time.perf_counter()
        try:
            self._connection.request(method, f"/api/v1{path}", data, headers)
            answer = self._connection.getresponse()
        except http.client.RemoteDisconnected:  # it was idle for longer than servers keep connections
            self._connection.request(method, f"/api/v1{path}", data, headers)
            answer = self._connection.getresponse()
        said = answer.read()
        (self._took if took is None else took).append(time.perf_counter() - began)
        assert answer.status < 300, (path, answer.status, said)
        return json.loads(said) if said else None


def listen(client: Client, seen: Seen, over: threading.Event) -> None:
    """Reads events as they come."""
    with client.stream("/events") as events:
        for _ in events:
            seen.events += 1
            if over.is_set():
                return


def work(client: Client, lab: str, seen: Seen, all_there: threading.Barrier, host_s: float) -> None:
    """What one of them does; nobody waits for who cannot."""
    try:
        do_work(client, lab, seen, all_there, host_s)
    except BaseException:
        all_there.abort()
        raise


def do_work(client: Client, lab: str, seen: Seen, all_there: threading.Barrier, host_s: float) -> None:
    """What one of them does."""
    asker, chance = Asker(client, seen.early), random.Random(client.headers["Cookie"])
    kept = asker.ask("POST", "/labs", {"name": "a lab", "text": lab})["lab"]
    run = asker.ask("POST", f"/labs/{kept}/runs", {"stays": True})["run"]
    while asker.ask("GET", f"/runs/{run}")["state"] != "running":
        time.sleep(ASK_HOST_S)
    terminal = asker.ask("POST", f"/runs/{run}/terminals", {"node": "a", **SIZE})["terminal"]
    settings = client.settings
    url = f"ws://{settings.host}:{settings.port}/api/v1/runs/{run}/terminals/{terminal}"
    with connect(url, additional_headers=client.headers, compression=None, proxy=None, open_timeout=120) as shown:
        all_there.wait()
        time.sleep(chance.uniform(0, ASK_HOST_S))
        until, typed, asked = time.monotonic() + host_s, 0, 0
        questions = {"run": f"/runs/{run}", "runs": "/runs?count=50", "status": f"/runs/{run}/status", "labs": "/labs"}
        while time.monotonic() < until:
            byte = bytes([ord("a") + typed % 26])
            typed += 1
            began = time.perf_counter()
            shown.send(byte)
            while byte not in (said if isinstance(said := shown.recv(120), bytes) else b""):
                pass
            seen.echoes.append(time.perf_counter() - began)
            if typed * TYPE_HOST_S > asked * ASK_HOST_S:
                what = list(questions)[asked % len(questions)]
                asked += 1
                asker.ask("GET", questions[what], took=seen.calls[what])
            time.sleep(max(0.0, TYPE_HOST_S - (time.perf_counter() - began)))
    time.sleep(chance.uniform(0, STOP_HOST_S))
    asker.ask("POST", f"/runs/{run}/stop", took=seen.calls["stop"])


def told(what: str, took: list[float]) -> str:
    """A line of what was seen."""
    cuts = [1000 * cut for cut in statistics.quantiles(took, n=100)]
    return f"{what:10} {len(took):6}   median {cuts[49]:7.1f} ms   99 % within {cuts[98]:7.1f} ms"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """The most memory that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(server: Process, people: int, host_s: float, lab: str, profile: Path | None) -> None:
    """Has them work, and prints what was seen."""
    settings, pid, seen, over = server.client.settings, server.process.pid, Seen(), threading.Event()
    clients = []
    for number in range(people):
        server.client.api("POST", "/people", {"name": f"person{number}"})
        link = server.client.api("POST", f"/people/person{number}/link")["url"]
        cookie = let_in(settings, link.partition("?once=")[2])
        clients.append(Client(settings, {"Cookie": cookie, "Origin": settings.origin}))
    marks: list[tuple[float, float]] = []
    all_there = threading.Barrier(people, action=lambda: marks.append((time.monotonic(), cpu_s(pid))))
    spy = None
    if profile is not None:
        spy = subprocess.Popen(
            [
                "py-spy",
                "record",
                "--pid",
                str(pid),
                "--format",
                "raw",
                "--gil",
                "--output",
                str(profile),
                "--rate",
                "50",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    marks.append((time.monotonic(), cpu_s(pid)))
    with ThreadPoolExecutor(2 * people) as together:
        for client in clients:
            together.submit(listen, client, seen, over)
        done = [together.submit(work, client, lab, seen, all_there, host_s) for client in clients]
        wait(done)
        over.set()
        marks.append((time.monotonic(), cpu_s(pid)))
        for client in clients:
            client.keep()  # by which their stream ends
        for one in done:
            one.result()
    if spy is not None:
        spy.send_signal(2)
        spy.wait()
    (begun, begun_cpu), (there, there_cpu), (end, end_cpu) = marks
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    print(f"all running after {there - begun:.1f} s; CPU of the server {there_cpu - begun_cpu:.2f} s")
    print(f"then {end - there:.1f} s; CPU of the server {end_cpu - there_cpu:.2f} s; memory {memory_mb(pid):.0f} MB")
    print(f"{seen.events} events told")
    print(told("while begun", seen.early))
    print(told("calls", [one for took in seen.calls.values() for one in took]))
    for what, took in seen.calls.items():
        print(told(f"  {what}", took))
    print(told("echoes", seen.echoes))


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--host-s", type=float, default=60.0)
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("--profile", type=Path)
    asked = parser.parse_args()
    options = ("--at-once", asked.people, *(["--kernel"] if asked.kernel else []))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, process(Path(directory), *options) as server:
        measure(server, asked.people, asked.host_s, KERNEL_LAB if asked.kernel else ENDLESS, asked.profile)


if __name__ == "__main__":
    main()
