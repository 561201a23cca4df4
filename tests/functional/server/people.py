"""People at work at a server at the same time, each with a lab, a run, a stream of events and a terminal.

Each of them keeps a lab of two nodes, has it run, opens a terminal in it, and then types a byte every 300 ms and asks
the API for something every second, not in step with the others; in the end they stop their run. What is lost or doubled
is found here; how long answers took is noted, for `benches/server_class.py`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from websockets.sync.client import connect

from dilaton.server.runs.life import FINAL
from tests.conftest import PATIENCE_HOST_S
from tests.unit.server.runs.server_process import Process, let_in
from tests.unit.server.serving import ENDLESS, Client

TYPE_HOST_S, ASK_HOST_S, STOP_HOST_S = 0.3, 1.0, 10.0

SIZE = {"rows": 24, "columns": 80}


@dataclass
class Seen:
    """What was seen, by all together; seconds of the host."""

    calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of calls of the API, by their kind, once all terminals were open."""
    early: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of those before."""
    echoes: list[float] = field(default_factory=list)
    told: list[list[tuple[int, str, Any]]] = field(default_factory=list)
    """The events that each of them was told."""
    runs: list[str] = field(default_factory=list)


class Asker:
    """Somebody who asks over one connection, as browsers do."""

    def __init__(self, client: Client) -> None:
        self._client = client
        settings = client.settings
        self._connection = http.client.HTTPConnection(settings.host, settings.port, timeout=PATIENCE_HOST_S)

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, *, took: list[float]) -> Any:
        """What is answered; how long that took is noted."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._client.headers | ({} if data is None else {"Content-Type": "application/json"})
        began = time.perf_counter()
        try:
            self._connection.request(method, f"/api/v1{path}", data, headers)
            answer = self._connection.getresponse()
        except (ConnectionResetError, BrokenPipeError):  # it was idle for longer than servers keep connections
            self._connection.close()
            self._connection.request(method, f"/api/v1{path}", data, headers)
            answer = self._connection.getresponse()
        said = answer.read()
        took.append(time.perf_counter() - began)
        assert answer.status < 300, (path, answer.status, said)
        return json.loads(said) if said else None


def listen(client: Client, told: list[tuple[int, str, Any]]) -> None:
    """Reads events as they come, until one run is over."""
    with client.stream("/events?after=0") as events:
        for number, kind, data in events:
            if kind != "ready":
                told.append((int(number), kind, data))
            if data.get("state") in FINAL:
                return


def work(client: Client, lab: str, seen: Seen, all_there: threading.Barrier, host_s: float) -> None:
    """What one of them does; nobody waits for who cannot."""
    try:
        _work(client, lab, seen, all_there, host_s)
    except BaseException:
        all_there.abort()
        raise


def _work(client: Client, lab: str, seen: Seen, all_there: threading.Barrier, host_s: float) -> None:
    chance = random.Random(client.headers["Cookie"])
    with contextlib.closing(Asker(client)) as asker:
        kept = asker.ask("POST", "/labs", {"name": "a lab", "text": lab}, took=seen.early["keep"])["lab"]
        _type(client, asker, kept, chance, seen, all_there, host_s)


