"""User ids for runs: who gets which, what is refused, and what of the server's others may then read."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.images.store import Store as Images
from dilaton.run.control import sockets
from dilaton.run.control.errors import ControlError
from dilaton.run.record.record import RecordError, load
from dilaton.server.access.callers import make_person
from dilaton.server.database.store import Store
from dilaton.server.runs.user_ids import UserIds, show_images, show_saved, uid_of
from dilaton.server.settings import Settings, SettingsError
from dilaton.service.saved.store import SavedLabs
from dilaton.templates.store import TemplateError

IDS = UserIds(2_000_000_000, 2)


@pytest.fixture(autouse=True)
def as_a_server() -> Iterator[None]:
    """What is made is for nobody else."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_everybody_gets_one_and_keeps_it_and_nobody_gets_anothers(tmp_path: Path) -> None:
    store = Store(tmp_path / "server.sqlite")
    with store.writing() as session:
        for name in ("ann", "ben", "cora"):
            make_person(session, name)
    given = []
    for name in ("ben", "ann", "ben"):
        with store.writing() as session:
            given.append(uid_of(session, name, IDS))
    assert given == [IDS.first, IDS.first + 1, IDS.first]
    with store.writing() as session, pytest.raises(ControlError, match="all 2 user ids are given to people"):
        uid_of(session, "cora", IDS)
    with store.writing() as session:
        more = UserIds(IDS.first + 1, 2)
        assert uid_of(session, "ben", more) == IDS.first + 2, "what was ben's is none of these any more"
        assert uid_of(session, "ann", more) == IDS.first + 1
    store.close()


def test_ids_that_are_somebodys_are_refused_and_a_server_that_is_not_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = max(pwd.getpwall(), key=lambda user: user.pw_uid)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    Settings(tmp_path, run_as=IDS).check()
    with pytest.raises(SettingsError, match=f"^run_as: {known.pw_uid} is the (user|group) "):
        Settings(tmp_path, run_as=UserIds(known.pw_uid, 1)).check()
    with pytest.raises(SettingsError, match=r"^run_as: .* leave machines out"):
        Settings(tmp_path, run_as=IDS, machines=("a",)).check()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SettingsError, match=r"^run_as: takes a server that runs as root"):
        Settings(tmp_path, run_as=IDS).check()


def test_a_saved_lab_is_read_by_who_knows_its_digest_and_found_by_nobody(tmp_path: Path) -> None:
    labs = SavedLabs(tmp_path / "saved" / "home+ann")
    (tmp_path / "saved").mkdir()

    def fill(tree: Path) -> None:
        (tree / "inner").mkdir()
        (tree / "inner" / "file").write_text("it")
        (tree / "link").symlink_to(tmp_path)

    digest = labs.save("monday", fill)
    before = mode(tmp_path)
    show_saved(labs.directory, digest)
    tree = labs.directory / "trees" / digest
    assert [mode(path) & 0o007 for path in (tree, tree / "inner", tree / "inner" / "file")] == [0o005, 0o005, 0o004]
    above = (tmp_path / "saved", labs.directory, labs.directory / "trees", labs.directory / "names")
    assert [mode(path) & 0o007 for path in above] == [0o001, 0o001, 0o001, 0]
    assert mode(tmp_path) == before, "what a link leads to is as it was"
    (labs.directory / "names").chmod(0)
    with labs.reading(digest) as found:
        assert found == tree
    with labs.reading("0" * 64) as found:
        assert found is None
    (tree / "inner" / "file").write_text("another")
    with pytest.raises(TemplateError, match="damaged"), labs.reading(digest):
        pass


def test_images_that_are_there_may_be_read_and_those_that_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    show_images()
    with Images().adding() as adding:
        Images().keep_document(adding.staging, {"a": 1})
    Images()._replace("index.json", {"manifests": []})
    show_images()
    Images()._replace("index.json", {"manifests": [1]})
    top = Images().directory
    (blob,) = top.glob("blobs/sha256/*")
    assert [mode(path) & 0o007 for path in (top, blob.parent, blob, top / "index.json")] == [0o005, 0o005, 0o004, 0o004]
    assert mode(top / "staging") & 0o007 == 0


def test_a_run_is_heard_of_whoever_its_directory_was_given_to_by_us_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives directories to others")
    given, foreign, theirs = (tmp_path / name for name in ("given", "foreign", "theirs"))
    for path in (given, foreign, theirs / "run"):
        path.mkdir(parents=True)
    os.chown(given, IDS.first, os.getegid())
    os.chown(foreign, IDS.first, IDS.first)
    os.chown(theirs / "run", IDS.first, os.getegid())
    theirs.chmod(0o777)
    assert [sockets._owner(path) for path in (given, foreign, theirs / "run")] == [IDS.first, 0, 0]


def test_a_record_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("{}")
    (tmp_path / "run.json").symlink_to(tmp_path / "other")
    with pytest.raises(RecordError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "run.json").unlink()
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(RecordError, match="not JSON"):
        load(tmp_path)
