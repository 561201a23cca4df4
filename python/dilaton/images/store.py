"""The store: an OCI image layout in the user's data directory, and beside it each image's tree as a file system.

```text
~/.local/share/dilaton/images/     ($XDG_DATA_HOME)
├── oci-layout  index.json   the names, and which manifest each has; what has no name is not in the store
├── blobs/sha256/…           manifests, configurations and layers, each named by its digest
├── roots/….squashfs         the tree of all layers together, named by its manifest's digest: what nodes are given
├── staging/…                what is still being made, a directory for each command
└── lock                     shared by those who add, exclusive for who frees
```

**No death leaves it inconsistent.** Files are written in `staging`, made durable (fsync) and then get their names by
rename(2), so whatever has a name is whole. An image is there once the index says so, which is replaced the same way,
last of all. What a command that was killed leaves is in `staging`, or a file that nothing refers to: the next try uses
it, or `gc` frees it. Blobs are checked against their names whenever they are read.

The layout is the standard's (OCI image specification, "Image Layout"), so skopeo, umoci and podman read the store too.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dilaton.images.reference import Reference, parse

NAME = "org.opencontainers.image.ref.name"
LAYOUT = {"imageLayoutVersion": "1.0.0"}
ALGORITHM = "sha256:"
DOCUMENT_BYTES_MAX = 4 << 20
"""The largest manifest or configuration; registries take no larger ones."""
CHUNK_BYTES = 1 << 20
SHORT_DIGEST = 12
"""Digits of a digest that are shown, and at least have to be given."""


class ImageError(Exception):
    """An image cannot be used, or be put into the store; the text says why."""


@dataclass(frozen=True)
class Image:
    """An image in the store.

    Attributes:
        name: As people write it.
        digest: Of its manifest.
        root: The file with its tree, a squashfs.
        size_bytes: Of that file.
        argv: What it runs, its entry point and command; nothing, if it says none.
        env: The environment in which it does.
        cwd: The directory.
        user: Whose process it is: a name or number, perhaps with a colon and a group.
        volumes: Directories that have to be there, as its configuration says.
        config: Its configuration, whole.
    """

    name: str
    digest: str
    root: Path
    size_bytes: int
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    user: str
    volumes: tuple[str, ...]
    config: dict[str, Any]


@dataclass(frozen=True)
class Adding:
    """Something that is being put into the store.

    Attributes:
        staging: The directory in which it is made, which goes when it is done.
        lock_fd: What programs inherit that write there, so that nothing is freed before the last of them has ended,
            also if who has started them was killed.
    """

    staging: Path
    lock_fd: int


def default_directory() -> Path:
    """Where this user's store is."""
    data = os.environ.get("XDG_DATA_HOME", "")
    top = Path(data) if os.path.isabs(data) else Path.home() / ".local/share"
    return top / "dilaton" / "images"


