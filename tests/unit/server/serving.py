"""A server for tests: real, on loopback, in a thread; its runs are processes on a machine without a kernel."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from dilaton.server.access.callers import cookie, log_in
from dilaton.server.app import opened
from dilaton.server.database.actions import now_ms
from dilaton.server.database.tables import RunRow
from dilaton.server.runs.life import FINAL
from dilaton.server.serve import OWNER, configured, listening_on, make_owner
from dilaton.server.settings import Settings
from dilaton.server.state import State
from dilaton.service.launch import is_alive
from tests.conftest import PATIENCE_HOST_S, ROOT

LAB = """\
name: tiny
nodes: {a: {}, b: {}}
links: [a -- b]
run:
  - {on: a, name: first, exec: "true"}
"""

ENDLESS = LAB.replace("first", "endless").replace('"true"', "sleep 100000") + "time: {max_speed: 1}\n"
"""In a guest, too: virtual time on the work drive would be at the end of a sleep at once."""

HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}
"""By which a WebSocket begins."""

STUB = (sys.executable, "-P", "-m", "tests.stub_runner")


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


@dataclass
class Client:
    """Somebody who asks, with headers of their own."""

    settings: Settings
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Asks for something; a body that is not bytes is sent as JSON."""
        connection = http.client.HTTPConnection(self.settings.host, self.settings.port, timeout=PATIENCE_HOST_S)
        sent = self.headers | headers
        if body is not None and not isinstance(body, bytes):
            body, sent = json.dumps(body).encode(), {"Content-Type": "application/json"} | sent
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def api(self, method: str, path: str, body: Any = None, status: int | None = None) -> Any:
        """Asks the API; what it says, and the status is as told, or one of success."""
        answer = self.ask(method, f"/api/v1{path}", body)
        assert answer.status == status or (status is None and answer.status < 300), answer
        return answer.json if answer.body else None

    @contextlib.contextmanager
    def stream(self, path: str, last: str = "") -> Iterator[Iterator[tuple[str, str, Any]]]:
        """The events of a stream: number, kind and data each."""
        connection = http.client.HTTPConnection(self.settings.host, self.settings.port, timeout=PATIENCE_HOST_S)
        try:
            connection.request(
                "GET", f"/api/v1{path}", headers=self.headers | ({"Last-Event-ID": last} if last else {})
            )
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield _events(answer)
        finally:
            connection.close()

    def keep(self, text: str = LAB, **query: str) -> str:
        """Keeps a lab; returns its identity."""
        folder = f"?folder={query['folder']}" if query else ""
        return str(self.api("POST", f"/labs{folder}", {"name": "a lab", "text": text})["lab"])

    def launch(self, lab: str, **asked: Any) -> str:
        """Has a lab run; returns the run's identity."""
        return str(self.api("POST", f"/labs/{lab}/runs", asked)["run"])

    def wait(self, run: str, *states: str) -> Any:
        """Waits until a run has one of these states; returns it."""
        deadline = time.monotonic() + PATIENCE_HOST_S
        while (shown := self.api("GET", f"/runs/{run}"))["state"] not in states:
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)
        return shown


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str, Any]]:
    said: dict[str, str] = {}
    while line := answer.readline().decode():
        if line == "\n" and "data" in said:
            yield said["id"], said["event"], json.loads(said["data"])
        name, _, value = line.rstrip("\n").partition(": ")
        said = said | {name: value} if line != "\n" else {}


def run_row(identity: str, state: str, person: str = OWNER, **others: Any) -> RunRow:
    """A run in its person's own folder, written down as if it had been asked for."""
    asked: dict[str, Any] = {"overrides": {}, "hold_at": None, "stays": False, "max_disk": None}
    of_lab = {"version": 1, "name": "tiny", "text": LAB, "asked": asked}
    usual = {"folder": f"/home/{person}", "created_ms": now_ms()} | of_lab
    return RunRow(identity=identity, state=state, person=person, **(usual | others))


@dataclass
class Served:
    """A server that goes on, and who may ask it."""

    state: State

    @property
    def settings(self) -> Settings:
        """How it is set up."""
        return self.state.settings

    def client(self, person: str = OWNER) -> Client:
        """Somebody who is logged in, as a browser on a page of the server."""
        secret = log_in(self.state.store, person, "test")
        return Client(self.settings, {"Cookie": f"{cookie(self.settings)}={secret}", "Origin": self.settings.origin})

    def stranger(self) -> Client:
        """Somebody who is not logged in."""
        return Client(self.settings)


@contextlib.contextmanager
def served(directory: Path, at_once: int = 2, **others: Any) -> Iterator[Served]:
    """A server whose data are in a directory, with settings beside that."""
    settings = Settings(directory, port=0, at_once=at_once, **others)
    with listening_on(settings) as listening:
        state = opened(replace(settings, port=listening.getsockname()[1]))
        make_owner(state)
        server = uvicorn.Server(configured(state))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield Served(state)
        finally:
            server.should_exit = True
            thread.join()


def end_runs(server: Served) -> None:
    """Ends all runs of a server and waits for their processes: none ends with its server, whatever became of the test."""
    client = server.client()
    keeper = server.state.keeper
    runs = [run["run"] for run in client.api("GET", "/runs?count=200")]
    for run in runs:
        # Over already, or about to begin, in which case it has to be asked again.
        client.ask("POST", f"/api/v1/runs/{run}/stop")
    deadline = time.monotonic() + PATIENCE_HOST_S
    while alive := [
        run for run in runs if client.api("GET", f"/runs/{run}")["state"] not in FINAL or is_alive(keeper.journal(run))
    ]:
        assert time.monotonic() < deadline, f"runs that do not end: {alive}"
        time.sleep(0.2)
        client.ask("POST", f"/api/v1/runs/{alive[0]}/stop")


def use_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has runs that are launched from here be on a machine without a kernel."""
    monkeypatch.setattr("dilaton.service.launch.RUNNER", STUB)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
