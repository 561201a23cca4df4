"""Images come from Debian's docker-registry, as from any registry, also where it stops or gives what it should not."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.service.images import bring as images
from tests.conftest import PATIENCE_HOST_S
from tests.images import busybox, folder, layer, layout, needs_programs
from tests.unit.images.debian import program

pytestmark = needs_programs

LAYERS = 24

LARGE_BYTES = 8 << 20

CONFIG = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {place}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


class Door:
    """What stands in front of the registry on the loopback: it lets through what comes out, up to so much."""

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self.left: int | None = None
        """Bytes that it still lets out before it closes for good; None: all."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                behind = socket.create_connection(("127.0.0.1", self._behind))
                for source, target, counts in ((connection, behind, False), (behind, connection, True)):
                    threading.Thread(target=self._pass, args=(source, target, counts), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counts: bool) -> None:
        with contextlib.suppress(OSError), source, target:
            while data := source.recv(1 << 16):
                if counts and self.left is not None:
                    data, self.left = data[: self.left], self.left - len(data[: self.left])
                target.sendall(data)
                if counts and self.left == 0:
                    break
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Lets nobody in any more."""
        self._listening.close()


class Registry:
    """A registry that goes on."""

    def __init__(self, place: Path, door: Door) -> None:
        self.place, self.door = place, door

    @property
    def name(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.door.port}"

    def push(self, source: str, name: str) -> str:
        """Puts an image there; returns its digest."""
        target = f"docker://{self.name}/{name}"
        for command in (["copy", "--dest-tls-verify=false", source, target],):
            subprocess.run(["skopeo", "--insecure-policy", *command], check=True, capture_output=True)
        shown = ["skopeo", "inspect", "--tls-verify=false", "--format", "{{.Digest}}", target]
        return subprocess.run(shown, check=True, capture_output=True, text=True).stdout.strip()

    def blob(self, digest: str) -> Path:
        """The file of a blob."""
        algorithm, _, digits = digest.partition(":")
        return self.place / f"docker/registry/v2/blobs/{algorithm}/{digits[:2]}/{digits}/data"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    place, config = tmp_path / "registry", tmp_path / "registry.yml"
    config.write_text(CONFIG.format(place=place, port=port))
    with subprocess.Popen(
        [program("docker-registry", "docker-registry"), "serve", config], stderr=subprocess.DEVNULL
    ) as served:
        deadline = time.monotonic() + PATIENCE_HOST_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert served.poll() is None and time.monotonic() < deadline, "it does not come up"
            time.sleep(0.02)
        door = Door(port)
        yield Registry(place, door)
        door.close()
        served.kill()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def pull(store: Store, name: str) -> Image:
    reference = parse(name)
    return images.bring(store, f"docker://{reference}", reference, lambda *_: None, 1 << 30, plain_http=True)


def many_layers() -> list[bytes]:
    """A busybox, and above it layers each of which takes away a file of the one before and brings another."""
    above = [
        layer(folder("kept"), (f"kept/{number}", b"%d" % number), *([f"kept/.wh.{number - 1}"] if number else []))  # type: ignore[arg-type]
        for number in range(LAYERS)
    ]
    return [busybox(), *above]


def names(image: Image, tmp_path: Path) -> set[str]:
    """The names in the tree of an image."""
    archive = tmp_path / "tree.tar"
    with archive.open("wb") as file:
        subprocess.run(["sqfs2tar", image.root], stdout=file, check=True)
    with tarfile.open(archive) as tree:
        return {member.name.removeprefix("./") for member in tree}


def test_images_are_pulled_by_tag_and_by_digest_and_what_is_there_is_not_brought_again(
    registry: Registry, store: Store, tmp_path: Path
) -> None:
    box = registry.push(layout(tmp_path / "box", [busybox()], {"Cmd": ["/bin/sh"]}), "some/box:1")
    many = registry.push(layout(tmp_path / "many", many_layers()), "many:2")
    by_tag = pull(store, f"{registry.name}/some/box:1")
    assert (by_tag.digest, by_tag.argv) == (box, ("/bin/sh",))
    assert pull(store, f"{registry.name}/some/box@{box}").digest == box
    found = names(pull(store, f"{registry.name}/many@{many}"), tmp_path)
    assert {name for name in found if name.startswith("kept/") and name != "kept/"} == {f"kept/{LAYERS - 1}"}
    for digest in (box, many):
        for one in store.manifest(digest)["layers"]:
            registry.blob(one["digest"]).unlink(missing_ok=True)
    assert pull(store, f"{registry.name}/many:2").digest == many, "its layers are in the store"


def test_a_registry_that_stops_in_mid_transfer_leaves_the_store_as_it_was(
    registry: Registry, store: Store, tmp_path: Path
) -> None:
    large = layer(("large", os.urandom(LARGE_BYTES)))
    digest = registry.push(layout(tmp_path / "large", [busybox(), large]), "large:1")
    registry.door.left = LARGE_BYTES // 2
    with pytest.raises(ImageError, match=f"{registry.name}/large:1"):
        pull(store, f"{registry.name}/large:1")
    assert registry.door.left == 0, "it stopped in the middle"
    assert store.names() == {} and not list(store.directory.glob("staging/*"))
    registry.door.left = None
    assert pull(store, f"{registry.name}/large:1").digest == digest
    store.collect()
    assert store.names() == {f"{registry.name}/large:1": digest}


@pytest.mark.parametrize("what", ["layer", "config", "manifest"])
def test_what_does_not_match_its_digest_is_refused(what: str, registry: Registry, store: Store, tmp_path: Path) -> None:
    digest = registry.push(layout(tmp_path / "box", [busybox()]), "box:1")
    manifest = json.loads(registry.blob(digest).read_text())
    wrong = {"layer": manifest["layers"][0]["digest"], "config": manifest["config"]["digest"], "manifest": digest}[what]
    contents = bytearray(registry.blob(wrong).read_bytes())
    contents[len(contents) // 2] ^= 1
    registry.blob(wrong).write_bytes(contents)
    with pytest.raises(ImageError, match=f"{registry.name}/box"):
        pull(store, f"{registry.name}/box@{digest}")
    assert store.names() == {} and not list(store.directory.glob("staging/*"))


def test_a_registry_that_has_no_such_image_is_told(registry: Registry, store: Store, tmp_path: Path) -> None:
    registry.push(layout(tmp_path / "box", [busybox()]), "box:1")
    for name in ("box:2", "none:1"):
        with pytest.raises(ImageError, match=f"{registry.name}/{name}"):
            pull(store, f"{registry.name}/{name}")
    assert store.names() == {}
