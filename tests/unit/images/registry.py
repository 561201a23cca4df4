"""A registry on the loopback, which does what a test wants."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.images import layer, layout

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

    @property
    def layers(self) -> list[str]:
        """The digests of its layers."""
        manifest = json.loads((self.directory / "blobs/sha256" / self.digest.removeprefix("sha256:")).read_text())
        return [one["digest"] for one in manifest["layers"]]


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


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[Registry]:
    """A registry with an image of two layers."""
    layout(directory, [layer(("a", b"x" * 5000)), layer(("b", b"y" * 5000))], {"Cmd": ["/a"]})
    with Registry(directory) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
