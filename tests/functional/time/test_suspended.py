"""A run is put away: its memory is on disk and its cores are free, and virtual time does not notice."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.run.control.answers import SHOW
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, PYTHON, command_line, dilaton, environment, held_run, outcome_of, run_in
from tests.host.processes import descendants, kernels, name_of

LAB = f"""
name: away
time: {{drive: DRIVE}}
guests: per-node
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], delay: 5ms, rate: 10Mbit}}]
run:
  - {{on: b, name: server, background: true, exec: iperf3 -s -1}}
  - {{on: a, name: memory, background: true, exec: [{PYTHON}, -c, "HOLD"]}}
  - {{on: a, name: client, start: 1s, exec: iperf3 -c b -t 4 --json}}
"""
HOLD = """
import os, time
kept = os.urandom(64 << 20)
at_first = hash(kept)
while True:
    assert hash(bytes(kept)) == at_first, 'memory is another'
    print(time.monotonic_ns(), flush=True)
    time.sleep(0.5)
"""


def lab(drive: str) -> str:
    text = HOLD.strip().replace("\n", "\\n")
    return LAB.replace("DRIVE", drive).replace("HOLD", text)


def shared_bytes(process: int) -> int:
    """The memory of guests that processes below this one have, each counted once."""
    total = 0
    for kernel in kernels(process):
        status = Path(f"/proc/{kernel}/status").read_text()
        total += int(status.split("RssShmem:")[1].split()[0]) * 1024
    return total


def cpu_s(process: int) -> float:
    """CPU time of all guests below a process."""
    total = 0
    for pid in descendants(process):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def held_cores(process: int) -> set[str]:
    """The host's cores that a run holds."""
    listening = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    names = {f"socket:[{words[6]}]": words[7] for words in listening if len(words) > 7}
    files = [os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir() if file.is_symlink()]
    return {names[file] for file in files if names.get(file, "").startswith("@dilaton-core-")}


def results(path: Path) -> dict[str, bytes]:
    """All that must not depend on whether the run was put away."""
    found = {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.glob("nodes/*/*"))}
    return found | {"events": (path / "events.jsonl").read_bytes()}


def test_a_run_that_was_put_away_has_the_same_results_to_the_byte(tmp_path: Path) -> None:
    never = run_in(tmp_path, lab("event"))
    assert never.status == 0, never.terminal
    directory = tmp_path / "held"
    directory.mkdir()
    with held_run(directory, lab("event"), "3s") as (process, out):
        before = shared_bytes(process.pid)
        assert before > 64 << 20 and len(held_cores(process.pid)) <= 2
        said = dilaton("suspend", out)
        assert said.returncode == 0 and "suspended at 3 s" in said.stdout, said.stderr
        assert shared_bytes(process.pid) < before / 20
        assert "suspended" in dilaton("ps").stdout
        spent = cpu_s(process.pid)
        assert not held_cores(process.pid)
        for words, why in {
            ("suspend", out): "suspended already",
            ("clock", out, "release"): "dilaton resume",
            ("shell", out, "a", "true"): "dilaton resume",
        }.items():
            refused = dilaton(*words)
            assert refused.returncode == 2 and why in refused.stderr, refused.stderr
        assert "held" in dilaton("clock", out).stdout
        assert cpu_s(process.pid) == spent
        assert "held" in dilaton("resume", out).stdout
        assert dilaton("resume", out).returncode == 2
        assert dilaton("clock", out, "release").returncode == 0
        outcome = outcome_of(process, out)
    assert outcome.status == 0, outcome.terminal
    assert results(outcome.path) == results(never.path)


@pytest.mark.parametrize("drive", ["work", "wall"])
def test_a_program_that_computes_is_stopped_and_goes_on(drive: str, tmp_path: Path) -> None:
    text = f"""
name: computes
time: {{drive: {drive}, tdf: 2}}
nodes: {{a: {{}}}}
run: [{{on: a, name: count, exec: [{PYTHON}, -c, "{COUNT}"]}}]
"""
    with held_run(tmp_path, text, "300ms") as (process, out):
        assert dilaton("suspend", out).returncode == 0
        spent = cpu_s(process.pid)
        assert shared_bytes(process.pid) < 4 << 20
        assert cpu_s(process.pid) == spent
        assert dilaton("resume", out).returncode == 0
        assert dilaton("clock", out, "release").returncode == 0
        outcome = outcome_of(process, out)
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("a", "count") == "right\n"


COUNT = """
import time
end = time.monotonic() + 1
while time.monotonic() < end:
    assert sum(range(1000000)) == 499999500000
print('right')
""".strip().replace("\n", "\\n")


@contextlib.contextmanager
def in_a_terminal(*words: str | Path, directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`dilaton` at a terminal of its own, and the other end of that."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command_line(*words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=directory,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(theirs), os.O_RDWR)),
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        os.close(ours)


def read_until(ours: int, wanted: bytes) -> None:
    """Reads what comes to a terminal until it says that."""
    said, deadline = b"", time.monotonic() + PATIENCE_HOST_S
    while wanted not in said:
        assert time.monotonic() < deadline, said
        said += os.read(ours, 4096)


@pytest.mark.parametrize("verb", ["up", "run"])
def test_a_run_that_was_put_away_outlives_its_terminal(verb: str, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("name: stays\nnodes: {a: {}}\nrun: [{on: a, exec: sleep 100}]\n")
    with in_a_terminal(verb, "lab.yaml", "--max-speed", "1", "--out", "r", directory=tmp_path) as (process, ours):
        if verb == "up":
            read_until(ours, b"lab>")
            os.write(ours, b"suspend\n")
            process.wait(PATIENCE_HOST_S)
        else:
            read_until(ours, b"started")
            assert dilaton("suspend", tmp_path / "r").returncode == 0
    try:
        with Client(tmp_path / "r") as client:
            shown = client.request(SHOW)
        assert shown["suspended"]
        assert dilaton("resume", tmp_path / "r").returncode == 0
        assert dilaton("shell", tmp_path / "r", "a", "true").returncode == 0
    finally:
        dilaton("stop", tmp_path / "r")
        process.kill()
        process.wait()


@pytest.mark.parametrize("jail", [[], ["--no-jail"]])
def test_nothing_is_left_of_a_run_that_is_killed_while_it_is_put_away(
    jail: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if jail:
        request.getfixturevalue("unjailed")
    with held_run(tmp_path, "name: a\nnodes: {a: {}}\nrun: [{on: a, exec: sleep 9}]\n", "1s", *jail) as (process, out):
        assert dilaton("suspend", out).returncode == 0
        below = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + PATIENCE_HOST_S
        # Those that are dead may be children of this process by now, which buries none.
        while any(map(name_of, below)):
            assert time.monotonic() < deadline, below
            time.sleep(0.05)
    assert {file.name for file in out.iterdir()} <= {
        "clock.csv",
        "events.jsonl",
        "verdicts.jsonl",
        "guest",
        "lab.yaml",
        "nodes",
        "plan.json",
        "run.json",
        "reserve",
        "measure",
    }