def _type(
    client: Client,
    asker: Asker,
    kept: str,
    chance: random.Random,
    seen: Seen,
    all_there: threading.Barrier,
    host_s: float,
) -> None:
    run = asker.ask("POST", f"/labs/{kept}/runs", {"stays": True, "key": "mine"}, took=seen.early["launch"])["run"]
    seen.runs.append(run)
    deadline = time.monotonic() + PATIENCE_HOST_S
    while (state := asker.ask("GET", f"/runs/{run}", took=seen.early["run"])["state"]) != "running":
        assert state not in FINAL and time.monotonic() < deadline, state
        time.sleep(ASK_HOST_S)
    asked = {"node": "a", **SIZE}
    terminal = asker.ask("POST", f"/runs/{run}/terminals", asked, took=seen.early["terminal"])["terminal"]
    settings = client.settings
    url = f"ws://{settings.host}:{settings.port}/api/v1/runs/{run}/terminals/{terminal}"
    with connect(
        url, additional_headers=client.headers, compression=None, proxy=None, open_timeout=PATIENCE_HOST_S
    ) as shown:
        all_there.wait(PATIENCE_HOST_S)
        time.sleep(chance.uniform(0, ASK_HOST_S))
        until, typed, answers = time.monotonic() + host_s, 0, 0
        questions = {"run": f"/runs/{run}", "runs": "/runs?count=50", "status": f"/runs/{run}/status", "labs": "/labs"}
        while typed == 0 or time.monotonic() < until:
            byte = bytes([ord("a") + typed % 26])
            typed += 1
            began = time.perf_counter()
            shown.send(byte)
            while byte not in (said if isinstance(said := shown.recv(PATIENCE_HOST_S), bytes) else b""):
                pass
            seen.echoes.append(time.perf_counter() - began)
            if typed * TYPE_HOST_S > answers * ASK_HOST_S:
                what = list(questions)[answers % len(questions)]
                answers += 1
                asker.ask("GET", questions[what], took=seen.calls[what])
            time.sleep(max(0.0, TYPE_HOST_S - (time.perf_counter() - began)))
    time.sleep(chance.uniform(0, min(host_s, STOP_HOST_S)))
    asker.ask("POST", f"/runs/{run}/stop", took=seen.calls["stop"])


def together(
    server: Process, people: int, host_s: float, all_there: Callable[[], None] = lambda: None, lab: str = ENDLESS
) -> Seen:
    """Has so many people work for so long.

    Args:
        server: Which has as many places for runs.
        people: How many.
        host_s: How long they type, in seconds of the host.
        all_there: Is called once all of them have a terminal.
        lab: What each of them has run, without end.

    Raises:
        AssertionError: somebody was answered by an error, or not all, or something was lost or doubled.
    """
    settings, seen, clients = server.client.settings, Seen(), []
    for number in range(people):
        server.client.api("POST", "/people", {"name": f"person{number}"})
        link = server.client.api("POST", f"/people/person{number}/link")["url"]
        cookie = let_in(settings, link.partition("?once=")[2])
        clients.append(Client(settings, {"Cookie": cookie, "Origin": settings.origin}))
    # As who types a lab: what reads labs is there from the first one on.
    clients[0].api("POST", "/check", {"text": lab, "is_drawn": True})
    seen.told = [[] for _ in clients]
    barrier = threading.Barrier(people, action=all_there)
    with ThreadPoolExecutor(2 * people) as threads:
        listening = [threads.submit(listen, client, told) for client, told in zip(clients, seen.told, strict=True)]
        done = [threads.submit(work, client, lab, seen, barrier, host_s) for client in clients]
        wait(done)
        if any(one.exception() for one in done):
            for run in seen.runs:  # so that nobody listens for ever, and none is left
                server.client.ask("POST", f"/api/v1/runs/{run}/stop")
        for one in (*done, *listening):
            one.result(PATIENCE_HOST_S)
    look_at(server.client, seen)
    return seen


def look_at(owner: Client, seen: Seen) -> None:
    """Looks whether each run was there once, and ended as it was told to, and everybody was told all of theirs once."""
    states = {run["run"]: owner.wait(run["run"], *FINAL)["state"] for run in owner.api("GET", "/runs?count=200")}
    assert states.keys() == set(seen.runs) and set(states.values()) <= {"finished", "aborted"}, states
    launched = owner.api("GET", "/audit?action=run.launch&count=200")
    assert len(launched) == len(seen.runs), "each was asked for once"
    for run in seen.runs:
        journal = owner.ask("GET", f"/api/v1/runs/{run}/journal").body.decode()
        assert journal.count("clock released") == 1, f"it began once: {journal}"
    mine = set()
    for told in seen.told:
        numbers = [number for number, _, _ in told]
        assert numbers == sorted(set(numbers)), "in their order, and none twice"
        runs = [data for _, kind, data in told if kind == "run"]
        assert [one["state"] for one in runs] == ["queued", "starting", "running", states[runs[0]["run"]]], runs
        mine |= {one["run"] for one in runs}
    assert mine == set(seen.runs), "to each their own"
