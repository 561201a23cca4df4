"""The file system of an image, made of its layers.

What makes it is sqfstar (squashfs-tools): it takes a tar archive as it comes (`images/layers.py` writes it), so owners,
devices and capabilities are numbers in a file, which takes no privilege.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from dilaton.host import files
from dilaton.images.layers import Tree
from dilaton.images.store import ALGORITHM, Adding, ImageError, Store, copy, digest_of, publish
from dilaton.service.images.programs import packing, settle, uncompressed

ARCHITECTURE = "amd64"
"""What images are for, as they say it."""

COMPRESSOR = "lz4"
"""How the file system is compressed, whose blocks the CPU of a guest unpacks: what takes least of it."""

LAYERS_MAX = 512
LINES_MAX = 3
"""Of what sqfstar says is wrong."""

Progress = Callable[[str, int], None]
"""Is told what is being done, and how many bytes of it are."""


def check_platform(store: Store, digest: str) -> dict[str, Any]:
    """The configuration of an image, which has to be for machines like this one."""
    config = store.document(store.manifest(digest)["config"]["digest"])
    platform = (config.get("os"), config.get("architecture"))
    if platform != ("linux", ARCHITECTURE):
        raise ImageError(f"an image for {'/'.join(map(str, platform))}; guests run linux/{ARCHITECTURE}")
    return config


def make_root(store: Store, digest: str, adding: Adding, progress: Progress, bytes_max: int) -> None:
    """Makes the tree of an image whose blobs are in the store."""
    config = check_platform(store, digest)
    layers = store.manifest(digest).get("layers")
    diffs = (config.get("rootfs") or {}).get("diff_ids")
    if (
        not isinstance(layers, list)
        or not isinstance(diffs, list)
        or len(diffs) != len(layers)
        or len(layers) > LAYERS_MAX
    ):
        raise ImageError("its manifest and configuration do not name the same layers")
    tree, left, staging = Tree(bytes_max), bytes_max, adding.staging
    with contextlib.ExitStack() as stack:
        for number, (layer, diff) in enumerate(zip(layers, diffs, strict=True), 1):
            progress(f"layer {number} of {len(layers)}", int(layer["size"]))
            plain = stack.enter_context(tempfile.TemporaryFile(dir=staging))
            left -= _unpack(store, layer, diff, plain, left)
            plain.seek(0)
            tree.add(plain)
        progress("writing its tree", bytes_max - left)
        made = staging / "root"
        _write_root(tree, made, adding)
    publish(made, store.root(digest))


def _unpack(store: Store, layer: dict[str, Any], diff: str, into: BinaryIO, bytes_max: int) -> int:
    """Uncompresses a layer, and checks that it is the one that was meant, packed and unpacked: its bytes."""
    path = store.blob(layer["digest"])
    plain = hashlib.sha256()
    with path.open("rb") as file:
        if digest_of(path) != layer["digest"]:
            raise ImageError(f"layer {layer['digest']}: not what its digest says; dilaton image gc removes it")
        with uncompressed(file, packing(file)) as stream:
            try:
                size = copy(stream, into, bytes_max, plain)
            except (EOFError, gzip.BadGzipFile) as error:
                raise ImageError(f"layer {layer['digest']}: {error}") from error
    if ALGORITHM + plain.hexdigest() != diff:
        raise ImageError(f"layer {layer['digest']}: unpacked it is not what the configuration says, {diff}")
    return size


def _write_root(tree: Tree, path: Path, adding: Adding) -> None:
    """Has sqfstar make a file system of a tree."""
    argv = [str(files.program("sqfstar", "squashfs-tools")), "-quiet", "-no-progress", "-exit-on-error"]
    argv += [
        "-comp",
        COMPRESSOR,
        "-mkfs-time",
        "0",
        "-root-mode",
        "0755",
        "-root-uid",
        "0",
        "-root-gid",
        "0",
        str(path),
    ]
    with (adding.staging / "sqfstar.log").open("w+b") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[adding.lock_fd], preexec_fn=settle
        )
        assert process.stdin is not None
        try:
            # What the program says of a write that it does not take is more than that there was nobody to take it.
            with contextlib.suppress(BrokenPipeError):
                tree.write(process.stdin)
                process.stdin.close()
        except BaseException:
            process.kill()
            raise
        finally:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
        if process.returncode != 0:
            log.seek(0)
            said = log.read().decode(errors="replace").strip().splitlines()
            raise ImageError("; ".join(said[-LINES_MAX:]) or f"sqfstar ended with status {process.returncode}")
