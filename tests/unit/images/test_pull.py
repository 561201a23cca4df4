"""Images come from a registry: one on the loopback, which does what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dilaton.images.reference import parse
from dilaton.images.store import Image, ImageError, Store
from dilaton.service.images import bring as images
from tests.images import layer, layout, needs_programs

pytestmark = needs_programs

CUT_BYTES = 1000
"""After so many a registry that stops has stopped."""


class Registry(ThreadingHTTPServer):
    """Serves the blobs of a layout, whatever the image is called."""

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory = directory
        self.asked: list[str] = []
        """Digests of blobs that were sent."""
        self.cuts: set[str] = set()
        """Those that are sent in part."""

    @property
    def name(self) -> str:
        """Where it is."""
        return f"127.0.0.1:{self.server_address[1]}"

    @property
    def digest(self) -> str:
        """Of the manifest."""
        digest: str = json.loads((self.directory / "index.json").read_text())["manifests"][0]["digest"]
        return digest


class Handler(BaseHTTPRequestHandler):
    """The part of the registry protocol that a pull takes."""

    server: Registry

    def do_GET(self) -> None:
        """Answers what is asked for."""
        registry, last = self.server, self.path.rpartition("/")[2]
        if self.path == "/v2/":
            return self.answer(b"{}", "application/json")
        if "/manifests/" in self.path:
            digest = last if last.startswith("sha256:") else registry.digest
            kind = "application/vnd.oci.image.manifest.v1+json"
        else:
            digest, kind = last, "application/octet-stream"
            registry.asked.append(digest)
        path = registry.directory / "blobs/sha256" / digest.removeprefix("sha256:")
        if not path.exists():
            return self.send_error(404)
        return self.answer(path.read_bytes(), kind, cut=digest in registry.cuts)

    def answer(self, contents: bytes, kind: str, *, cut: bool = False) -> None:
        """Sends contents, or their beginning."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents[:CUT_BYTES] if cut else contents)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    directory = tmp_path / "registry"
    layout(directory, [layer(("a", b"x" * 5000)), layer(("b", b"y" * 5000))], {"Cmd": ["/a"]})
    with Registry(directory) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def pull(store: Store, name: str) -> Image:
    """Brings an image from a registry."""
    reference = parse(name)
    return images.bring(store, f"docker://{reference}", reference, lambda *_: None, 1 << 30, plain_http=True)


def test_an_image_is_pulled_by_tag_and_by_digest(store: Store, registry: Registry) -> None:
    by_tag = pull(store, f"{registry.name}/some/box:1")
    assert (by_tag.digest, by_tag.argv) == (registry.digest, ("/a",))
    by_digest = pull(store, f"{registry.name}/some/box@{registry.digest}")
    assert by_digest.digest == by_tag.digest
    layers = [one["digest"] for one in store.manifest(by_tag.digest)["layers"]]
    assert [registry.asked.count(one) for one in layers] == [1, 1], "what is in the store is not brought again"
    assert set(store.names()) == {f"{registry.name}/some/box:1", f"{registry.name}/some/box@{registry.digest}"}


def test_a_registry_that_stops_leaves_the_store_as_it_was_and_the_next_pull_goes_on(
    store: Store, registry: Registry
) -> None:
    manifest = json.loads((registry.directory / "blobs/sha256" / registry.digest[7:]).read_text())
    first, second = (one["digest"] for one in manifest["layers"])
    registry.cuts = {second}
    with pytest.raises(ImageError, match="box"):
        pull(store, f"{registry.name}/box")
    assert store.names() == {}
    registry.cuts = set()
    assert pull(store, f"{registry.name}/box").digest == registry.digest
    assert second in registry.asked and first in registry.asked


def test_a_digest_that_does_not_match_is_refused(store: Store, registry: Registry) -> None:
    wrong = f"sha256:{'1' * 64}"
    path = registry.directory / "blobs/sha256"
    (path / wrong[7:]).write_bytes((path / registry.digest[7:]).read_bytes())
    with pytest.raises(ImageError, match=r"(?i)digest"):
        pull(store, f"{registry.name}/box@{wrong}")
    assert store.names() == {}


def test_a_registry_that_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(ImageError, match=r"127\.0\.0\.1:1/box.*connection refused"):
        pull(store, "127.0.0.1:1/box")
