"""Random deaths, stops and stalls of what a run over two machines is made of, at any moment of it.

A round starts a run, waits until it has come to a moment, and kills a host agent, the relay of a machine or the hub, stops
one of them, for good or for three seconds, which is shorter than any limit, or disturbs a connection: cuts it, or has
nothing pass, on both ways or on one. The promise: a run that says that it is well has the results of one that nobody
has disturbed; any other says so, with the machine and the virtual instant, and nothing is left of either. The seed says
all but the host's scheduling, and in as many seeds as there are kinds each of them has its turn. `./dev kills --machines` does
a hundred rounds, and `./dev kills --machines 40 60` the last forty of them. With `--ray` first the machines are those of a
cluster of Ray's, of which a worker, a raylet, the head or what speaks with it is disturbed, too. A round that fails says
what the conductor waits for, and where what it leaves is kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGUSR1, SIGUSR2

from dilaton.host import processes
from tests.conftest import ROOT, environment
from tests.functional.cluster.connections import CUT, DISTURBANCES, LATE, STALL_S

LAB = ROOT / "examples/two-sites/lab.yaml"
SMALLER = ("--set", "guests=2")
"""A guest for each machine, so that a round takes less."""

SAME = ("nodes/client/ping.stdout", "nodes/client/bulk.stdout", "captures/server.eth0.pcapng")

AGENT = "dilaton.cluster.host_agent"
PARTS = {"agent": AGENT, "relay": "dilaton-relay machine", "hub": "dilaton-relay hub"}
ACTS = ("killed", "stopped", "stalled")

RAY_PARTS = PARTS | {
    "driver": "engines.ray_driver",
    "worker": "ray::Agent",
    "raylet": "raylet/raylet",
    "head": "gcs_server",
}

CONNECTION = "connection"

ROUNDS = [
    *((part, act) for part in PARTS for act in ACTS),
    *((CONNECTION, what) for what in DISTURBANCES if what != LATE),
]
"""What is disturbed, and how."""

RAY_ROUNDS = [
    *ROUNDS,
    *((part, act) for part in RAY_PARTS if part not in PARTS for act in ("killed", "stalled")),
]
"""As `ROUNDS`, on a cluster of Ray's."""

END_HOST_S_MAX = 120.0
LEFT_HOST_S_MAX = 10.0
TELL_HOST_S = 1.0


@dataclass(frozen=True)
class Disturbance:
    """What happens in a round, and at which part of the time for which there are agents."""

    victim: str
    act: str
    moment: float

    @classmethod
    def of(cls, seed: int, rounds: Sequence[tuple[str, str]] = ROUNDS) -> Disturbance:
        """That of a seed: rounds come in turns, each turn in an order of its own."""
        turn, place = divmod(seed, len(rounds))
        victim, act = random.Random(turn).sample(rounds, len(rounds))[place]
        return cls(victim, act, random.Random(seed).random())

    @property
    def is_short(self) -> bool:
        """Whether it is to change nothing."""
        return self.act.startswith("stall")

    def happen(self, process: subprocess.Popen[bytes], over: Machines) -> None:
        """Disturbs a run; what is over by then is not disturbed."""
        if self.victim == CONNECTION:
            process.send_signal(SIGUSR1)
            return
        # Beside other load an agent is there for a while before what it starts.
        while not (found := over.having(RAY_PARTS[self.victim], process)) and over.having(AGENT, process):
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            for pid in found[:1]:
                os.kill(pid, SIGKILL if self.act == "killed" else SIGSTOP)
                if self.is_short:
                    time.sleep(STALL_S)
                    os.kill(pid, SIGCONT)


class Machines:
    """Two machines made of this one."""

    arguments: tuple[str, ...] = ("--machines", "2")
    rounds = ROUNDS
    reason = r"machine[01]|\bhub\b"
    """What a reason names."""

    def environment(self) -> dict[str, str]:
        """That of who conducts."""
        return environment() | {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}

    def ready(self) -> None:
        """Has them be there for a round."""

    def below(self, process: subprocess.Popen[bytes]) -> list[int]:
        """What belongs to a run, or to who looks after the machines."""
        return processes.below(process.pid)

    def of_run(self, process: subprocess.Popen[bytes]) -> list[int]:
        """What is to be gone with a run."""
        return self.below(process)

    def having(self, words: str, process: subprocess.Popen[bytes]) -> list[int]:
        """Those whose command lines have these words."""
        return [pid for pid in self.below(process) if words in _command(pid)]


