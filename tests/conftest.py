"""What all tests share: running labs as users do, through the command line, and keeping what a failed one left."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dilaton.host.here.jail import orphans
from dilaton.host.here.uml import interface, kernels
from dilaton.service import conduct
from tests.ready import commands
from tests.ready.commands import Command

# Neither other load on the machine nor what is drawn may fail a test: the same examples are tried each time.
settings.register_profile("dilaton", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dilaton")

# Which images somebody has in their store is no matter of the tests.
os.environ["XDG_DATA_HOME"] = "/nonexistent"

# To draw takes longer than most runs of tests. Examples have theirs drawn (`functional/studies/test_examples.py`).
os.environ[conduct.FIGURES] = "later"

# A kernel that all tests are to run is there also for runs with a home of their own.
if kernels.VARIABLE in os.environ:
    os.environ.setdefault("XDG_CACHE_HOME", str(kernels.cache().parents[1]))

# Processes usually start with so few open files, whatever they may have: what needs more has to ask for it.
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

# A shell that starts us in the background has us ignore SIGINT, and those whom we start would ignore it too.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
PYTHON = Path(sys.executable).resolve()
"""For programs in nodes: not the environment's own, which nodes do not see when it is below /tmp."""
PATIENCE_HOST_S = 300.0
"""How long a test waits for what is to come at once, on a machine that does much else."""


ALONE = [
    "fidelity",
    "functional/time/test_clocks_apart.py",
    "host/clock/test_time_sources.py",
    "host/kills/test_guard.py",
]
"""Where the host's own time shows: the wall drive, two runs whose CPUs are to be as fast, readings of two clocks one after the
other, counts of what other work adds interruptions to, a kill that has to meet a kernel at one moment."""
BESIDE = [f"fidelity/test_{name}.py" for name in ("busy_periods", "control", "counter", "faults", "links")]
"""What of these counts only, is at a virtual instant exactly or not at all, or is so at a TDF at which what the host does
otherwise is a small part, whatever else it does."""


def is_below(path: Path, places: Sequence[str]) -> bool:
    """Whether a file is one of these of `tests`, or in one of their folders."""
    return any((ROOT / "tests" / place) in (path, *path.parents) for place in places)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `./dev test` does not run beside other tests."""
    for item in items:
        if is_below(item.path, ALONE) and not is_below(item.path, BESIDE):
            item.add_marker(pytest.mark.alone)


FRESH = ["host", "functional/command_line/test_start.py"]
"""Where, beside these, commands are new processes: what they import, or take of the host, or what is below a test, shows."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Has commands be forked where nothing shows that."""
    # What ends all below itself has nothing that forks there, also in files that have it of another's.
    ends_all = "every_test_begins_alone" in getattr(item, "fixturenames", ())
    commands.allowed = not (item.get_closest_marker("alone") or is_below(item.path, FRESH) or ends_all)
    if not commands.allowed:
        commands.end_starters()


