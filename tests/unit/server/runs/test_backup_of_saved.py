"""Saved labs and images in a backup: holes, links and programs as they were, and nothing half-written, whoever is killed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dilaton.host.sparse import taken_bytes
from dilaton.images.reference import parse
from dilaton.images.store import Store, publish
from dilaton.server.__main__ import main
from dilaton.server.saved.keeping import store_of
from dilaton.service.saved.store import ABOUT, DISKS, LAB, RESULTS, About, SavedLabs
from tests.conftest import ROOT
from tests.unit.server.serving import served

pytestmark = pytest.mark.usefixtures("own_home")

DISK_BYTES = 256 << 20

WRITTEN = ((0, b"first"), (100 << 20, b"x" * (16 << 20)), (DISK_BYTES - 4, b"last"))
"""What was written to the disk of a saved lab, and where."""

KILLS = 3

LASTS_HOST_S = 0.1
"""How long after its first file a kill may come; all of it takes about as long."""


def copied(directory: Path, **asked: Path) -> int:
    """Does what `dilaton serve` is asked for; returns the exit status."""
    return main(options(directory, **asked))


def options(directory: Path, **asked: Path) -> str:
    return json.dumps({"directory": str(directory)} | {name: str(path) for name, path in asked.items()})


def image(name: str, text: str = "layer") -> str:
    """Puts an image into the store of the account: its digest. What a node would be given is not read here."""
    store = Store()
    with store.adding() as adding:
        layer, size = store.keep_document(adding.staging, {"stands for": text})
        config, _ = store.keep_document(adding.staging, {"config": {}, "rootfs": {"diff_ids": [layer]}})
        manifest = {"config": {"digest": config}, "layers": [{"digest": layer, "size": size}]}
        digest, _ = store.keep_document(adding.staging, manifest)
        root = adding.staging / "root"
        root.write_bytes(text.encode())
        publish(root, store.root(digest))
        store.name(parse(name), digest)
    return digest


def saved(directory: Path, name: str, *images: str, mark: str = "") -> SavedLabs:
    """Saves a lab at a server, as if it had been one that went on: the store of its folder."""

    def fill(tree: Path) -> None:
        (tree / ABOUT).write_text(
            About(lab="shop", run="/run", virtual_s=2.5, settings=[], images=list(images)).model_dump_json()
        )
        for folder in (LAB, DISKS, RESULTS, "written"):
            (tree / folder).mkdir()
        (tree / LAB / "lab.yaml").write_text(f"name: shop{mark}\nnodes: {{db: {{}}}}\n")
        (tree / LAB / "start").write_text("#!/bin/sh\n")
        (tree / LAB / "start").chmod(0o755)
        (tree / LAB / "again").symlink_to("start")
        (tree / RESULTS / "passwd").symlink_to("/etc/passwd")
        (tree / RESULTS / "etc").symlink_to("/etc")
        (tree / RESULTS / os.fsdecode(b"not text \xff")).write_bytes(b"x")
        with (tree / DISKS / "db").open("wb") as disk:
            disk.truncate(DISK_BYTES)
            for at, data in WRITTEN:
                os.pwrite(disk.fileno(), data, at)

    labs = SavedLabs(store_of(directory / "saved", "/home/owner"))
    labs.save(name, fill)
    for digest in images:
        Store().name(parse(labs.image_name(digest)), digest)
    return labs


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The data of a server with a saved lab that has two names, and needs an image."""
    with served(tmp_path / "old"):
        pass
    digest = image("db:full")
    labs = saved(tmp_path / "old", "monday", digest)
    saved(tmp_path / "old", "tuesday", digest)
    assert len(list(labs.directory.glob("trees/*"))) == 1
    return tmp_path / "old"


def is_whole(directory: Path, names: set[str]) -> SavedLabs:
    """The saved labs that were put back, each looked at whole."""
    labs = SavedLabs(store_of(directory / "saved", "/home/owner"))
    assert set(labs.names()) == names
    for name in names:
        with labs.reading(name) as tree:
            assert tree is not None
            with (tree / DISKS / "db").open("rb") as disk:
                assert all(os.pread(disk.fileno(), len(data), at) == data for at, data in WRITTEN)
            assert taken_bytes(tree / DISKS / "db") < 20 << 20, "holes are holes"
            assert os.readlink(tree / RESULTS / "etc") == "/etc"
    return labs


def test_saved_labs_come_back_as_they_were_with_the_images_that_they_need(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new, digest = tmp_path / "backup.tar", tmp_path / "new", Store().names()["docker.io/library/db:full"]
    assert copied(old, backup=file) == 0
    assert "0 runs, 2 saved labs and 1 image" in capsys.readouterr().out
    assert file.stat().st_size < 20 << 20, "of a disk what was written to it"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    other = image("db:full", "another")
    image("own:1", "mine")
    assert copied(new, restore=file) == 0, capsys.readouterr().err
    labs = is_whole(new, {"monday", "tuesday"})
    found = Store().names()
    assert found["docker.io/library/db:full"] == other, "who has another image of that name keeps it"
    assert found[labs.image_name(digest)] == digest and Store().find(digest).size_bytes == len("layer")
    labs.remove("monday")
    assert labs.image_name(digest) in Store().names()
    labs.remove("tuesday")
    assert set(Store().names()) == {"docker.io/library/db:full", "docker.io/library/own:1"}


def test_tar_reads_it_too_with_its_holes(old: Path, tmp_path: Path) -> None:
    assert copied(old, backup=tmp_path / "backup.tar") == 0
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "backup.tar", "-C", tmp_path / "out"], check=True)
    is_whole(tmp_path / "out", {"monday", "tuesday"})


