"""Commands that tests fork from one that is ready: they are what new processes would be."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.here.uml import kernels
from tests.conftest import PATIENCE_HOST_S, command_line, environment
from tests.host.processes import children
from tests.ready import commands
from tests.ready.commands import Command

LAB = "name: read\nnodes: {a: {}}\n"
Start = Callable[..., Command]


@pytest.fixture(params=["a new process", "forked"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a command that reads a lab from its input; options are those of `Popen`."""
    forked = request.param == "forked"
    monkeypatch.setattr(commands, "allowed", forked)

    def started(*arguments: str, **options: Any) -> Command:
        words = arguments or ("check", "/dev/stdin")
        commands.seen.add(words[0])
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = Command(command_line(*words), text=True, **(pipes | {"env": environment()} | options))
        assert ("starter" in Path(f"/proc/{process.pid}/cmdline").read_text()) == forked
        return process

    return started


def waits_for_input(process: Command) -> None:
    """Waits until a command reads its input, which it has opened anew."""
    for _ in range(int(PATIENCE_HOST_S * 100)):
        # One may be closed before it is looked at.
        with contextlib.suppress(FileNotFoundError):
            files = Path(f"/proc/{process.pid}/fd")
            if sum(os.readlink(file).startswith("pipe:") for file in files.iterdir()) > 3:
                return
        signal.sigtimedwait([], 0.01)
    raise AssertionError("it does not read")


def test_it_is_a_child_of_ours_with_the_directory_the_files_and_the_signals_of_any(
    start: Start, tmp_path: Path
) -> None:
    with start(cwd=tmp_path) as process:
        waits_for_input(process)
        proc = Path(f"/proc/{process.pid}")
        status = dict(re.findall(r"(\w+):\t(.*)", (proc / "status").read_text()))
        assert status["PPid"] == str(os.getpid())
        assert (os.getpgid(process.pid), os.getsid(process.pid)) == (os.getpgid(0), os.getsid(0))
        assert Path(os.readlink(proc / "cwd")) == tmp_path
        assert {file.name for file in (proc / "fd").iterdir()} == {"0", "1", "2", "3"}
        assert status["Umask"] == re.findall(r"Umask:\t(.*)", Path("/proc/self/status").read_text())[0]
        ignored, caught = int(status["SigIgn"], 16), int(status["SigCgt"], 16)
        assert int(status["SigBlk"], 16) == 0
        assert ignored == 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1
        assert caught == 1 << signal.SIGINT - 1
        assert process.communicate(LAB) == ("/dev/stdin: read: 1 node, 0 links, 0 processes: good\n", "")
    assert process.returncode == 0


def test_ctrl_c_ends_it_at_any_time(start: Start) -> None:
    with start() as process:
        waits_for_input(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_HOST_S) == 130
    with start() as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_HOST_S) == -signal.SIGTERM


def test_what_is_wrong_has_its_status_and_its_words(start: Start) -> None:
    with start() as process:
        out, said = process.communicate("name: 'no name'\nnodes: {}\n")
    assert (process.returncode, out) == (2, "")
    assert said.startswith("/dev/stdin:1:7: ")


def test_its_environment_is_what_was_given(start: Start) -> None:
    with start("exec", "--", "true", env=environment() | {kernels.VARIABLE: "nowhere"}) as process:
        out, said = process.communicate()
    assert process.returncode == 3 and out == "" and "nowhere" in said


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has commands be forked, and what forks them be there."""
    monkeypatch.setattr(commands, "allowed", True)
    commands.seen.add("check")
    for _ in range(commands.STARTERS):
        assert is_forked(environment())


def is_forked(environment: dict[str, str]) -> bool:
    """Whether a command with this environment is forked."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Command(command_line("check", "/dev/stdin"), env=environment, **pipes) as process:
        return b"starter" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def starters() -> list[int]:
    """Our children that fork commands."""
    return [pid for pid in children(os.getpid()) if b"starter" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_one_after_another_is_forked_from_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each has sets ordered by another seed."""
    monkeypatch.setattr(commands, "allowed", True)
    commands.seen.add("check")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    origins = []
    for _ in range(commands.STARTERS + 1):
        with Command(command_line("check", "/dev/stdin"), env=environment(), **pipes) as process:
            origins.append(Path(f"/proc/{process.pid}/cmdline").read_bytes())
    assert len(set(origins)) == commands.STARTERS
    assert origins[0] == origins[-1]


@pytest.mark.usefixtures("forking")
def test_with_other_variables_that_count_at_a_start_it_is_a_new_process() -> None:
    assert is_forked(environment())
    assert is_forked(environment() | {kernels.VARIABLE: "another"})
    assert not is_forked(environment() | {"LC_ALL": "C"})
    assert not is_forked(environment() | {"HOME": "/nowhere"})


@pytest.mark.usefixtures("forking")
@pytest.mark.parametrize("way", ["killed", "ended"])
def test_what_forks_starts_again_where_a_test_has_ended_it(way: str) -> None:
    """As the tests of kills end all that is below them."""
    before = starters()
    assert len(before) == commands.STARTERS
    if way == "ended":
        commands.end_starters()
    for pid in before if way == "killed" else []:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert not starters()
    assert is_forked(environment()) and is_forked(environment())
    assert len(starters()) == commands.STARTERS


def test_the_first_command_of_a_verb_is_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "allowed", True)
    monkeypatch.setattr(commands, "seen", set())
    with Command(command_line("--version"), env=environment(), stdout=subprocess.PIPE) as process:
        assert b"starter" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
