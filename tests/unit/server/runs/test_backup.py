"""A backup, made while the server goes on, and put back into a new one: all of it, or nothing."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from dilaton.server.__main__ import main
from dilaton.server.backup.copying import LOST
from tests.postgresql import cluster
from tests.unit.server.serving import ENDLESS, Client, Served, served, use_stub

pytestmark = pytest.mark.usefixtures("own_home")


def copied(directory: Path, **asked: str) -> int:
    """Does what `dilaton serve` is asked for with these options; returns the exit status."""
    return main(json.dumps({"directory": str(directory), **asked}))


def filled(server: Served) -> tuple[str, str, Client]:
    """A server with a run that is over and one that goes on: those, and who has a token."""
    me = server.client()
    token = me.api("POST", "/tokens", {"label": "kept", "scopes": ["*"], "days": 1})["secret"]
    over, going = me.launch(me.keep()), me.launch(me.keep(ENDLESS), stays=True)
    assert me.wait(over, "finished", "failed", "refused")["state"] == "finished"
    me.wait(going, "running")
    # What a guest has made is copied as what it is, or not at all.
    os.symlink("/etc/passwd", server.state.keeper.run_dir(over) / "link")
    os.mkfifo(server.state.keeper.run_dir(over) / "pipe")
    return over, going, Client(server.settings, {"Authorization": f"Bearer {token}"})


def is_as_before(directory: Path, before: Path, over: str, going: str, headers: dict[str, str], **others: str) -> None:
    """A server that was restored knows what it knew, and goes on."""
    with served(directory, **others) as server:
        me = Client(server.settings, headers)
        assert me.api("GET", f"/runs/{over}")["state"] == "finished"
        lost = me.api("GET", f"/runs/{going}")
        assert (lost["state"], lost["reason"]) == ("failed", LOST)
        for name in ("run.json", "plan.json"):
            fetched = me.ask("GET", f"/api/v1/runs/{over}/files/{name}").body
            assert fetched == (before / "runs" / over / "run" / name).read_bytes()
        assert {one["path"] for one in me.api("GET", f"/runs/{over}/files")}.isdisjoint({"link", "pipe"})
        assert len(me.api("GET", "/audit?action=run.launch")) == 2
        again = me.launch(me.keep())
        assert me.wait(again, "finished", "failed", "refused")["state"] == "finished"
        assert me.api("GET", f"/runs/{again}")["number"] == 3, "numbers go on behind those that were there"


def test_a_server_is_put_back_as_it_was_into_either_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_stub(monkeypatch)
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "backup.tar"
    with served(old) as server:
        over, going, me = filled(server)
        assert copied(old, backup=str(file)) == 0
        me.api("POST", f"/runs/{going}/stop")
        me.wait(going, "aborted", "finished")
    assert file.stat().st_mode & 0o077 == 0, "digests of secrets and people's labs are in it"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert copied(old, backup=str(file)) == 2 and "is there already" in capsys.readouterr().err
    assert copied(old, restore=str(file)) == 2, "what is there is not written over"
    assert copied(new, restore=str(file)) == 0
    is_as_before(new, old, over, going, me.headers)
    with cluster() as postgresql:
        config = tmp_path / "server.yaml"
        config.write_text(f"database: {postgresql.url}\n")
        other, third = tmp_path / "other", tmp_path / "third"
        assert copied(other, restore=str(file), config=str(config)) == 0, capsys.readouterr().err
        assert copied(third, restore=str(file), config=str(config)) == 2 and "already" in capsys.readouterr().err
        is_as_before(other, old, over, going, me.headers, postgresql=postgresql.url)
        assert copied(other, backup=str(tmp_path / "second.tar"), config=str(config)) == 0
    whole = file.read_bytes()
    with tarfile.open(file) as archive:
        second = archive.getmembers()[1].offset
    for number, damaged in enumerate((whole[:second], whole[:second] + b"\1" * 512 + whole[second + 512 :])):
        (tmp_path / f"damaged{number}.tar").write_bytes(damaged)
        assert copied(tmp_path / f"after{number}", restore=str(tmp_path / f"damaged{number}.tar")) == 2
        assert "damaged" in capsys.readouterr().err


def test_what_a_restore_that_was_killed_has_left_is_in_no_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(tmp_path / "old"):
        pass
    assert copied(tmp_path / "old", backup=str(tmp_path / "good.tar")) == 0
    for name in (".restoring/layouts", "runs/half"):
        (tmp_path / "new" / name).mkdir(parents=True)
    assert copied(tmp_path / "new", restore=str(tmp_path / "good.tar")) == 0, capsys.readouterr().err
    assert not (tmp_path / "new/.restoring").exists() and not (tmp_path / "new/runs").exists()
    for name in (".restoring", "runs/whole"):
        (tmp_path / "new" / name).mkdir(parents=True)
    assert copied(tmp_path / "new", restore=str(tmp_path / "good.tar")) == 2, "it has tables"
    assert (tmp_path / "new/runs/whole").is_dir()


def test_two_backups_at_once_are_two_or_one_and_never_half_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path / "old"):
        pass
    file, linked = tmp_path / "backup.tar", os.link

    def meanwhile(part: str, name: Path, **how: int) -> None:
        monkeypatch.setattr(os, "link", linked)
        assert copied(tmp_path / "old", backup=str(file)) == 0, "another one, that was faster"
        linked(part, name, **how)

    monkeypatch.setattr(os, "link", meanwhile)
    assert copied(tmp_path / "old", backup=str(file)) == 2
    assert copied(tmp_path / "new", restore=str(file)) == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_is_no_backup_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(tmp_path / "old"):
        pass
    assert copied(tmp_path / "old", backup=str(tmp_path / "good.tar")) == 0
    with tarfile.open(tmp_path / "good.tar") as archive:
        tables = archive.extractfile("tables.jsonl")
        assert tables is not None
        good = tables.read()
    link = tarfile.TarInfo("runs/x")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    bad: list[tuple[bytes, tarfile.TarInfo | None]] = [
        (b"not JSON\n", None),
        (b'{"revision": "other"}\n', None),
        (good + b'["no table", {}]\n', None),
        (good + b'["people", {"name": 1}]\n', None),
        *((good, tarfile.TarInfo(name)) for name in ("../out", "runs/../../out", "/out", "elsewhere/x", "runs")),
        (good, link),
    ]
    for number, (said, entry) in enumerate(bad):
        file, data = tmp_path / f"{number}.tar", tmp_path / f"data{number}"
        with tarfile.open(file, "w") as archive:
            first = tarfile.TarInfo("tables.jsonl")
            first.size = len(said)
            archive.addfile(first, io.BytesIO(said))
            if entry is not None:
                archive.addfile(entry)
        assert copied(data, restore=str(file)) == 2, number
        assert "restore" in (told := capsys.readouterr().err) or "database" in told, told
        assert {path.name for path in data.iterdir()} <= {"server.sqlite", "server.lock"}
        assert copied(data, restore=str(tmp_path / "good.tar")) == 0, "nothing of it is in the way"
    (tmp_path / "text.tar").write_text("no archive")
    assert copied(tmp_path / "data", restore=str(tmp_path / "text.tar")) == 2
    assert copied(tmp_path / "none", backup=str(tmp_path / "x.tar")) == 2 and not (tmp_path / "none").exists()
    assert not (tmp_path / "out").exists()
