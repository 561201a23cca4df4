"""Runs with kernels at a server, put away and gone on with by the command line: saved labs, images, repeated runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dilaton.server.runs.life import FINAL
from tests.conftest import PYTHON, command_line, environment
from tests.images import busybox, layout, needs_programs
from tests.unit.server.serving import Client, Served, end_runs, served

LAB = """
name: shop
time: {drive: work}
nodes: {db: {disk: {model: nvme, size: 16MiB, mount: /srv}}, plain: {}}
links: [{endpoints: [db, plain], delay: 1ms}]
run:
  - {on: db, name: kept, exec: sh -c 'cat /srv/kept /var/kept; echo disk > /srv/kept; echo tree > /var/kept; sync'}
"""

REPEATED = f"""
name: again
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], delay: 5ms, loss: 5%}}]
run:
  - {{on: a, name: pinged, exec: ping -i 0.1 -c 30 b}}
  - {{on: b, name: draw, exec: [{PYTHON}, -c, "import os; print(os.urandom(20).hex(), flush=True)"]}}
"""

Dilaton = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    roles = tmp_path / "roles.yaml"
    roles.write_text("{}\n")
    with served(tmp_path / "server", roles=roles) as found:
        yield found
        end_runs(found)


@pytest.fixture
def dilaton(server: Served, tmp_path: Path) -> Dilaton:
    """The command line, which asks the server with a token."""
    token = server.client().api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]

    def done(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = command_line("--server", server.settings.origin, *words)
        env = environment() | {"DILATON_TOKEN": token}
        ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert ended.returncode == status, ended.stderr
        return ended

    return done


def output(client: Client, run: str, path: str) -> str:
    return client.ask("GET", f"/api/v1/runs/{run}/files/nodes/{path}").body.decode()


def test_a_saved_run_goes_on_there_with_what_its_nodes_had(server: Served, dilaton: Dilaton, tmp_path: Path) -> None:
    owner = server.client()
    (tmp_path / "lab.yaml").write_text(LAB)
    run = dilaton("up", "--detach", "lab.yaml").stdout.split()[-1]
    with owner.stream(f"/runs/{run}/happenings") as told:
        assert any(data.get("event", {}).get("kind") == "exited" for _, _, data in told), "it has written what is saved"
    dilaton("shell", run, "plain", "sh", "-c", "echo by hand > /etc/own")
    said = dilaton("save", run, "monday").stdout
    assert "shop as at" in said and "up -d monday" in said
    assert owner.api("GET", f"/runs/{run}")["state"] == "running", "it goes on"
    (tmp_path / "roles.yaml").write_text("quotas: {everyone: {saved: 40KiB}}\n")
    assert "no room: your saved labs may take 40960 bytes" in dilaton("save", run, "tuesday", status=2).stderr
    assert [one["name"] for one in owner.api("GET", "/saved")["saved"]] == ["monday"], "nothing of it is there"
    elsewhere = owner.ask("POST", f"/api/v1/runs/{run}/save?folder=/courses/net1", {"name": "tuesday"})
    assert b"your saved labs may take 40960 bytes" in elsewhere.body, "what is theirs counts wherever it is"
    (tmp_path / "roles.yaml").write_text("{}\n")
    dilaton("down", run)
    assert "monday" in dilaton("saved", "list").stdout
    assert json.loads(dilaton("saved", "show", "monday").stdout)["lab"] == "shop"
    again = dilaton("up", "--detach", "monday").stdout.split()[-1]
    assert dilaton("shell", again, "plain", "cat", "/etc/own").stdout == "by hand\n"
    shown = owner.api("GET", f"/runs/{again}")
    assert (shown["name"], shown["lab"], shown["version"]) == ("shop", None, 0)
    dilaton("down", again)
    assert output(owner, again, "db/kept.stdout") == "disk\ntree\n"
    # What waits in the queue goes on from what it was asked for with, or not at all.
    assert "no such saved lab" in dilaton("run", "tuesday", status=2).stderr
    dilaton("saved", "remove", "monday")
    assert owner.api("GET", "/saved") == {"saved": [], "broken": []}
    done = {entry["action"] for entry in owner.api("GET", "/audit")}
    assert {"run.save", "saved.remove"} <= done


def test_a_run_there_is_repeated_up_to_an_instant_and_its_state_compared(
    server: Served, dilaton: Dilaton, tmp_path: Path
) -> None:
    owner = server.client()
    (tmp_path / "lab.yaml").write_text(REPEATED)
    dilaton("run", "lab.yaml", "--set", "seed=7")
    first = owner.api("GET", "/runs")[0]["run"]
    said = dilaton("resume", first, "--at", "1.5s").stdout
    assert "is held at 1.5s, in the state that" in said
    again = said.split()[0]
    assert output(owner, again, "b/draw.stdout") == output(owner, first, "b/draw.stdout") != ""
    dilaton("clock", again, "release")
    assert owner.wait(again, "finished", "failed", "aborted")["state"] == "finished"
    assert output(owner, again, "a/pinged.stdout") == output(owner, first, "a/pinged.stdout")
    drawn = server.state.keeper.run_dir(first) / "nodes" / "b" / "draw.stdout"
    drawn.write_bytes(b"x" + drawn.read_bytes()[1:])
    refused = dilaton("resume", first, "--at", "1.5s", status=2).stderr
    assert "not the same state: nodes/b/draw.stdout" in refused
    owner.wait(owner.api("GET", "/runs")[0]["run"], *FINAL)  # what stands elsewhere is ended
    assert "the run ended at" in dilaton("resume", first, "--at", "99s", status=2).stderr


@needs_programs
def test_a_node_there_becomes_an_image(server: Served, dilaton: Dilaton, tmp_path: Path) -> None:
    source = layout(tmp_path / "oci", [busybox()], {"Env": ["PATH=/bin"]})
    subprocess.run(command_line("image", "import", source, "box"), env=environment(), check=True)
    (tmp_path / "lab.yaml").write_text("name: boxes\nnodes: {a: {image: box}, b: {}}\nlinks: [a -- b]\n")
    run = dilaton("up", "--detach", "lab.yaml").stdout.split()[-1]
    dilaton("shell", run, "a", "sh", "-c", "echo new > /etc/new")
    assert "box:new" in dilaton("save", f"{run}:a", "box:new").stdout
    assert "this machine's file tree" in dilaton("save", f"{run}:b", "other", status=2).stderr
    dilaton("down", run)
    (tmp_path / "lab.yaml").write_text("name: boxes\nnodes: {a: {image: 'box:new'}, b: {}}\nlinks: [a -- b]\n")
    run = dilaton("up", "--detach", "lab.yaml").stdout.split()[-1]
    assert dilaton("shell", run, "a", "cat", "/etc/new").stdout == "new\n"
    dilaton("down", run)
