"""Ports of this machine that lead to ports of nodes: whole answers both ways, host speed, a record that says so."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dilaton.cli.errors import BadInputError
from dilaton.cli.steering.forward import ways_of
from dilaton.server.runs.life import FINAL
from tests.conftest import PATIENCE_HOST_S, command_line, dilaton, environment, started
from tests.unit.server.serving import Client, served

PAGE = bytes(range(256)) * 1200

WEB = """
import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(range(256)) * 1200)
http.server.HTTPServer(("10.0.0.0", 80), Page).serve_forever()
"""

ECHO = """
import socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.read()[::-1])
socketserver.ThreadingTCPServer(("127.0.0.1", 7), Echo).serve_forever()
"""

LAB = {
    "name": "web",
    "nodes": {"web": {}, "b": {}},
    "links": [{"endpoints": "web -- b", "delay": "5ms"}],
    "run": [
        {
            "on": "web",
            "name": "page",
            "exec": ["/usr/bin/python3", "-c", WEB],
            "background": True,
            "ready": {"tcp": 80},
        },
        {
            "on": "web",
            "name": "echo",
            "exec": ["/usr/bin/python3", "-c", ECHO],
            "background": True,
            "ready": {"tcp": 7},
        },
        {"on": "b", "name": "both", "exec": "true", "after": ["page", "echo"]},
    ],
}
"""One of its servers listens on an address of the lab alone, the other one on loopback alone."""


@contextlib.contextmanager
def forwarded(*words: str, **env: str) -> Iterator[list[int]]:
    """Ports of this machine, as long as the command goes on."""
    forwarding = subprocess.Popen(
        command_line(*words), env=environment() | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert forwarding.stdout is not None
    try:
        ports = words[words.index("forward") + 2 :]
        lines = [forwarding.stdout.readline() for _ in ports]
        yield [int(line.partition(" ")[0].rpartition(":")[2]) for line in lines]
        forwarding.send_signal(signal.SIGINT)
        assert forwarding.wait(PATIENCE_HOST_S) == 0
    finally:
        forwarding.kill()
        forwarding.communicate()


def wait_for_servers(run: Path) -> None:
    """Until both servers are ready, and what waits for them has ended."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    events, record = run / "events.jsonl", run / "run.json"
    while not events.is_file() or '"exited"' not in events.read_text():
        said = json.loads(record.read_text()) if record.is_file() else {"state": "beginning"}
        assert said["state"] not in FINAL, said
        assert time.monotonic() < deadline, run
        time.sleep(0.1)


def fetched(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=PATIENCE_HOST_S) as answer:
        return bytes(answer.read())


