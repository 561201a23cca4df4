"""Saved labs that are damaged are named, and take nothing else along; one that is read stays until nobody reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.service.saved.save import Room
from dilaton.service.saved.store import ABOUT, About, SavedLabs
from dilaton.templates.store import TemplateError
from tests.conftest import dilaton, environment


@pytest.fixture
def store(tmp_path: Path) -> SavedLabs:
    return SavedLabs(tmp_path / "dilaton/saved")


def saved(store: SavedLabs, name: str, lab: str = "shop", person: str = "") -> Path:
    found = About(lab=lab, run="/run", virtual_s=2.5, settings=[], images=[], person=person)
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


def test_what_takes_more_room_than_there_is_ends_as_soon_as_that_is_known(store: SavedLabs) -> None:
    told: list[tuple[str, int]] = []
    room = Room(1000, 400)
    tell = room.told(lambda what, size: told.append((what, size)))
    tell("a", 300)
    tell("b", 100)
    tell("a", 400)
    with pytest.raises(TemplateError, match="may take 1000 bytes, and others take 400"):
        tell("b", 200)
    assert told == [("a", 300), ("b", 100), ("a", 400)]
    with pytest.raises(TemplateError, match="no room"):
        Room(1000, 1000)
    Room(None, 1 << 60).check(1 << 60)


def test_what_two_of_them_have_alike_counts_once_and_what_is_replaced_not_at_all(store: SavedLabs) -> None:
    saved(store, "one")
    once = store.taken_bytes()
    saved(store, "two")
    assert store.taken_bytes() == once > 0
    saved(store, "other", "another lab")
    assert store.taken_bytes() > once
    assert store.taken_bytes(without="other") == once


def test_what_somebody_has_saved_counts_for_them_alone(store: SavedLabs) -> None:
    saved(store, "one", person="ann")
    once = store.taken_bytes("ann")
    saved(store, "two", person="ben")
    saved(store, "three", lab="other", person="ann")
    assert once > 0 and store.taken_bytes("ann") == 2 * once and store.taken_bytes("ben") == once
    assert store.taken_bytes("ann", without="three") == once and store.taken_bytes() == 0
    saved(store, "old", lab="fourth")
    assert store.taken_bytes("ann", before=["old", "two", "gone"]) == 3 * once, "another's stays another's"
    assert store.taken_bytes("ann", without="old", before=["old"]) == 2 * once
    (saved(store, "broken", lab="third", person="ben") / ABOUT).write_text("{")
    assert store.taken_bytes("ben") == once, "whose that is nobody can tell"