class RayMachines(Machines):
    """Two machines of a cluster of Ray's, which is started again where a round has ended it."""

    arguments = ("--engine", "ray", *Machines.arguments)
    rounds = RAY_ROUNDS
    reason = r"\bhub\b|\bRay\b|was lost: |did not join the run: "

    def __init__(self, cache: Path) -> None:
        """It is kept where this says; there is none yet."""
        self._cache = cache

    def environment(self) -> dict[str, str]:
        """See `Machines`."""
        own = super().environment()
        own |= {"PYTHONPATH": f"{own['PYTHONPATH']}:{ROOT / 'target/ray'}", "XDG_CACHE_HOME": str(self._cache)}
        return {name: value for name, value in own.items() if not name.startswith("RAY_")}

    def _cluster(self, *arguments: str) -> int:
        command = [sys.executable, "-m", "dilaton", "cluster", *arguments]
        return subprocess.run(command, env=self.environment(), stdout=subprocess.DEVNULL, check=False).returncode

    def _keeper(self) -> int | None:
        try:
            pid = int((self._cache / "dilaton/cluster/keeper.pid").read_text())
        except OSError:
            return None
        return pid if "dilaton.cluster.keeper" in _command(pid) else None

    def ready(self) -> None:
        """See `Machines`."""
        keeper = self._keeper()
        there = [] if keeper is None else [_command(pid) for pid in processes.below(keeper)]
        if [sum(RAY_PARTS[part] in each.split(" ")[0] for each in there) for part in ("raylet", "head")] != [2, 1]:
            self.stop()
            assert self._cluster("start", *Machines.arguments) == 0

    def stop(self) -> None:
        """Ends what there is of it."""
        assert self._cluster("stop") == 0

    def below(self, process: subprocess.Popen[bytes]) -> list[int]:
        """See `Machines`."""
        keeper = self._keeper()
        return [*super().below(process), *([] if keeper is None else processes.below(keeper))]

    def of_run(self, process: subprocess.Popen[bytes]) -> list[int]:
        """See `Machines`: an actor's process, and what that has started."""
        actors = self.having(RAY_PARTS["worker"], process)
        return [*super().below(process), *actors, *(pid for actor in actors for pid in processes.below(actor))]


MADE = Machines()


@dataclass(frozen=True)
class Became:
    """What became of a run: whether it was well, and for how long something of it was left, seconds of the host."""

    is_well: bool
    left_host_s: float


def undisturbed(directory: Path, over: Machines) -> tuple[dict[str, bytes], float]:
    """What a run on one machine gives, and for how many seconds of the host one over two has agents."""
    with _started(directory / "one", CUT, Machines()) as process:
        assert process.wait(END_HOST_S_MAX) == 0
    over.ready()
    with _started(directory / "two", CUT, over, *over.arguments) as process:
        begin = _wait_for_agent(process, over)
        while over.having(AGENT, process):
            time.sleep(0.01)
        takes_host_s = time.monotonic() - begin
        assert process.wait(END_HOST_S_MAX) == 0
    return _results(directory / "one"), takes_host_s


def do(
    disturbance: Disturbance,
    expected: dict[str, bytes],
    takes_host_s: float,
    out: Path,
    over: Machines = MADE,
    arguments: Sequence[str] = (),
) -> Became:
    """Does a round, of a run with further arguments.

    Raises:
        AssertionError: The run says that it is well and has other results, or fails without a reason, or leaves something.
    """
    way = disturbance.act if disturbance.victim == CONNECTION else CUT
    over.ready()
    with _started(out, way, over, *over.arguments, *arguments) as process, _telling(process):
        begin = _wait_for_agent(process, over)
        time.sleep(max(0.0, begin + disturbance.moment * takes_host_s - time.monotonic()))
        everything = {pid: _command(pid) for pid in over.of_run(process)}
        disturbance.happen(process, over)
        left_host_s = _until_nothing_is_left(process, everything)
        status = process.wait(END_HOST_S_MAX)
    assert not list(out.glob("machine*"))
    if status == 0:
        assert _results(out) == expected, "a run that says that it is well has other results"
        return Became(is_well=True, left_host_s=left_host_s)
    assert not disturbance.is_short, f"a short stall changes nothing: {(out / 'run.json').read_text()[:2000]}"
    record = json.loads((out / "run.json").read_text())
    assert record["state"] == "failed"
    assert re.search(over.reason, record["reason"]), record["reason"]
    return Became(is_well=False, left_host_s=left_host_s)


