"""Putting images into the store, and taking them out: whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from dilaton.images.layers import LayerError
from dilaton.images.reference import Reference
from dilaton.images.store import Adding, Image, ImageError, Store, publish
from dilaton.service.images.plain import HELP, of_layer, wrap
from dilaton.service.images.roots import Progress, check_platform, make_root
from dilaton.service.images.skopeo import fetch, run_skopeo
from dilaton.service.images.told import image_in

ARCHIVES = ("oci-archive:", "docker-archive:", "oci:", "docker-daemon:")
"""Where skopeo gets images from, beside registries."""


def size_max(store: Store) -> int:
    """How large the files of an image may be together unless more is asked for: half of what is free, in bytes."""
    place = next(path for path in (store.directory, *store.directory.parents) if path.is_dir())
    return shutil.disk_usage(place).free // 2


def bring(
    store: Store, source: str, name: Reference, progress: Progress, bytes_max: int, *, plain_http: bool = False
) -> Image:
    """Puts an image into the store, under a name that another image may have had.

    Args:
        store: The store.
        source: As skopeo has it, such as `docker://nginx` or `oci-archive:FILE`; or the path of one, or of a tree.
        name: What it will be called.
        progress: Is told of it.
        bytes_max: How large its files may be together.
        plain_http: Whether its registry may be without TLS.

    Raises:
        ImageError: There is none, it is none for this machine, or it is not what it says; the store is as before.
        HostLacksError: This machine lacks a program for it.
    """
    with explained(source), store.adding() as adding:
        image = source if source.startswith((*ARCHIVES, "docker://")) else image_in(Path(source), bytes_max)
        if image is not None:
            options = ["--src-tls-verify=false"] if plain_http else []
            digest = fetch(store, image, adding, progress, bytes_max, options)
        else:
            digest = wrap(store, Path(source), adding.staging, progress, bytes_max)
        if not store.root(digest).exists():
            make_root(store, digest, adding, progress, bytes_max)
        else:
            check_platform(store, digest)
        store.name(name, digest)
    return store.find(str(name))


def export(store: Store, image: Image, target: str) -> None:
    """Writes an image as an archive, which must not be there yet.

    Args:
        store: The store.
        image: Of it.
        target: `oci-archive:FILE` or `docker-archive:FILE`.

    Raises:
        ImageError: The archive cannot be written.
        HostLacksError: There is no skopeo.
    """
    kind, _, name = target.partition(":")
    # Else it compresses layers that are not, and so changes their digests.
    options = ["--preserve-digests"] if kind == "oci-archive" else []
    if kind not in ("oci-archive", "docker-archive") or not name:
        raise ImageError(f"{target}: write oci-archive:FILE or docker-archive:FILE")
    path = Path(name)
    if path.exists():
        raise ImageError(f"{path}: is there already")
    with explained(name), store.adding() as adding:
        layout = adding.staging / "layout"
        layout.mkdir()
        size = store.blob(image.digest).stat().st_size
        entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image.digest, "size": size}
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".dilaton-") as beside:
            made = Path(beside) / "archive"
            tag = image.name if ":" in image.name else f"{image.name}:latest"
            words = [
                "copy",
                "--quiet",
                *options,
                "--src-shared-blob-dir",
                str(store.blobs),
                f"oci:{layout}",
                f"{kind}:{made}:{tag}",
            ]
            run_skopeo(words, adding, lambda: 0, None)
            publish(made, path)


def make(
    store: Store,
    name: Reference,
    write: Callable[[BinaryIO, Adding], None],
    settings: dict[str, object],
    progress: Progress,
    bytes_max: int,
) -> Image:
    """Puts an image of one layer into the store.

    Args:
        store: The store.
        name: What it will be called.
        write: Writes the layer, a tar archive, into a file.
        settings: What the image runs, as its configuration has it.
        progress: Is told of it.
        bytes_max: How large its files may be together.

    Raises:
        ImageError: It cannot be made; the store is as before.
        HostLacksError: This machine lacks a program for it.
    """
    with explained(name.short), store.adding() as adding:
        layer = adding.staging / "layer"
        with layer.open("w+b") as file:
            write(file, adding)
        digest = of_layer(store, layer, adding.staging, settings)
        if not store.root(digest).exists():
            make_root(store, digest, adding, progress, bytes_max)
        store.name(name, digest)
    return store.find(str(name))


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Says of what goes wrong what it is about.

    Raises:
        ImageError: Something did.
    """
    try:
        yield
    except (ImageError, LayerError) as error:
        raise ImageError(f"{what}: {error}") from error
    except (EOFError, gzip.BadGzipFile, tarfile.TarError, KeyError, TypeError, ValueError) as error:
        raise ImageError(f"{what}: not an image: {error}; {HELP}") from error
    except OSError as error:
        raise ImageError(f"{what}: {error.filename or 'the store'}: {error.strerror or error}") from error
