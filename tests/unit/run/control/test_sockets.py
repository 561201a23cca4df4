"""The doors of runs: nobody can stand in one before its run does, strangers are told nothing, and every wait ends."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dilaton.run.control import requests as control
from dilaton.run.control import sockets
from dilaton.run.control.answers import SHOW
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client, Request, Result
from dilaton.run.control.sockets import Peer, name_for
from dilaton.service import catalogue
from dilaton.service.catalogue import going
from tests.unit.run.control.test_requests import serving

PYTHON = "/usr/bin/python3"
"""One that every user may execute."""
NOBODY = 65534
SHORT_S = 1.0
FLOOD = b"x" * (1 << 16)

MINE = {"lab": "mine", "lab_file": None, "run_dir": "/mine", "state": "boot", "suspended": False, "clock": None}


async def show(_: Request) -> Result:
    return MINE


@contextmanager
def listening(run_dir: Path, answer: Callable[[socket.socket], None], backlog: int = 10) -> Iterator[None]:
    """Somebody of this user who listens as the run in `run_dir`, and does `answer` on each connection, in a thread."""
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name_for(run_dir))
        listener.listen(backlog)
        listener.settimeout(0.02)

        def serve() -> None:
            kept = []
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                kept.append(connection)
                connection.settimeout(5)
                try:
                    connection.recv(1 << 16)
                    answer(connection)
                except OSError:
                    pass
            for connection in kept:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def keep_silent(_: socket.socket) -> None:
    """A server that never answers."""


def drip(connection: socket.socket) -> None:
    """A server that never comes to the end of a line."""
    while True:
        connection.sendall(b" ")
        time.sleep(0.01)


def show_life_only(connection: socket.socket) -> None:
    """A server that always says that it is at work."""
    while True:
        connection.sendall(b"\n")
        time.sleep(0.01)


def flood(connection: socket.socket) -> None:
    """A server whose answer has no end."""
    while True:
        connection.sendall(FLOOD)


def babble(connection: socket.socket) -> None:
    connection.sendall(b"[" * 60_000 + b"\n")


def say_a_list(connection: socket.socket) -> None:
    connection.sendall(b'{"result": [1]}\n')


def hang_up(connection: socket.socket) -> None:
    connection.close()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits as short as a test may last."""
    monkeypatch.setattr(sockets, "SILENCE_HOST_S", SHORT_S)
    monkeypatch.setattr(sockets, "CONNECT_HOST_S", SHORT_S)
    monkeypatch.setattr(catalogue, "LIST_HOST_S", SHORT_S)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (keep_silent, "has not answered within 1 s"),
        (drip, "has not answered within 1 s"),
        (flood, "says more than the 1048576 bytes of any answer"),
        (babble, "in no words"),
        (say_a_list, "in no words"),
        (hang_up, "the run has ended"),
    ],
)
def test_a_run_that_answers_badly_is_told_and_keeps_nobody(
    tmp_path: Path, answer: Callable[[socket.socket], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "REPLY_BYTES_MAX", 1 << 20)
    if answer is flood:
        monkeypatch.setattr(sockets, "SILENCE_HOST_S", 60.0)
    with listening(tmp_path, answer), Client(tmp_path) as client, pytest.raises(ControlError, match=said):
        client.request(SHOW)


@pytest.mark.parametrize("answer", [keep_silent, drip, show_life_only, babble, say_a_list, hang_up])
def test_the_list_of_runs_has_all_others_whatever_one_does(
    tmp_path: Path, answer: Callable[[socket.socket], None]
) -> None:
    (tmp_path / "bad").mkdir()
    with listening(tmp_path / "bad", answer), serving(tmp_path, {"show": show}):
        runs = going()
    assert MINE in runs.shown
    # Other runs of this machine may be silent, too.
    assert any(f"process {os.getpid()}" in why for why in runs.silent) == (answer is not hang_up)


def test_an_answer_that_takes_long_is_waited_for_since_the_run_shows_that_it_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "SIGN_OF_LIFE_HOST_S", SHORT_S / 10)

    async def take_long(_: Request) -> Result:
        await asyncio.sleep(SHORT_S * 3)
        return {"done": True}

    with serving(tmp_path, {"long": take_long}), Client(tmp_path) as client:
        assert client.request("long") == {"done": True}
        assert client.request("long") == {"done": True}


def test_who_leaves_while_its_answer_is_worked_on_disturbs_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(control, "SIGN_OF_LIFE_HOST_S", 0.001)
    over = threading.Event()

    async def take_long(_: Request) -> Result:
        await asyncio.sleep(SHORT_S)
        over.set()
        return {"done": True}

    with serving(tmp_path, {"long": take_long, "show": show}):
        client = Client(tmp_path)
        client._line.send(b'{"verb": "long"}\n')
        client.close()
        assert over.wait(60)
        with Client(tmp_path) as other:
            assert other.request(SHOW)["lab"] == "mine"
    assert capfd.readouterr().err == ""