def _until_nothing_is_left(process: subprocess.Popen[bytes], everything: dict[int, str]) -> float:
    """Waits until a run has ended all that it has started; returns for how many seconds of the host."""
    begin = time.monotonic()
    end = begin + END_HOST_S_MAX
    while left := [command for pid, command in everything.items() if command and _command(pid) == command]:
        if process.poll() is not None:
            end = min(end, time.monotonic() + LEFT_HOST_S_MAX)
        assert time.monotonic() < end, left
        time.sleep(0.02)
    return time.monotonic() - begin


@contextlib.contextmanager
def _started(out: Path, disturbance: str, over: Machines, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    module = "tests.functional.cluster.connections"
    command = [sys.executable, "-m", module, disturbance, "run", LAB, *SMALLER, "--out", out]
    with said_in(out).open("wb") as said:
        process = subprocess.Popen(
            [*map(str, command), *arguments],
            env=over.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _telling(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Has a run that has not come to its end say what it waits for, before it is killed for that."""
    try:
        yield
    except (AssertionError, subprocess.TimeoutExpired):
        if process.poll() is None:
            process.send_signal(SIGUSR2)
            time.sleep(TELL_HOST_S)
        raise


def said_in(out: Path) -> Path:
    """Where a run says what goes wrong."""
    return out.with_name(f"{out.name}.stderr")


def _wait_for_agent(process: subprocess.Popen[bytes], over: Machines) -> float:
    """Waits until there is one; returns when that was, of the host's clock."""
    while not over.having(AGENT, process):
        assert process.poll() is None, "it ended before"
        time.sleep(0.01)
    return time.monotonic()


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in SAME}


def main() -> None:
    """Does rounds, and says what became of them."""
    arguments = sys.argv[1:]
    is_ray = arguments[:1] == ["--ray"]
    numbers = arguments[is_ray:]
    rounds, first = map(int, [*numbers, *("100", "0")[len(numbers) :]])
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text, contextlib.ExitStack() as stack:
        over = MADE
        if is_ray:
            over = ray = RayMachines(Path(text) / "cache")
            stack.callback(ray.stop)
        _series(over, Path(text), range(first, first + rounds))


def _series(over: Machines, directory: Path, seeds: range) -> None:
    became: Counter[tuple[str, str, str]] = Counter()
    slowest_host_s = 0.0
    expected, takes_host_s = undisturbed(directory, over)
    for seed in seeds:
        disturbance, out = Disturbance.of(seed, over.rounds), directory / f"run{seed}"
        try:
            what = do(disturbance, expected, takes_host_s, out, over)
        except (AssertionError, subprocess.TimeoutExpired):
            ray, kept = "--ray " * (over is not MADE), tempfile.mkdtemp(prefix="dilaton-disturbed-", dir="/var/tmp")
            for left in filter(Path.exists, (out, said_in(out))):
                shutil.move(left, kept)
            print(
                f"seed {seed}: {disturbance}; once more: ./dev kills --machines {ray}1 {seed}; see {kept}", flush=True
            )
            raise
        shown = "well" if what.is_well else f"failed, and nothing was left after {what.left_host_s:.1f} s"
        became[disturbance.victim, disturbance.act, "well" if what.is_well else "failed"] += 1
        if not what.is_well:
            slowest_host_s = max(slowest_host_s, what.left_host_s)
        print(
            f"seed {seed}: {disturbance.victim} {disturbance.act} at {disturbance.moment:.2f}: {shown}",
            flush=True,
        )
    for (victim, act, ending), count in sorted(became.items()):
        print(f"{victim} {act}: {count} {ending}")
    print(f"{len(seeds)} rounds; the slowest end took {slowest_host_s:.1f} s")


if __name__ == "__main__":
    main()
