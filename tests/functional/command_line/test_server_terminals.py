"""A run with a kernel, steered over a server: a terminal's job control and size, links and faults by the API."""

from __future__ import annotations

import json
from pathlib import Path

from websockets.sync.client import connect

from tests.conftest import PATIENCE_HOST_S
from tests.unit.server.serving import LAB, Client, served


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
