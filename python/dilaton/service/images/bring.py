"""Putting images into the store, and taking them out.

What speaks the languages of registries and archives is skopeo, which puts blobs into the store by their digests, each
once it is whole: what a pull that was ended has brought is not brought again. What makes a file system of a tree is
sqfstar (squashfs-tools): it takes a tar archive as it comes (`images/layers.py` writes it), so owners, devices and
capabilities are numbers in a file, which takes no privilege. A plain tree (a directory, a tar archive, a squashfs)
becomes an image of one layer first, so that everything in the store is an OCI image.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dilaton.host import files
from dilaton.images.archive import attributes_of
from dilaton.images.layers import LayerError, Tree
from dilaton.images.reference import Reference
from dilaton.images.store import ALGORITHM, Adding, Image, ImageError, Store, copy, digest_of, publish

ARCHIVES = ("oci-archive:", "docker-archive:", "oci:", "docker-daemon:")
"""Where skopeo gets images from, beside registries."""

ARCHITECTURE = "amd64"
LAYER = "application/vnd.oci.image.layer.v1.tar"

COMPRESSOR = "lz4"
"""How the file system is compressed, whose blocks the CPU of a guest unpacks: what takes least of it."""

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
"""prctl(2)"""

WATCH_S = 0.2
LAYERS_MAX = 512
LINES_MAX = 3
SQUASHFS_MAGIC = b"hsqs"
GZIP_MAGIC, XZ_MAGIC, BZIP2_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd"
DETECTED_BYTES = 2048
FILE_SYSTEMS = {"ext4": (1080, b"\x53\xef"), "erofs": (1024, b"\xe2\xe1\xf5\xe0")}
"""Where a superblock has which bytes, of file systems that people may take for sources."""
HELP = (
    "an image comes from oci-archive:FILE, docker-archive:FILE, oci:DIRECTORY, a directory, or a file with a tar "
    "archive or a squashfs"
)

Progress = Callable[[str, int], None]
"""Is told what is being done, and how many bytes of it are."""


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
        source: As skopeo has it, such as `docker://nginx` or `oci-archive:FILE`; or the path of a tree.
        name: What it will be called.
        progress: Is told of it.
        bytes_max: How large its files may be together.
        plain_http: Whether its registry may be without TLS.

    Raises:
        ImageError: There is none, it is none for this machine, or it is not what it says; the store is as before.
        HostLacksError: This machine lacks a program for it.
    """
    with _explained(source), store.adding() as adding:
        if source.startswith((*ARCHIVES, "docker://")):
            options = ["--src-tls-verify=false"] if plain_http else []
            digest = _fetch(store, source, adding, progress, bytes_max, options)
        else:
            digest = _wrap(store, Path(source), adding.staging, progress, bytes_max)
        if not store.root(digest).exists():
            _make_root(store, digest, adding, progress, bytes_max)
        else:
            _check_platform(store, digest)
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
    with _explained(name), store.adding() as adding:
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
            _skopeo(words, adding, lambda: 0, None)
            publish(made, path)


def _fetch(
    store: Store, source: str, adding: Adding, progress: Progress, bytes_max: int, options: Sequence[str]
) -> str:
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
    _skopeo(words, adding, grown, bytes_max)
    entries = json.loads((layout / "index.json").read_text())["manifests"]
    digest: str = entries[0]["digest"]
    return digest


def _skopeo(words: list[str], adding: Adding, grown: Callable[[], int], bytes_max: int | None) -> None:
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
            preexec_fn=lambda: _settle(bytes_max),
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


