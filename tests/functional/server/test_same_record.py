"""The same lab gives the same record by the command line, by a server's, and by what its page asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conftest import dilaton, environment
from tests.unit.server.serving import served

LAB = """
name: same
time: {drive: event}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 5ms, loss: 5%}]
run:
  - {on: a, name: pinged, exec: ping -i 0.1 -c 20 b}
"""


def told(files: dict[str, bytes]) -> Any:
    """What a run says of itself, without what is the host's: seconds, speeds, and what was observed of both."""
    record = json.loads(files["run.json"])
    for of in (record, *record["guests"]):
        del of["fidelity"]
    # The one has the name of a file, and the other of none.
    del record["host"], record["lab_file"]
    del record["verdict"]
    return record, record.pop("time")["virtual_s"], files["events.jsonl"], files["nodes/a/pinged.stdout"]


def left(run_dir: Path) -> dict[str, bytes]:
    return {name: (run_dir / name).read_bytes() for name in ("run.json", "events.jsonl", "nodes/a/pinged.stdout")}


def test_the_command_line_a_servers_and_the_page_get_the_same_record(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB)
    assert dilaton("run", lab, "--out", tmp_path / "here").returncode == 0
    here = left(tmp_path / "here")
    with served(tmp_path / "server") as server:
        owner = server.client()
        token = owner.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        options: dict[str, Any] = {"env": environment() | {"DILATON_TOKEN": token}}
        asked = ("--server", server.settings.origin, "run", lab, "--out", tmp_path / "there")
        assert dilaton(*asked, **options).returncode == 0
        run = owner.launch(owner.keep(LAB), stays=False)
        assert owner.wait(run, "finished", "failed", "aborted", "refused")["state"] == "finished"
        shown = {name: owner.ask("GET", f"/api/v1/runs/{run}/files/{name}").body for name in here}
    assert here["nodes/a/pinged.stdout"].count(b"time=") > 10
    assert told(left(tmp_path / "there")) == told(here)
    assert told(shown) == told(here)
