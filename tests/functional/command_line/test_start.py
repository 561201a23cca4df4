"""What commands import. Whoever uses Dilaton waits for it each time, so what a command does not need stays away.

Modules are counted instead of seconds, which other load stretches.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import dilaton, environment, show

LAB = """
name: plain
nodes: {a: {}, b: {}}
links: [a -- b]
run: [{on: a, exec: "true"}]
"""

TABLES = {"numpy", "pandas", "matplotlib", "pyarrow"}
ELSEWHERE = TABLES | {
    "elftools",
    "networkx",
    "prometheus_client",
    "pymetis",
    "dilaton.server",
    "dilaton.lab.topologies",
}
"""What neither a check nor a run of a plain lab has any use for."""

RUNS = {"asyncio", "jinja2", "rich", "dilaton.run.execute", "dilaton.run.record", "dilaton.host.port"}
"""What runs have a use for, checks not."""

LABS = {"pydantic", "ruamel", "dilaton.lab.model", "dilaton.plan"}
"""What neither has a use for who wants no lab."""


def imported(*arguments: str | Path) -> set[str]:
    """The modules that `dilaton` imports for these arguments."""
    command = [sys.executable, "-X", "importtime", "-m", "dilaton", *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    timed, said = [], []
    for line in done.stderr.splitlines():
        (timed if line.startswith("import time:") else said).append(line)
    done.stderr = "\n".join(said)
    show(command, done)
    assert done.returncode == 0
    return {line.rpartition("|")[2].strip() for line in timed}


def within(modules: set[str], places: set[str]) -> set[str]:
    """Those of these places that modules were imported from."""
    return {place for place in places if any(f"{module}.".startswith(f"{place}.") for module in modules)}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yaml"
    path.write_text(LAB)
    return path


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_who_asks_for_help_waits_for_no_lab(option: str) -> None:
    modules = imported(option)
    assert within(modules, ELSEWHERE | RUNS - {"rich"} | LABS) == set()


def test_a_check_waits_for_nothing_that_only_runs_use(lab: Path) -> None:
    modules = imported("check", lab)
    assert within(modules, LABS) == LABS
    assert within(modules, ELSEWHERE | RUNS) == set()


def test_a_run_waits_for_nothing_that_a_plain_lab_does_not_use(lab: Path, tmp_path: Path) -> None:
    modules = imported("run", lab, "--out", tmp_path / "run")
    assert within(modules, LABS | RUNS) == LABS | RUNS
    assert within(modules, ELSEWHERE) == set()


def test_models_are_built_when_they_are_used() -> None:
    # A record has some sixty, each a part of another.
    code = "from dilaton.run.record import model; print(model.Record.__pydantic_complete__, model.Host.__pydantic_complete__)"
    code += "; model.Dilaton(version='', commit=None); print(model.Dilaton.__pydantic_complete__)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]


def test_the_end_of_a_command_looks_for_no_cycles_among_its_modules() -> None:
    code = "import atexit, gc, sys; sys.argv = ['dilaton', '--version']; from dilaton.__main__ import run"
    code += "; atexit.register(lambda: print(len(gc.get_objects()) < gc.get_freeze_count())); run()"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["True"]


def test_a_guest_boots_without_terminals_that_nobody_uses() -> None:
    # Each is announced to a program that is not there: with those of BSD a boot made 500 processes more.
    done = dilaton("exec", "--", "ls", "/sys/class/tty", stdin=subprocess.DEVNULL)
    terminals = done.stdout.split()
    assert "ptmx" in terminals
    assert [name for name in terminals if name.startswith(("pty", "ttyp"))] == []
    assert len(terminals) < 100


COUNTED = """
import gc, runpy, sys
usual = gc.get_threshold()
begun = []
gc.callbacks.append(lambda phase, _: begun.append(phase) if phase == "start" and gc.get_threshold() != usual else None)
try:
    runpy.run_module("dilaton", run_name="__main__", alter_sys=True)
finally:
    print("looked for cycles:", len(begun) if gc.get_threshold() != usual else "as usual", file=sys.stderr)
"""
"""A command that says at its end how often Python has looked for cycles among objects, since it was told how often to."""


def test_a_small_run_does_not_look_for_cycles_among_what_it_imported(lab: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNTED, "run", str(lab), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    show(command, done)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "looked for cycles: 0"
