"""A node of a run that goes on becomes an image: its own, with all that it has changed, and nothing else."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from dilaton.images.store import Store
from tests.conftest import dilaton, environment, held_run
from tests.images import OWN, busybox, layer, layout, needs_programs

pytestmark = needs_programs

CONFIG = {"Cmd": ["/bin/sleep", "1"], "WorkingDir": "/data", "Env": ["PATH=/bin"]}
CHANGES = """
set -e
busybox rm zero
busybox rm -r /srv
busybox mkdir /srv
echo new > /srv/new
busybox ln /srv/new hard
busybox chown web hard
echo more >> own
busybox chmod 700 capable
busybox mkfifo pipe
busybox ln -s nowhere link
touch "$(busybox printf 'caf\\351')" /tmp/passing
"""
LAB = """
name: saved
time: {drive: event}
nodes: {a: {image: box, files: {/bin/change: {from: change, mode: 755}}}, plain: {}}
links: [a -- plain]
run: [{on: a, exec: sh -e /bin/change, start: 1s}, {on: plain, exec: sleep 10}]
stop_after: 5s
"""


def test_an_image_of_a_node_has_what_the_node_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    page = layer(("srv/page", b"a page of the image\n"), ("srv/below/page", b""))
    brought = dilaton("image", "import", layout(tmp_path / "oci", [busybox(), page], CONFIG), "box", env=environment())
    assert brought.returncode == 0, brought.stderr
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "change").write_text(CHANGES)
    with held_run(lab, LAB, "3s") as (_, out):
        saved = dilaton("save", f"{out}:a", "box:changed", env=environment())
        assert saved.returncode == 0, saved.stderr
        for place, words in {
            f"{out}:none": "none: no such node",
            f"{out}:plain": "plain: has this machine's file tree",
            ":a": "write RUN:NODE",
            "a": "a: not a run directory",
        }.items():
            told = dilaton("save", place, "x", env=environment())
            assert told.returncode in (1, 2) and words in told.stderr, told.stderr
        too_large = dilaton("save", f"{out}:a", "x", "--max-size", "1kB", env=environment())
        assert too_large.returncode == 1 and "--max-size" in too_large.stderr
    store = Store(tmp_path / "data/dilaton/images")
    assert {name.rpartition("/")[2] for name in store.names()} == {"box:latest", "box:changed"}
    old, new = store.find("box"), store.find("box:changed")
    assert (new.argv, new.cwd) == (old.argv, old.cwd) and f"box:changed {new.digest}\n" == saved.stdout
    layers = [store.manifest(image.digest)["layers"] for image in (old, new)]
    assert layers[1][:-1] == layers[0], "what is below is kept once"
    done = subprocess.run(["sqfs2tar", new.root], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout), errors="surrogateescape") as archive:
        found = {member.name: member for member in archive}
        contents = {name: archive.extractfile(name) for name in ("srv/new", "data/hard", "data/own")}
        read = {name: file.read() for name, file in contents.items() if file is not None}
    assert read == {"srv/new": b"new\n", "data/hard": b"new\n", "data/own": b"mine\nmore\n"}
    assert not {"data/zero", "srv/page", "srv/below", "tmp/passing", "etc/hostname"} & found.keys()
    assert {found["srv/new"].uid, found["data/hard"].uid, found["data/own"].uid} == {OWN}
    assert found["data/pipe"].isfifo() and found["data/link"].linkname == "nowhere"
    assert "data/caf\udce9" in found and found["data/own"].mode == 0o640
    assert found["data/capable"].mode == 0o700