def said(port: int, what: bytes) -> bytes:
    """What comes back of what is said, whose end is told."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_HOST_S) as connection:
        connection.sendall(what)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as reading:
            return reading.read()


def meet_both(page: int, echo: int, nothing: int) -> None:
    assert fetched(page, "any") == PAGE
    assert said(echo, PAGE) == PAGE[::-1], "all of it, and its end, reached the node and came back"
    assert said(nothing, b"x") == b""


def end(run: Path) -> dict[str, Any]:
    assert dilaton("stop", run).returncode == 0
    record: dict[str, Any] = json.loads((run / "run.json").read_text())
    return record


def test_ports_of_nodes_are_reached_from_here_and_the_record_says_so(tmp_path: Path) -> None:
    (lab := tmp_path / "lab.yaml").write_text(json.dumps(LAB))
    out = tmp_path / "run"
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with started("run", lab, "--out", out, "--stay", **streams) as run:
        wait_for_servers(out)
        with forwarded("forward", str(out), "web:80", "web:7", "b:7") as ports:
            meet_both(*ports)
        wrong = dilaton("forward", out, "c:80")
        assert (wrong.returncode, wrong.stderr) == (2, "dilaton: c: no such node; there are b, web\n")
        record = end(out)
        printed, _ = run.communicate(timeout=PATIENCE_HOST_S)
    reached = {(one["node"], one["port"]): one["connections"] for one in record["from_outside"]}
    assert reached == {("web", 80): 1, ("web", 7): 1, ("b", 7): 1}
    for told in (printed, (out / "report.html").read_text()):
        assert "influenced from outside by web:80 (1 connection)" in " ".join(told.split())


@pytest.mark.parametrize("text", ["web", "80", ":80", "web:0", "web:65536", "1:2:3:4", "x:web:80", "65536:web:80"])
def test_what_is_no_port_of_a_node_is_refused_with_what_would_be_one(text: str) -> None:
    with pytest.raises(BadInputError, match="as 8080:web:80"):
        ways_of([text])


def test_ports_of_nodes_of_a_servers_run_are_reached_from_here(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        me = server.client()
        token = me.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        run = me.launch(me.keep(json.dumps(LAB)), stays=True)
        me.wait(run, "running")
        place = server.state.keeper.run_dir(run)
        wait_for_servers(place)
        to = ("--server", server.settings.origin, "forward", run)
        with forwarded(*to, "web:80", "web:7", "b:7", DILATON_TOKEN=token) as ports:
            meet_both(*ports)
        assert look_through_door(me, run, "web", 80) == (200, PAGE)
        status, told = look_through_door(me, run, "b", 80)
        assert status == 502 and b"b:80" in told
        me.api("POST", f"/runs/{run}/stop")
        me.wait(run, "finished", "aborted")
        record = me.api("GET", f"/runs/{run}/record")
        assert [one["port"] for one in record["from_outside"]] == [80, 7, 7, 80]
        done = [one["data"]["argv"] for one in me.api("GET", "/audit") if one["action"] == "run.console"]
        assert sorted(done) == [*[["door", "80"]] * 2, ["port", "7"], ["port", "7"], ["port", "80"]]


def look_through_door(me: Client, run: str, node: str, port: int) -> tuple[int, bytes]:
    """What a browser is shown that comes by the link to a node's page."""
    door = me.api("POST", f"/runs/{run}/doors", {"node": node, "port": port})
    origin = door["url"].rstrip("/")
    browser = Client(me.settings, {"Host": origin.partition("//")[2]})
    let_in = browser.ask("GET", door["link"].removeprefix(origin)).headers["set-cookie"].partition(";")[0]
    answer = browser.ask("GET", "/", Cookie=let_in)
    return answer.status, answer.body


def test_what_is_forwarded_leads_to_that_port_of_that_run_and_nowhere_else(tmp_path: Path) -> None:
    """Neither to this machine, whose loopback is not a node's, nor to another run with nodes of the same names."""
    programs: Any = LAB["run"]
    without_page = LAB | {"run": [programs[1], programs[2] | {"after": ["echo"]}]}
    with served(tmp_path) as server, socket.create_server(("127.0.0.1", 0)) as here:
        me = server.client()
        token = me.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        one, other = (me.launch(me.keep(json.dumps(lab)), stays=True) for lab in (LAB, without_page))
        for run in (one, other):
            me.wait(run, "running")
            wait_for_servers(server.state.keeper.run_dir(run))
        here.settimeout(1)
        number = here.getsockname()[1]
        to = ("--server", server.settings.origin, "forward")
        with (
            forwarded(*to, one, "web:80", f"web:{number}", f"b:{number}", DILATON_TOKEN=token) as (page, *nothing),
            forwarded(*to, other, "web:80", DILATON_TOKEN=token) as (none,),
        ):
            assert fetched(page, "any") == PAGE
            assert [said(port, b"x") for port in (*nothing, none)] == [b"", b"", b""]
        with pytest.raises(TimeoutError):
            here.accept()
        for run in (one, other):
            me.api("POST", f"/runs/{run}/stop")
            me.wait(run, "finished", "aborted")
