"""What is said in two places is the same in both."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from typing import Any

import pytest

import dilaton
from tests.style.tree import ROOT

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==[^\s;]+$")


def toml(file: str) -> dict[str, Any]:
    """A TOML file at the top of the tree."""
    return tomllib.loads((ROOT / file).read_text())


def pinned(file: str) -> set[str]:
    """The packages of a requirements file; every line must give a version."""
    lines = [line for line in (ROOT / "requirements" / file).read_text().splitlines() if not line.startswith("#")]
    matches = [PINNED.match(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    return {normal(match[1]) for match in matches if match}


def normal(package: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~ ;\[]", package)[0]).lower()


def test_the_package_and_the_crates_have_one_version() -> None:
    version = toml("pyproject.toml")["project"]["version"]
    assert toml("Cargo.toml")["workspace"]["package"]["version"] == version
    assert dilaton.__version__ == version


def test_every_dependency_is_pinned() -> None:
    project = toml("pyproject.toml")["project"]
    assert {normal(package) for package in project["dependencies"]} <= pinned("run.txt")
    for extra in ("server", "dev"):
        assert {normal(package) for package in project["optional-dependencies"][extra]} <= pinned(f"{extra}.txt")


def test_no_package_is_pinned_twice() -> None:
    lists = [pinned(file) for file in ("run.txt", "server.txt", "dev.txt")]
    assert sum(map(len, lists)) == len(set().union(*lists))


@pytest.mark.parametrize("script", ["dilaton", "dev", ".ci/run"])
def test_the_entry_points_can_be_executed(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_dev_takes_every_verb_that_its_help_names() -> None:
    shown = subprocess.run([ROOT / "dev", "--help"], capture_output=True, text=True, check=True).stdout
    verbs = set(re.findall(r"^  ([a-z-]+)(?: .*)?$", shown, re.MULTILINE))
    assert {"test", "store-kills"} <= verbs
    for verb in verbs:
        assert subprocess.run([ROOT / "dev", verb, "--help"], capture_output=True, check=False).returncode == 0, verb