def test_what_is_damaged_is_named_and_keeps_nothing_else_out(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labs = saved(old, "wednesday", mark="2")
    (labs.directory / "trees" / labs.names()["wednesday"] / LAB / "start").write_text("other")
    Store().root(image("gone:1", "gone")).unlink()
    assert copied(old, backup=tmp_path / "backup.tar") == 0
    said = capsys.readouterr().err
    assert "wednesday: damaged" in said and "squashfs is not there any more" in said
    assert copied(tmp_path / "new", restore=tmp_path / "backup.tar") == 0
    is_whole(tmp_path / "new", {"monday", "tuesday"})


def changed(file: Path, into: Path, change: Callable[[tarfile.TarInfo], bytes | None], *more: tarfile.TarInfo) -> Path:
    """A backup of which some files have other contents, and that has more entries."""
    with tarfile.open(file) as source, tarfile.open(into, "w", format=tarfile.PAX_FORMAT) as target:
        for entry in source:
            if entry.sparse is None:
                data = source.extractfile(entry) if entry.isreg() else None
                read = b"" if data is None else data.read()
                said = change(entry)
                entry.size = len(read if said is None else said)
                target.addfile(entry, io.BytesIO(read if said is None else said))
        for entry in more:
            target.addfile(entry)
    return into


def test_what_is_not_what_was_saved_is_put_back_in_no_part(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert copied(old, backup=tmp_path / "good.tar") == 0
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    link, below, beside = (tarfile.TarInfo(f"saved/x/trees/{name}") for name in ("link", "link/evil", "link/in/evil"))
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "out")
    (tmp_path / "out").mkdir()
    names, pipe, image_link = (
        tarfile.TarInfo("saved/x/names/n"),
        tarfile.TarInfo("saved/x/p"),
        tarfile.TarInfo("images/blobs/x"),
    )
    names.type, names.linkname, pipe.type = tarfile.SYMTYPE, "../../../etc", tarfile.FIFOTYPE
    image_link.type, image_link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    bad: list[tuple[Callable[[tarfile.TarInfo], bytes | None], tuple[tarfile.TarInfo, ...]]] = [
        (lambda entry: b"other" if entry.name.endswith("lab/start") else None, ()),
        (lambda entry: b"other" if entry.name.startswith("images/blobs/") else None, ()),
        (lambda entry: b"[1]" if entry.name == "images/names.json" else None, ()),
        (lambda entry: b'{"a:1": "x"}' if entry.name == "images/names.json" else None, ()),
        (lambda _: None, (link, below)),
        (lambda _: None, (link, beside)),
        *((lambda _: None, (one,)) for one in (names, pipe, image_link, tarfile.TarInfo("images/blobs/../x"))),
    ]
    for number, (change, more) in enumerate(bad):
        file = changed(tmp_path / "good.tar", tmp_path / f"{number}.tar", change, *more)
        assert copied(tmp_path / "new", restore=file) == 2, number
        assert "restore" in (said := capsys.readouterr().err), said
        assert {path.name for path in (tmp_path / "new").iterdir()} <= {"server.sqlite", "server.lock"}
    assert list((tmp_path / "out").iterdir()) == []
    assert Store().names() == {}, "nothing of it has a name in the store of images"


@contextlib.contextmanager
def process(directory: Path, **asked: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The same in a process of its own, which is killed at the end of the context."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-P", "-m", "dilaton.server", options(directory, **asked)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as begun:
        yield begun
        begun.kill()


def files_without_name(pid: int) -> list[str]:
    """The files that a process has open and that nobody else can find."""
    found = []
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found += [to] if (to := os.readlink(link)).endswith(" (deleted)") else []
    return found


def wait_and_more(begun: subprocess.Popen[bytes], is_at_work: Callable[[], bool], part: float) -> None:
    """Waits until a process is at work, and for a part of the time that this takes; or until it has ended."""
    while begun.poll() is None and not is_at_work():
        time.sleep(0.001)
    with contextlib.suppress(subprocess.TimeoutExpired):
        begun.wait(part * LASTS_HOST_S)


def test_a_backup_that_is_killed_leaves_nothing_or_is_whole(old: Path, tmp_path: Path) -> None:
    chance, kept, results = random.Random(1), {path.name for path in tmp_path.iterdir()}, set[int]()
    for number in range(KILLS):
        file = tmp_path / f"{number}.tar"
        with process(old, backup=file) as begun:
            wait_and_more(begun, lambda: bool(files_without_name(begun.pid)), number and chance.random())
        results.add(begun.returncode)
        assert {path.name for path in tmp_path.iterdir()} - kept <= {file.name}, "no half of one"
        if file.exists():
            assert copied(tmp_path / f"new{number}", restore=file) == 0
            is_whole(tmp_path / f"new{number}", {"monday", "tuesday"})
            kept |= {file.name, f"new{number}"}
    assert -signal.SIGKILL in results, "one at least came before its end"


def test_a_restore_that_is_killed_has_done_all_or_is_done_again(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, chance, results = tmp_path / "backup.tar", random.Random(2), set[int]()
    assert copied(old, backup=file) == 0
    for number in range(KILLS):
        new = tmp_path / f"new{number}"
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / f"home{number}"))
        with process(new, restore=file) as begun:
            wait_and_more(begun, (new / ".restoring").exists, number and chance.random())
        results.add(begun.returncode)
        # It refuses where all was done, and otherwise does it.
        assert copied(new, restore=file) in (0, 2)
        labs = is_whole(new, {"monday", "tuesday"})
        assert not (new / ".restoring").exists()
        assert Store().find("db:full").digest and any(name.startswith(labs.images) for name in Store().names())
    assert -signal.SIGKILL in results, "one at least came before its end"
