"""A run with a kernel, steered over a server: a terminal's job control and size, links and faults by the API; programs,
files and packets of its nodes by the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from subprocess import Popen
from typing import Any

from websockets.sync.client import connect

from dilaton.measure.packets.lines import lines
from tests.conftest import PATIENCE_HOST_S, command_line, environment
from tests.unit.server.serving import LAB, Client, Served, served


def test_a_terminal_over_a_websocket_is_one_to_the_programs_of_its_node(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        me = server.client()
        run = me.launch(me.keep(LAB), stays=True)
        me.wait(run, "running")
        asked = {"node": "b", "rows": 30, "columns": 100}
        terminal = me.api("POST", f"/runs/{run}/terminals", asked)["terminal"]
        url = f"ws://{server.settings.host}:{server.settings.port}/api/v1/runs/{run}/terminals/{terminal}"
        with connect(url, additional_headers=me.headers, proxy=None) as connection:
            connection.send(json.dumps({"rows": 40, "columns": 120}))
            connection.send(b"sh -c 'stty size; exec sleep 1000'\r")
            shown = b""
            while b"40 120" not in shown:
                message = connection.recv(PATIENCE_HOST_S)
                shown += message if isinstance(message, bytes) else b""
            # Ctrl-C ends the program in front of the shell, and the shell goes on.
            connection.send(b"\x03exit 7\r")
            while isinstance(message := connection.recv(PATIENCE_HOST_S), bytes):
                shown += message
            assert json.loads(message) == {"status": 7, "reason": ""} and b"b:" in shown
        change_link(me, run)
        begin_and_undo_faults(me, run)
        reach_nodes(server, run, tmp_path)
        me.api("POST", f"/runs/{run}/stop")
        me.wait(run, "finished", "aborted")


def change_link(me: Client, run: str) -> None:
    changed = me.api("POST", f"/runs/{run}/links", {"link": "a--b", "settings": [["delay", "30ms"]]})
    (shown,) = me.api("GET", f"/runs/{run}/links")["links"]
    assert changed["links"] == [shown] and '"delay_ns": 30000000' in json.dumps(shown)
    me.api("POST", f"/runs/{run}/links", {"link": "a--b", "settings": [["delay", "never"]]}, status=409)


def begin_and_undo_faults(me: Client, run: str) -> None:
    begun = me.api("POST", f"/runs/{run}/faults", {"fault": {"pause": "b"}})
    (fault,) = begun["faults"]
    assert (fault["what"], fault["state"], fault["by_hand"]) == ("pause b", "lasting", True)
    assert me.api("GET", f"/runs/{run}/faults")["faults"] == [fault]
    (over,) = me.api("POST", f"/runs/{run}/faults/undo", {"names": [fault["name"]]})["faults"]
    assert over["ended_ns"] >= over["began_ns"] == fault["began_ns"]
    again = me.api("POST", f"/runs/{run}/faults/undo", {"names": [fault["name"]]}, status=409)
    assert "is over" in again["detail"]
    assert "unknown node c" in me.api("POST", f"/runs/{run}/faults", {"fault": {"pause": "c"}}, status=409)["detail"]


def reach_nodes(server: Served, run: str, place: Path) -> None:
    token = server.client().api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]

    def there(*words: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
        argv = command_line("--server", server.settings.origin, *words)
        return subprocess.run(
            argv, env=environment() | {"DILATON_TOKEN": token}, capture_output=True, check=False, **streams
        )

    done = there("shell", run, "a", "sh", "-c", "tr a-z A-Z; echo wrong >&2; exit 5", input=b"hello" * 10_000)
    assert (done.returncode, done.stdout, done.stderr) == (5, b"HELLO" * 10_000, b"wrong\n")
    (sent := place / "sent").write_bytes(os.urandom(300_000))
    assert there("cp", run, str(sent), "a:/tmp/there").returncode == 0
    assert there("cp", run, "a:/tmp/there", str(place / "back")).returncode == 0
    assert (place / "back").read_bytes() == sent.read_bytes()
    captured = place / "captured.pcapng"
    capturing = Popen(
        command_line("--server", server.settings.origin, "capture", run, "b", "icmp", "-c", "2", "-w", captured),
        env=environment() | {"DILATON_TOKEN": token},
    )
    while capturing.poll() is None:
        there("shell", run, "a", "ping", "-c", "1", "-W", "1", "b")
    assert capturing.returncode == 0
    with captured.open("rb") as file:
        assert len(list(lines(file))) == 2