def _settle(bytes_max: int | None = None) -> None:
    """Has a program, freshly forked, end with its parent, and write no larger file than that."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if bytes_max is not None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        most = bytes_max if hard == resource.RLIM_INFINITY else min(bytes_max, hard)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def _size(directory: Path) -> int:
    """Bytes of the files below a directory, in which others come and go."""
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def _check_platform(store: Store, digest: str) -> dict[str, Any]:
    """The configuration of an image, which has to be for machines like this one."""
    config = store.document(store.manifest(digest)["config"]["digest"])
    platform = (config.get("os"), config.get("architecture"))
    if platform != ("linux", ARCHITECTURE):
        raise ImageError(f"an image for {'/'.join(map(str, platform))}; guests run linux/{ARCHITECTURE}")
    return config


def _make_root(store: Store, digest: str, adding: Adding, progress: Progress, bytes_max: int) -> None:
    """Makes the tree of an image whose blobs are in the store."""
    config = _check_platform(store, digest)
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
        with _uncompressed(file, _packing(file)) as stream:
            try:
                size = copy(stream, into, bytes_max, plain)
            except (EOFError, gzip.BadGzipFile) as error:
                raise ImageError(f"layer {layer['digest']}: {error}") from error
    if ALGORITHM + plain.hexdigest() != diff:
        raise ImageError(f"layer {layer['digest']}: unpacked it is not what the configuration says, {diff}")
    return size


def _begin(file: BinaryIO) -> bytes:
    """The first bytes of a file, which stays at its beginning."""
    begin = file.read(8)
    file.seek(0)
    return begin


def _packing(file: BinaryIO) -> str:
    """The program that an archive was packed with, as it begins: what is said of a layer by its kind need not be so."""
    packed = {GZIP_MAGIC: "gzip", XZ_MAGIC: "xz", BZIP2_MAGIC: "bzip2", ZSTD_MAGIC: "zstd"}
    begin = _begin(file)
    return next((name for magic, name in packed.items() if begin.startswith(magic)), "")


@contextlib.contextmanager
def _uncompressed(file: BinaryIO, how: str) -> Iterator[BinaryIO]:
    if how == "gzip":
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream  # type: ignore[misc]
    elif how:
        with _output_of([str(files.program(how, how)), "-dc"], file) as stream:
            yield stream
    else:
        yield file


@contextlib.contextmanager
def _output_of(argv: list[str], file: BinaryIO | None) -> Iterator[BinaryIO]:
    """What a program makes of a file.

    Raises:
        ImageError: It fails.
    """
    process = subprocess.Popen(argv, stdin=file or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    try:
        yield process.stdout  # type: ignore[misc]
        process.stdout.close()
        said = process.stderr.read(4096).decode(errors="replace").strip()
        if process.wait() != 0:
            raise ImageError(said.splitlines()[-1] if said else f"{argv[0]} ended with status {process.returncode}")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


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
            argv, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[adding.lock_fd], preexec_fn=_settle
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
    with _explained(name.short), store.adding() as adding:
        layer = adding.staging / "layer"
        with layer.open("w+b") as file:
            write(file, adding)
        digest = _of_layer(store, layer, adding.staging, settings)
        if not store.root(digest).exists():
            _make_root(store, digest, adding, progress, bytes_max)
        store.name(name, digest)
    return store.find(str(name))


def _wrap(store: Store, path: Path, staging: Path, progress: Progress, bytes_max: int) -> str:
    """Makes a plain tree an image of one layer: the digest of its manifest."""
    progress("reading", 0)
    layer = staging / "layer"
    with layer.open("wb") as file:
        if path.is_dir():
            _pack(path, file)
        elif path.is_file():
            _plain(path, file, bytes_max)
        else:
            raise ImageError(f"there is no such file or directory; {HELP}")
    return _of_layer(store, layer, staging, {})


def _of_layer(store: Store, layer: Path, staging: Path, settings: dict[str, object]) -> str:
    """Makes a file with a layer an image: the digest of its manifest."""
    size = layer.stat().st_size
    digest = store.keep(layer)
    config: dict[str, Any] = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    config |= {"config": settings} if settings else {}
    config_digest, config_size = store.keep_document(staging, config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config_digest,
            "size": config_size,
        },
        "layers": [{"mediaType": LAYER, "digest": digest, "size": size}],
    }
    return store.keep_document(staging, manifest)[0]


def _pack(directory: Path, into: BinaryIO) -> None:
    """Packs a directory; what belongs to the caller becomes root's, as it will be used by root of a node."""

    def add(path: Path, name: str) -> None:
        member = archive.gettarinfo(path, name)
        if member.uid == os.getuid():
            member.uid = 0
        if member.gid == os.getgid():
            member.gid = 0
        member.uname = member.gname = ""
        member.pax_headers = attributes_of(path)
        if member.isreg():
            with path.open("rb") as file:
                archive.addfile(member, file)
        else:
            archive.addfile(member)

    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
        add(directory, ".")
        for path in sorted(directory.rglob("*")):
            if path.is_symlink() or not path.is_socket():
                add(path, str(path.relative_to(directory)))


def _plain(path: Path, into: BinaryIO, bytes_max: int) -> None:
    """Copies the tar archive in a file, whatever it is packed in."""
    with path.open("rb") as file:
        if _begin(file).startswith(SQUASHFS_MAGIC):
            with _output_of([str(files.program("sqfs2tar", "squashfs-tools-ng")), str(path)], None) as stream:
                copy(stream, into, bytes_max)
            return
        _refuse_others(file)
        with _uncompressed(file, _packing(file)) as stream:
            copy(stream, into, bytes_max)


def _refuse_others(file: BinaryIO) -> None:
    """Refuses file systems that begin with nothing, as an archive of no files does; and that archive."""
    begin = file.read(DETECTED_BYTES)
    file.seek(0)
    for name, (place, magic) in FILE_SYSTEMS.items():
        if begin[place:].startswith(magic):
            raise ImageError(
                f"an {name} file system, which takes root to read here; mount it as a disk of a node and pack it "
                "there, as docs/images.md shows"
            )
    if not begin.strip(b"\0"):
        raise ImageError(f"there is nothing in it; {HELP}")


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
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
