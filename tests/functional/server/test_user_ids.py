"""A server that is root gives each person's runs a user id of their own, and is killed and started again meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from dilaton.server.settings import Settings
from dilaton.service.launch import BEHIND, behind_of
from tests.conftest import PATIENCE_HOST_S, command_line, environment
from tests.host.ordinary import interpreter
from tests.host.processes import status_of
from tests.images import busybox, layout, needs_programs
from tests.unit.server.runs.server_process import Process, let_in
from tests.unit.server.serving import ENDLESS, Client

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives processes other users' ids")

FIRST = 2_000_000_000 + 10 * os.getpid()
"""Nobody else's here, nor of another such test that goes on."""

LEFT_HOST_S_MAX = 5.0
"""After which nothing of a run is left."""

NICEST = 19
"""Beyond which no process gets."""

START = """
import pathlib, runpy, sys
from dilaton.server import workers
workers.OURS += tuple(pathlib.Path(place) for place in sys.path if place.endswith("site-packages"))
runpy.run_module("dilaton.server", run_name="__main__", alter_sys=True)
"""
"""Has workers see the packages that are beside this Python and not within it."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of root's that all users may pass, as pytest's own are not."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="dilaton-test-"))
    path.chmod(0o711)
    yield path
    for process in (*processes(FIRST), *processes(FIRST + 1)):
        # Runs outlive their server, whatever has become of the test.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(process.name), signal.SIGKILL)
    shutil.rmtree(path)


def command(place: Path) -> list[str]:
    """That of a server whose data are there."""
    file = place / "server.yaml"
    file.write_text(f"data: data\nat_once: 3\nrun_as: {{first: {FIRST}, count: 2}}\n")
    return [*interpreter(), "-P", "-c", START, json.dumps({"port": 0, "config": str(file)})]


@contextlib.contextmanager
def serving(place: Path) -> Iterator[Process]:
    """A server whose data are there; it is killed at the end."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "PGPASSWORD": "secret"}
    with subprocess.Popen(command(place), env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        try:
            _, link = running.stdout.readline(), running.stdout.readline()
            url, _, once = link.strip().rpartition(": ")[2].partition("/login?once=")
            settings = Settings(place / "data", port=int(url.rpartition(":")[2]))
            cookie = let_in(settings, once)
            yield Process(running, Client(settings, {"Cookie": cookie, "Origin": settings.origin}))
        finally:
            running.kill()


def person(server: Process, name: str) -> Client:
    server.client.api("POST", "/people", {"name": name})
    link = server.client.api("POST", f"/people/{name}/link")["url"]
    cookie = let_in(server.client.settings, link.partition("?once=")[2])
    return Client(server.client.settings, {"Cookie": cookie, "Origin": server.client.settings.origin})


def processes(uid: int) -> list[Path]:
    """Those of a user that live: one that is dead waits for whoever adopted it, as this process may have."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == uid and not status_of(int(path.name)).get("State", "Z").startswith("Z"):
                found.append(path)
    return found


def reads(uid: int, path: Path) -> bool:
    """Whether a process that has no more than a user's id reads a file, or lists a directory."""
    words = ["ls" if path.is_dir() else "cat", str(path)]
    return subprocess.run(words, user=uid, group=uid, extra_groups=(), cwd="/", capture_output=True).returncode == 0


def typed(client: Client, run: str, words: str) -> str:
    """What a terminal in a node shows once a shell's line is done."""
    terminal = client.api("POST", f"/runs/{run}/terminals", {"node": "a", "rows": 24, "columns": 400})["terminal"]
    settings = client.settings
    url = f"ws://{settings.host}:{settings.port}/api/v1/runs/{run}/terminals/{terminal}"
    shown = b""
    with connect(url, additional_headers=client.headers, proxy=None) as connection:
        connection.send(f"{words}; exit\r".encode())
        while isinstance(message := connection.recv(PATIENCE_HOST_S), bytes) or "status" not in message:
            shown += message if isinstance(message, bytes) else b""
    return shown.decode()


def test_runs_of_two_people_read_nothing_of_each_other_nor_of_the_server(place: Path) -> None:
    with serving(place) as server:
        ann, ben = person(server, "ann"), person(server, "ben")
        runs = [client.launch(client.keep(ENDLESS), stays=True) for client in (ann, ben)]
        data = place / "data"
        for client, run in zip((ann, ben), runs, strict=True):
            shown = client.wait(run, "running", "refused", "failed")
            assert shown["state"] == "running", shown["reason"]
        directories = [data / "runs" / run for run in runs]
        of_ann, of_ben = ((directory / "run").stat().st_uid for directory in directories)
        assert {of_ann, of_ben} == {FIRST, FIRST + 1}
        assert {path.lstat().st_uid for path in (directories[0] / "run").rglob("*")} == {of_ann}
        runner = next(path for path in processes(of_ann) if b"service.runner" in (path / "cmdline").read_bytes())
        nices = {os.getpriority(os.PRIO_PROCESS, int(path.name)) for path in processes(of_ann)}
        usual = os.getpriority(os.PRIO_PROCESS, 0)
        assert nices == {min(usual + further, NICEST) for further in (BEHIND, BEHIND + behind_of(3))}, (
            "run's and guest's"
        )
        status = (runner / "status").read_text()
        assert re.search(r"^Groups:\s*$", status, re.MULTILINE) and re.search(r"^CapPrm:\s*0+$", status, re.MULTILINE)
        assert b"secret" not in (runner / "environ").read_bytes(), "what the server's environment has is its own"
        own, others = directories
        assert reads(of_ann, own / "run") and reads(of_ann, own / "run" / "run.json")
        assert reads(of_ben, others / "run" / "run.json")
        kept = [others / "run", others / "run" / "run.json", others / "home", others / "files", others / "journal.txt"]
        kept += [own, own / "journal.txt", own / "drawing.json", data, data / "runs"]
        kept += [path for path in data.iterdir() if path.is_file()]
        assert [path for path in kept if reads(of_ann, path)] == [], "others', and the server's"
        assert any(path.name == "server.sqlite" for path in kept)
        said = typed(ann, runs[0], f"cat {data}/server.sqlite {others}/run/run.json && echo RE''AD; id -u")
        assert "No such file" in said and "READ" not in said

        server.kill()

    with serving(place) as server:
        owner = server.client
        assert [owner.wait(run, "running")["run"] for run in runs] == runs, "they are found again"
        owner.api("POST", f"/runs/{runs[0]}/hold")
        assert owner.wait(runs[0], "held") and owner.api("GET", f"/runs/{runs[0]}/status")["clock"]["held"]
        saved = owner.ask("POST", f"/api/v1/runs/{runs[0]}/save?folder=/home/ben", {"name": "monday"}).body
        assert b'"saved"' in saved, saved
        settings = owner.settings
        ben = Client(settings, ben.headers | {"Origin": settings.origin})
        again = ben.api("POST", "/saved/monday/runs", {"stays": True})["run"]
        shown = owner.wait(again, "running", "refused", "failed")
        assert shown["state"] == "running", shown["reason"]
        for run in (*runs, again):
            owner.api("POST", f"/runs/{run}/stop")
            assert owner.wait(run, "finished", "aborted", "failed")["state"] in ("finished", "aborted")
        owner.api("POST", "/comparisons", {"runs": runs})
        assert owner.ask("GET", f"/api/v1/runs/{again}/files/run.json").status == 200
        assert "user ids are given" in refused(owner, person(server, "cora"))
        owner.api("DELETE", f"/runs/{runs[0]}")
        assert not directories[0].exists()
    # A run has ended once its journal is free, and its process a moment later.
    until = time.monotonic() + LEFT_HOST_S_MAX
    while (left := [*processes(of_ann), *processes(of_ben)]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left, [(path / "cmdline").read_bytes() for path in left]


def refused(owner: Client, client: Client) -> str:
    """Why a run of somebody was refused, who is one too many."""
    run = client.launch(client.keep(ENDLESS))
    return str(owner.wait(run, "refused", "running")["reason"])


@needs_programs
def test_nodes_of_a_persons_runs_have_images_also_those_made_meanwhile(place: Path) -> None:
    boxes = "name: boxes\nnodes: {a: {image: 'BOX'}}\ntime: {max_speed: 1}\n"
    source = layout(place / "oci", [busybox()], {"Env": ["PATH=/bin"]})
    own = environment() | {"HOME": str(place)}
    own.pop("XDG_DATA_HOME", None)
    subprocess.run(command_line("image", "import", source, "box"), env=own, check=True)
    with serving(place) as server:
        ann = person(server, "ann")
        for image, words in (("box", "echo kept > /kept"), ("box:new", "cat /kept")):
            run = ann.launch(ann.keep(boxes.replace("BOX", image)), stays=True)
            shown = ann.wait(run, "running", "refused", "failed")
            assert shown["state"] == "running", shown["reason"]
            assert (place / "data" / "runs" / run / "run").stat().st_uid == FIRST
            said = typed(ann, run, words)
            if image == "box":
                made = server.client.ask("POST", f"/api/v1/runs/{run}/image", {"node": "a", "name": "box:new"}).body
                assert b'"image"' in made, made
            ann.api("POST", f"/runs/{run}/stop")
            assert ann.wait(run, "finished", "aborted", "failed")["state"] in ("finished", "aborted")
    assert "\nkept" in said


def test_what_runs_cannot_reach_is_told_at_the_start(place: Path) -> None:
    place.chmod(0o700)
    environment = {"PATH": os.environ["PATH"], "HOME": str(place)}
    done = subprocess.run(command(place), env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert f"run_as: user {FIRST} does not reach what its runs need: " in done.stderr and str(place) in done.stderr
