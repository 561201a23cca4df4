"""What speaks the languages of registries and archives: skopeo.

It puts blobs into the store by their digests, each once it is whole: what a pull that was ended has brought is not
brought again.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from dilaton.host import files
from dilaton.images.store import Adding, ImageError, Store
from dilaton.service.images.programs import WATCH_S, settle
from dilaton.service.images.roots import ARCHITECTURE, Progress


def fetch(store: Store, source: str, adding: Adding, progress: Progress, bytes_max: int, options: Sequence[str]) -> str:
    """Has skopeo put an image into the store: the digest of its manifest."""
    layout = adding.staging / "layout"
    before = _size(store.blobs)

    def grown() -> int:
        size = _size(adding.staging) + _size(store.blobs) - before
        progress("fetching", max(size, 0))
        return size

    words = ["--override-os", "linux", "--override-arch", ARCHITECTURE, "copy", "--quiet", *options]
    # Else it compresses layers that are not, and so changes their digests; what Docker saves it may.
    words += [] if source.startswith("docker-archive:") else ["--dest-oci-accept-uncompressed-layers"]
    words += ["--dest-shared-blob-dir", str(store.blobs), source, f"oci:{layout}:image"]
    run_skopeo(words, adding, grown, bytes_max)
    entries = json.loads((layout / "index.json").read_text())["manifests"]
    digest: str = entries[0]["digest"]
    return digest


def run_skopeo(words: list[str], adding: Adding, grown: Callable[[], int], bytes_max: int | None) -> None:
    """Runs skopeo, which is ended when more grows than may."""
    program = files.program("skopeo", "skopeo")
    temporary = adding.staging / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(temporary)}
    with (adding.staging / "skopeo.log").open("w+") as log:
        process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            pass_fds=[adding.lock_fd],
            preexec_fn=lambda: settle(bytes_max),
        )
        is_too_large = False
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(WATCH_S)
                is_too_large = bytes_max is not None and grown() > bytes_max
                if is_too_large:
                    process.kill()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if is_too_large:
            raise ImageError("larger than an image may be; see --max-size")
        if process.returncode != 0:
            log.seek(0)
            raise ImageError(_words_of_skopeo(log.read()) or f"skopeo ended with status {process.returncode}")


def _words_of_skopeo(text: str) -> str:
    """What skopeo says is wrong, without its log's fields."""
    last = next((line for line in reversed(text.splitlines()) if "msg=" in line), text.strip().splitlines()[-1:])
    if isinstance(last, list):
        return "".join(last)
    said = last.partition("msg=")[2]
    with contextlib.suppress(ValueError):
        said = str(json.loads(said))
    return said


def _size(directory: Path) -> int:
    """Bytes of the files below a directory, in which others come and go."""
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total