@pytest.fixture(autouse=True, scope="module")
def orphans_go_to_init() -> Iterator[None]:
    """Has init bury again what loses its parent: a test that starts a guest in this process adopts that from then on, and
    tests of later files would find among the host's processes those of others that are dead."""
    yield
    ctypes.CDLL(None).prctl(orphans.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@dataclass
class Outcome:
    """What a command line left: exit status, terminal text, run directory and its record."""

    status: int
    terminal: str
    path: Path

    @property
    def record(self) -> dict[str, Any]:
        """The contents of run.json."""
        data: dict[str, Any] = json.loads((self.path / "run.json").read_text())
        return data

    @property
    def events(self) -> list[dict[str, Any]]:
        """The contents of events.jsonl."""
        return [json.loads(line) for line in (self.path / "events.jsonl").read_text().splitlines()]

    def process(self, name: str) -> dict[str, Any]:
        """The record of one process."""
        found: dict[str, Any] = next(process for process in self.record["processes"] if process["name"] == name)
        return found

    def instant_s(self, kind: str, process: str) -> float:
        """When something happened to a process, in virtual seconds."""
        instants_ns: list[int] = [
            event["t_ns"] for event in self.events if (event["kind"], event.get("process")) == (kind, process)
        ]
        return instants_ns[0] / 1e9

    def stdout(self, node: str, process: str) -> str:
        """The standard output of a process."""
        return (self.path / "nodes" / node / f"{process}.stdout").read_text()


def environment() -> dict[str, str]:
    """The environment in which the command line runs."""
    return os.environ | {"PYTHONPATH": str(ROOT / "python")}


def command_line(*arguments: str | Path) -> list[str]:
    """`dilaton` with these arguments."""
    return [sys.executable, "-m", "dilaton", *map(str, arguments)]


def dilaton(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `dilaton` to its end; options are those of `subprocess.run`."""
    command = command_line(*arguments)
    return finished(command, **({"env": environment()} | options))


def finished(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command of ours to its end; options are those of `subprocess.run`."""
    typed, patience_s = options.pop("input", None), options.pop("timeout", None)
    pipes = dict.fromkeys(("stdout", "stderr") if typed is None else ("stdin", "stdout", "stderr"), subprocess.PIPE)
    with Command(command, text=True, **pipes, **options) as process:
        try:
            printed, said = process.communicate(typed, patience_s)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, printed, said)
    show(command, done)
    return done


def show(command: list[str], done: subprocess.CompletedProcess[str]) -> None:
    """Prints what was done, with the command that repeats it; pytest shows it when the test fails."""
    print("$", f"PYTHONPATH={ROOT / 'python'}", shlex.join(command))
    print(done.stdout, done.stderr, sep="\n")


def run_in(directory: Path, lab: str | Path, *arguments: str | Path, wrapper: Sequence[str | Path] = ()) -> Outcome:
    """Runs a lab, given as text or as a path, with its run directory in `directory`.

    Args:
        directory: Where the lab, if it is a text, and the run directory are made.
        lab: What to run.
        arguments: Further ones of `dilaton run`; a later `--out` counts.
        wrapper: A command that runs the command line as its argument.
    """
    number = len(list(directory.iterdir()))
    if isinstance(lab, str):
        path = directory / f"{number}.yaml"
        path.write_text(lab)
    else:
        path = lab
    out = directory / f"{number}-run"
    command = command_line("run", path, "--out", out, *arguments)
    if wrapper:
        command = [*map(str, wrapper), *command]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        show(command, done)
    else:
        done = finished(command, env=environment())
    return Outcome(done.returncode, done.stdout + done.stderr, out)


@contextlib.contextmanager
def started(*arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """`dilaton` beside the test; where it goes on when the context ends, it is ended, and has to heed that.

    Options are those of `Popen`.
    """
    with Command(command_line(*arguments), **({"env": environment()} | options)) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE_HOST_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise


@contextlib.contextmanager
def held_run(directory: Path, lab: str, at: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run of a lab that holds its clock at `at`, once it does, and its directory; it ends with the context.

    Arguments are further ones of `dilaton run`.
    """
    path, out = directory / "lab.yaml", directory / "run"
    path.write_text(lab)
    with started("run", path, "--out", out, "--hold-at", at, *arguments, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            if "clock held" in line:
                break
        yield process, out


def outcome_of(process: subprocess.Popen[str], out: Path) -> Outcome:
    """What a run that was started with a pipe for its standard error has left, once it has ended."""
    assert process.stderr
    terminal = process.stderr.read()
    return Outcome(process.wait(), terminal, out)


RunLab = Callable[..., Outcome]


@pytest.fixture
def run_lab(tmp_path: Path) -> RunLab:
    """Runs a lab in the test's own directory; see `run_in`."""
    return functools.partial(run_in, tmp_path)


@pytest.fixture(scope="session")
def built_examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store with the images that examples have recipes for."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("store")))
        assert dilaton("image", "build", ROOT / "examples/images").returncode == 0
        yield


@pytest.fixture(scope="session")
def run_example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Outcome]:
    """Runs the lab of an example, once for all tests that look at its run, wherever they are run."""
    # What runs tests side by side has a place for all, with one for each of its processes in it.
    place = tmp_path_factory.getbasetemp()
    place = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "examples"

    def run_once(lab: Path) -> Outcome:
        directory = place / lab.parent.name
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (told := directory / "outcome.json").exists():
                outcome = run_in(directory, lab)
                told.write_text(json.dumps([outcome.status, outcome.terminal, str(outcome.path)]))
            status, terminal, path = json.loads(told.read_text())
            return Outcome(status, terminal, Path(path))

    return functools.cache(run_once)


@pytest.fixture(scope="module")
def run_lab_once(tmp_path_factory: pytest.TempPathFactory) -> RunLab:
    """As `run_lab`, for fixtures whose run all tests of a module look at."""
    return functools.partial(run_in, tmp_path_factory.mktemp("module"))


@pytest.fixture
def unjailed() -> None:
    """Guests run a kernel that starts without a jail: those of other suites find their libc only in one."""
    if kernels.chosen().libraries:
        pytest.skip("this kernel starts in a jail only")


@pytest.fixture
def traced() -> None:
    """Guests run a kernel that traces its programs, of which alone such counts are."""
    if kernels.chosen_name().endswith(kernels.SECCOMP):
        pytest.skip("this kernel does not trace its programs")


@pytest.fixture
def untraced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests run a kernel that does not trace its programs."""
    found = [kernel.name for kernel in kernels.there() if kernel.has_seccomp]
    if not found:
        pytest.skip("there is no kernel here that can do without tracing: ./dev kernels sid")
    if why := interface.why_not_understood(kernels.named(found[-1]).program):
        pytest.skip(f"that kernel is refused: {why}")
    monkeypatch.setenv(kernels.VARIABLE, found[-1])