class Store:
    """The store in a directory, which need not be there before something is added."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()
        self.blobs = self.directory / "blobs"

    def names(self) -> dict[str, str]:
        """The digests of all images by their complete names."""
        return {entry["annotations"][NAME]: entry["digest"] for entry in self._index()}

    def find(self, name: str) -> Image:
        """The image of a name, a digest, or the first twelve digits of one or more.

        Raises:
            ValueError: It is no name.
            ImageError: It is not in the store, or no longer whole.
        """
        names = self.names()
        digits = name.removeprefix(ALGORITHM)
        if len(digits) >= SHORT_DIGEST and not set(digits) - set("0123456789abcdef"):
            found = {digest for digest in names.values() if digest.startswith(ALGORITHM + digits)}
            if len(found) == 1:
                return self._read(next(known for known, digest in names.items() if digest in found), found.pop())
        reference = parse(name)
        digest = names.get(str(reference))
        if digest is None and reference.digest in names.values():
            digest = reference.digest
        if digest is None:
            raise ImageError(
                f"{name}: not in the store of images; dilaton image list shows what is{_nearest(reference, names)}"
            )
        return self._read(str(reference), digest)

    def manifest(self, digest: str) -> dict[str, Any]:
        """The manifest of an image.

        Raises:
            ImageError: It is not there, or not what its digest says.
        """
        return self.document(digest)

    def root(self, digest: str) -> Path:
        """Where the tree of an image is."""
        return self.directory / "roots" / f"{_digits(digest)}.squashfs"

    def blob(self, digest: str) -> Path:
        """Where a blob is."""
        return self.blobs / "sha256" / _digits(digest)

    def blobs_of(self, digest: str) -> list[str]:
        """The digests of all blobs of an image, its manifest's first.

        Raises:
            ImageError: The manifest is not there, or not what its digest says.
        """
        manifest = self.document(digest)
        return [digest, manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]

    def document(self, digest: str) -> dict[str, Any]:
        """A blob that is JSON.

        Raises:
            ImageError: It is not there, or not what its digest says.
        """
        try:
            with self.blob(digest).open("rb") as file:
                raw = file.read(DOCUMENT_BYTES_MAX + 1)
        except OSError as error:
            raise ImageError(f"{digest}: not in the store any more: {error.strerror}") from error
        if ALGORITHM + hashlib.sha256(raw).hexdigest() != digest:
            raise ImageError(
                f"{self.blob(digest)}: damaged: it is not what its name says; pull or import the image again"
            )
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ImageError(f"{digest}: not JSON: {error}") from error
        if not isinstance(found, dict):
            raise ImageError(f"{digest}: not a mapping")
        return found

    @contextlib.contextmanager
    def adding(self) -> Iterator[Adding]:
        """Gives the place where something is made while it is added. Nothing is freed meanwhile."""
        for place in (self.blobs / "sha256", self.directory / "roots", self.directory / "staging"):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self.directory / "lock", fcntl.LOCK_SH) as lock_fd:
            if not (self.directory / "oci-layout").exists():
                self._replace("oci-layout", LAYOUT)
            with tempfile.TemporaryDirectory(dir=self.directory / "staging", ignore_cleanup_errors=True) as staging:
                yield Adding(Path(staging), lock_fd)

    def keep(self, file: Path, digest: str | None = None) -> str:
        """Makes a file of the staging directory a blob: its digest, which is computed unless given."""
        digest = digest or digest_of(file)
        publish(file, self.blob(digest))
        return digest

    def keep_document(self, staging: Path, document: dict[str, Any]) -> tuple[str, int]:
        """Makes a blob of a document: its digest and size in bytes."""
        raw = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
        path = staging / "document"
        path.write_bytes(raw)
        return self.keep(path), len(raw)

    def name(self, reference: Reference, digest: str) -> None:
        """Gives a manifest of the store a name; that of another image is taken from it."""
        manifest = self.document(digest)
        entry = {
            "mediaType": manifest.get("mediaType", "application/vnd.oci.image.manifest.v1+json"),
            "digest": digest,
            "size": self.blob(digest).stat().st_size,
            "annotations": {NAME: str(reference)},
        }
        with _locked(self.directory / "index.lock", fcntl.LOCK_EX):
            others = [other for other in self._index() if other["annotations"][NAME] != str(reference)]
            self._replace("index.json", _index_of([*others, entry]))

    def remove(self, name: str) -> str:
        """Takes a name away: its complete form. What has no name is freed by `collect`.

        Raises:
            ValueError: It is no name.
            ImageError: It is not in the store.
        """
        complete = str(parse(name))
        if complete not in self.names():
            raise ImageError(f"{name}: not in the store of images{_nearest(parse(name), self.names())}")
        with _locked(self.directory / "index.lock", fcntl.LOCK_EX):
            rest = [entry for entry in self._index() if entry["annotations"][NAME] != complete]
            self._replace("index.json", _index_of(rest))
        return complete

    def collect(self, *, wait: bool = False) -> int:
        """Frees what no name leads to, and what commands have left that were ended: bytes.

        Args:
            wait: Whether to wait until nothing is being added, instead of refusing.

        Raises:
            ImageError: Something is being added, or an image is damaged, so that it cannot be told what belongs to it.
        """
        if not self.directory.is_dir():
            return 0
        with _locked(self.directory / "lock", fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)):
            used = set[Path]()
            for digest in set(self.names().values()):
                used |= {self.root(digest), *map(self.blob, self.blobs_of(digest))}
            freed = 0
            for path in [*self.directory.glob("blobs/sha256/*"), *self.directory.glob("roots/*")]:
                if path not in used:
                    freed += path.stat().st_blocks * 512
                    path.unlink()
            for left in self.directory.glob("staging/*"):
                freed += sum(path.lstat().st_blocks * 512 for path in (left, *left.rglob("*")))
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            return freed

    def _read(self, name: str, digest: str) -> Image:
        root = self.root(digest)
        config = self.document(self.manifest(digest)["config"]["digest"])
        try:
            size_bytes = root.stat().st_size
        except OSError as error:
            raise ImageError(f"{name}: its tree {root} is not there any more; pull or import it again") from error
        settings = _mapping(config.get("config"))
        pairs = (str(pair).partition("=") for pair in settings.get("Env") or [])
        return Image(
            name=parse(name).short,
            digest=digest,
            root=root,
            size_bytes=size_bytes,
            argv=tuple(map(str, [*(settings.get("Entrypoint") or []), *(settings.get("Cmd") or [])])),
            env={key: value for key, _, value in pairs},
            cwd=str(settings.get("WorkingDir") or "/"),
            user=str(settings.get("User") or "root"),
            volumes=tuple(sorted(_mapping(settings.get("Volumes")))),
            config=config,
        )

    def _index(self) -> list[dict[str, Any]]:
        try:
            text = (self.directory / "index.json").read_text()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ImageError(f"{error.filename}: cannot be read: {error.strerror}") from error
        entries: list[dict[str, Any]] = json.loads(text)["manifests"]
        return entries

    def _replace(self, name: str, document: dict[str, Any]) -> None:
        path = self.directory / name
        with tempfile.NamedTemporaryFile("w", dir=self.directory / "staging", delete=False) as file:
            json.dump(document, file, indent=1)
            with contextlib.suppress(FileNotFoundError):
                # Who may read the one before may read this one.
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        publish(Path(file.name), path)


def publish(file: Path, path: Path) -> None:
    """Makes a file durable and gives it its name, on the same file system; then the name is durable, too."""
    with file.open("rb") as written:
        os.fsync(written.fileno())
    file.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def digest_of(file: Path) -> str:
    """The digest of a file's contents."""
    with file.open("rb") as stream:
        return ALGORITHM + hashlib.file_digest(stream, "sha256").hexdigest()


