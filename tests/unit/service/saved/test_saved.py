"""Saved labs that are damaged are named, and take nothing else along; one that is read stays until nobody reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.service.saved.store import ABOUT, About, SavedLabs
from tests.conftest import dilaton, environment


@pytest.fixture
def store(tmp_path: Path) -> SavedLabs:
    return SavedLabs(tmp_path / "dilaton/saved")


def saved(store: SavedLabs, name: str, lab: str = "shop") -> Path:
    found = About(lab=lab, run="/run", virtual_s=2.5, settings=[], images=[])
    digest = store.save(name, lambda tree: (tree / ABOUT).write_text(found.model_dump_json()) and None)
    return store.directory / "trees" / digest


def test_one_that_is_damaged_is_named_beside_the_others(store: SavedLabs, tmp_path: Path) -> None:
    saved(store, "good")
    (saved(store, "bad", "other") / ABOUT).write_text("{")
    variables = environment() | {"XDG_DATA_HOME": str(tmp_path)}
    listed = dilaton("saved", "list", env=variables)
    assert listed.returncode == 1 and "bad: damaged: " in listed.stderr and "Traceback" not in listed.stderr
    assert "good" in listed.stdout and "2.5 s" in listed.stdout
    for words in (["run", "bad"], ["saved", "show", "bad"]):
        refused = dilaton(*words, env=variables, cwd=tmp_path)
        assert refused.returncode == 2 and "bad: damaged: " in refused.stderr
    for name in ("bad", "good"):
        assert dilaton("saved", "remove", name, env=variables).returncode == 0
    assert not store.names() and not list(store.directory.glob("trees/*"))


def test_what_is_read_stays_while_its_name_gets_another_or_goes(store: SavedLabs) -> None:
    old = saved(store, "work")
    with store.reading("work") as tree:
        assert tree == old
        saved(store, "work", "other")
        store.remove("work")
        assert (old / ABOUT).exists()
    saved(store, "next", "third")
    assert not old.exists()
