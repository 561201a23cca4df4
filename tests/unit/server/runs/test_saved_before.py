"""Saved labs of an older version, which do not say whose they are, count for somebody all the same, or for nobody."""

from __future__ import annotations

from pathlib import Path

from dilaton.server.database.tables import SavedBeforeRow
from dilaton.server.saved.keeping import saved_before, store_of
from dilaton.service.saved.store import ABOUT, About, SavedLabs
from tests.unit.server.serving import served


def keep(directory: Path, folder: str, name: str, person: str = "") -> None:
    """Keeps a saved lab in a folder of a server; each is another one."""
    about = About(lab=name, run="/run", virtual_s=1, settings=[], images=[], person=person)
    labs = SavedLabs(store_of(directory / "saved", folder))
    labs.save(name, lambda tree: (tree / ABOUT).write_text(about.model_dump_json()) and None)


def test_what_the_log_has_forgotten_is_theirs_whose_home_it_is_in_and_elsewhere_nobodys(tmp_path: Path) -> None:
    for folder in ("/home/ann", "/home/ann/later", "/home/annabel", "/courses/x"):
        keep(tmp_path, folder, "old")
        keep(tmp_path, folder, "bens")
    keep(tmp_path, "/home/ann", "new", "cleo")
    with served(tmp_path) as server:
        boss = server.client()
        with server.state.store.writing() as session:
            for folder in ("/home/ann", "/courses/x"):
                session.add(SavedBeforeRow(folder=folder, name="bens", person="ben"))
            session.add(SavedBeforeRow(folder="/courses/x", name="gone", person="ann"))
        with server.state.store.reading() as session:
            theirs = {name: saved_before(session, name, tmp_path / "saved") for name in ("ann", "ben", "cleo")}
        shown = {
            folder: {one["name"]: one["person"] for one in boss.api("GET", f"/saved?folder={folder}")["saved"]}
            for folder in ("/home/ann", "/home/ann/later", "/courses/x")
        }
    # "new" says itself that it is another's, which counts for more.
    own = {"/home/ann": ["new", "old"], "/home/ann/later": ["bens", "old"]}
    assert theirs["ann"] == {"/courses/x": ["gone"]} | own
    assert theirs["ben"] == {"/home/ann": ["bens"], "/courses/x": ["bens"]} and theirs["cleo"] == {}
    assert shown == {
        "/home/ann": {"old": "ann", "bens": "ben", "new": "cleo"},
        "/home/ann/later": {"old": "ann", "bens": "ann"},
        "/courses/x": {"old": "", "bens": "ben"},
    }
