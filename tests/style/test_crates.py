"""The modules of each crate use each other one way, so that each can be understood with those that it stands on alone.

A child that carries on its parent says `super`, and counts as a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.style.tree import ROOT, files_in

CRATES = sorted(path.parent for path in files_in("crates") if path.name == "Cargo.toml")

USE = re.compile(r"\buse (crate::[^;]+);")
MENTION = re.compile(r"\bcrate(?:::\w+)+")


def paths_of(tree: str) -> Iterator[list[str]]:
    """The paths in a tree of imports, as `crate::host::{page::{self, count}, sys}`."""
    head, brace, inner = tree.partition("{")
    names = [name for name in head.split("::") if name.strip()]
    if not brace:
        yield [name.split()[0] for name in names]
        return
    depth, begin = 0, 0
    inner = inner.rstrip().removesuffix("}") + ","
    for place, character in enumerate(inner):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part := inner[begin:place].strip():
                yield from ([*names, *path] for path in paths_of(part))
            begin = place + 1


def used_in(source: str) -> Iterator[list[str]]:
    """The paths from the root of the crate that a file uses, but for its tests."""
    code = re.sub(r"//.*", "", source.partition("#[cfg(test)]")[0])
    for found in USE.finditer(code):
        yield from paths_of(found[1])
    for found in MENTION.finditer(USE.sub("", code)):
        yield found[0].split("::")


def uses(crate: Path) -> dict[str, set[str]]:
    """Which modules of a crate use which."""
    sources = {path for path in files_in(f"{crate.relative_to(ROOT)}/src") if not path.stem.endswith("tests")}
    modules = {"::".join(["crate", *path.relative_to(crate / "src").with_suffix("").parts]): path for path in sources}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        known = [["::".join(names[:end]) for end in range(len(names), 0, -1)] for names in used_in(path.read_text())]
        found = {next((name for name in names if name in modules), module) for names in known}
        graph[module] = found - {module}
    return graph


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_modules_of_a_crate_use_each_other_one_way(crate: Path) -> None:
    try:
        TopologicalSorter(uses(crate)).prepare()
    except CycleError as circle:
        pytest.fail(f"these use each other in a circle: {' → '.join(circle.args[1])}")


def test_the_clock_has_modules_that_use_others() -> None:
    assert "crate::time::present" in uses(ROOT / "crates/clock")["crate::occasions::reading"]


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("use crate::host::sys;", ["crate::host::sys"]),
        (
            "use crate::host::{page::{self, count}, sys as host};",
            ["crate::host::page::self", "crate::host::page::count", "crate::host::sys"],
        ),
        ("pub fn f() -> crate::host::Page { crate::die() }", ["crate::host::Page", "crate::die"]),
        ("// crate::host\n#[cfg(test)]\nuse crate::host::sys;", []),
        ("use core::fmt;", []),
    ],
)
def test_the_reader_of_imports_knows_them(source: str, paths: list[str]) -> None:
    assert ["::".join(names) for names in used_in(source)] == paths