def test_a_queue_of_connections_that_somebody_keeps_full_is_waited_for_only_so_long(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    with serving(tmp_path, {"show": show}), socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind("\0" + name_for(tmp_path / "full"))
        listener.listen(0)
        stack.enter_context(Client(tmp_path / "full"))
        with pytest.raises(ControlError, match="no run is going on there that takes a connection"):
            Client(tmp_path / "full")
        runs = going()
    assert MINE in runs.shown
    assert "1 that listen in names of runs take no connection" in runs.silent


def test_a_name_cannot_be_known_before_its_run_has_it(tmp_path: Path) -> None:
    assert name_for(tmp_path) != name_for(tmp_path)
    assert len(name_for(Path("/a" * 200))) < 100
    (tmp_path / "b").mkdir()
    stems = {name_for(path).rpartition("-")[0] for path in (tmp_path, tmp_path / "b", tmp_path / "b" / "..")}
    assert len(stems) == 2


STOPPED = """
import os, signal, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0" + sys.argv[1])
listener.listen()
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_run_that_is_stopped_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "SILENCE_HOST_S", 60.0)
    process = subprocess.Popen([sys.executable, "-c", STOPPED, name_for(tmp_path)])
    try:
        os.waitpid(process.pid, os.WUNTRACED)
        assert any(f"process {process.pid} of the run is stopped" in why for why in going().silent)
        with Client(tmp_path) as client, pytest.raises(ControlError, match=f"process {process.pid} .* is stopped"):
            client.request(SHOW)
    finally:
        process.kill()
        process.wait()


STRANGER = """
import socket, sys
listeners = []
for name in sys.argv[2:]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\\0" + name)
    listener.listen(int(sys.argv[1]))
    listeners.append(listener)
print("listens", flush=True)
while True:
    connection, _ = listeners[0].accept()
    said = connection.recv(100)
    if said:
        print("was told", said, flush=True)
"""
"""Listens in the names that it is given, tells what it is told there, and never answers."""


@contextmanager
def stranger(*names: str, backlog: int = 100) -> Iterator[subprocess.Popen[str]]:
    """Another user, really one where this is root, who listens in such names; ended at the end."""
    uid = NOBODY if os.geteuid() == 0 else None
    command = [PYTHON, "-I", "-c", STRANGER, str(backlog), *names]
    with subprocess.Popen(command, user=uid, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "listens\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.fixture
def as_stranger(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has a process be taken for another user's, where this test may not start one that really is."""
    really = sockets.peer

    def pretend(pid: int) -> None:
        if os.geteuid() != 0:
            monkeypatch.setattr(
                sockets,
                "peer",
                lambda connection: Peer(pid, NOBODY) if really(connection).pid == pid else really(connection),
            )

    return pretend


def guessed(run_dir: Path) -> list[str]:
    """Names that another user may take before a run begins: of any run, and those of old that follow from a directory."""
    prefix = f"dilaton-{os.geteuid()}-"
    digest = hashlib.sha256(os.fsencode(run_dir)).hexdigest()[:16]
    return [f"{prefix}{digest}-{'0' * 32}", f"{prefix}{digest}", f"{prefix}{'0' * 16}-{'0' * 32}"]


@pytest.mark.parametrize("backlog", [0, 100])
def test_another_user_who_was_there_first_neither_hinders_nor_hears_anybody(
    tmp_path: Path, as_stranger: Callable[[int], None], backlog: int
) -> None:
    with stranger(*guessed(tmp_path), backlog=backlog) as other:
        as_stranger(other.pid)
        with pytest.raises(ControlError, match=r"no run is going on there(; user nobody listens in its name)?"):
            Client(tmp_path)
        with serving(tmp_path, {"show": show}), Client(tmp_path) as client:
            assert client.request(SHOW)["lab"] == "mine"
            runs = going()
            assert runs.shown.count(MINE) == 1
        other.send_signal(signal.SIGKILL)
        assert other.stdout
        assert other.stdout.read() == "", "something was said to another user"


def test_a_thousand_names_of_another_user_cost_a_list_little(
    tmp_path: Path, as_stranger: Callable[[int], None]
) -> None:
    names = [f"dilaton-{os.geteuid()}-{number:016x}-{'0' * 32}" for number in range(900)]
    with stranger(*names) as other, serving(tmp_path, {"show": show}):
        as_stranger(other.pid)
        before = time.process_time()
        assert MINE in going().shown
        assert time.process_time() - before < 1


CALLER = """
import re, socket, sys
connection = socket.socket(socket.AF_UNIX)
name = next(n for n in re.findall("@(.*)", open("/proc/net/unix").read()) if n.startswith(sys.argv[1]))
connection.connect("\\0" + name)
try:
    connection.sendall(b'{"verb": "show"}\\n')
    print(connection.recv(100))
except ConnectionError as error:
    print(b"")
"""


def test_a_run_does_nothing_for_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stem = name_for(tmp_path).rpartition("-")[0]
    uid = NOBODY if os.geteuid() == 0 else None
    if uid is None:
        monkeypatch.setattr(sockets, "peer", lambda _: Peer(1, NOBODY))
    with serving(tmp_path, {"show": show}):
        done = subprocess.run(
            [PYTHON, "-I", "-c", CALLER, stem], user=uid, capture_output=True, text=True, check=False, cwd="/"
        )
    assert done.stdout == "b''\n", done.stderr


def test_who_may_not_steer_a_run_is_told_whose_it_is(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(ControlError, match="that is yours; the directory is of user nobody, who alone can steer"):
        Client(tmp_path)