def copy(source: BinaryIO, into: BinaryIO, bytes_max: int, *sums: Any) -> int:
    """Copies a stream to its end, adding its bytes to `sums`: how many there were.

    Raises:
        ImageError: There are more than so many.
    """
    total = 0
    while chunk := source.read(CHUNK_BYTES):
        total += len(chunk)
        if total > bytes_max:
            raise ImageError("larger than an image may be; see --max-size")
        for one in sums:
            one.update(chunk)
        into.write(chunk)
    return total


def _digits(digest: str) -> str:
    """The digits of a digest, which become a file's name.

    Raises:
        ImageError: It is none of SHA-256.
    """
    digits = digest.removeprefix(ALGORITHM)
    if not digest.startswith(ALGORITHM) or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise ImageError(f"{digest[:100]}: not a digest; one is sha256: and 64 hexadecimal digits")
    return digits


def _index_of(entries: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(entries, key=lambda entry: entry["annotations"][NAME])
    return {"schemaVersion": 2, "manifests": ordered}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _nearest(wanted: Reference, names: dict[str, str]) -> str:
    """Other tags of the same repository."""
    same = sorted(parse(name).short for name in names if parse(name).repository == wanted.repository)
    return f"; there are {', '.join(same[:5])}" if same else ""


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    """Holds a lock, which ends with the last process that has its descriptor, however that ends.

    Raises:
        ImageError: It is held by others and not to be waited for.
    """
    with path.open("a") as file:
        try:
            fcntl.flock(file, how)
        except BlockingIOError:
            raise ImageError("something is being added to the store of images; try again when that is done") from None
        yield file.fileno()
