"""Making images from recipes (`images/recipe.py`): from packages of Debian, from programs of this machine, or
from a tree that is here.

Packages are brought and set up by mmdebstrap, which an ordinary user may run: as root of a user namespace where
`/etc/subuid` has numbers for the user, and else with fakechroot. It keeps the tree that it makes in /tmp and takes it
away when it ends. So it is asked to end, not killed, when we end, however we do: in a namespace the tree belongs to
users whose files only it can remove. What it mounts in the tree, as root does without a namespace of users, it mounts
in a namespace of its own, which goes with it also if it is killed.

Programs of this machine are taken with what the dynamic loader says that they are linked with, at the very places and
by the very links that they have here. That needs no network and takes a second.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dilaton.host import files
from dilaton.images.archive import attributes_of
from dilaton.images.recipe import Debian, OfHost, OfTree, Recipe
from dilaton.images.reference import Reference
from dilaton.images.store import Adding, Image, ImageError, Store
from dilaton.service.images.bring import bring, explained, make
from dilaton.service.images.plain import write_tree
from dilaton.service.images.programs import LIBC, PR_SET_PDEATHSIG, WATCH_S
from dilaton.service.images.roots import Progress
from dilaton.service.images.told import image_in

LINKS_MAX = 40
"""Symbolic links on the way to a file, as in Linux."""
SHEBANG, ELF = b"#!", b"\x7fELF"
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
"""Of unshare(2) and mount(2)."""
LINKED = re.compile(r"(?:=> |^\t)(/\S+) \(0x", re.MULTILINE)
"""What a line of ldd(1) names: a library, or the loader."""
LINES_MAX, LINE_MAX = 3, 300
"""Of what mmdebstrap says is wrong, and characters of each."""
USERS = {
    "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}
"""Whom an image with programs of this machine knows, unless it takes these files from it."""


def build(
    store: Store, recipe: Recipe, name: Reference, progress: Progress, bytes_max: int, tell: Callable[[str], None]
) -> Image:
    """Makes an image and puts it into the store.

    Args:
        store: The store.
        recipe: What it is made from.
        name: What it will be called.
        progress: Is told of it.
        bytes_max: How large its files may be together.
        tell: Is told of what was left out.

    Raises:
        ImageError: It cannot be made; the store is as before.
        HostLacksError: This machine lacks a program for it.
    """
    if isinstance(recipe.source, OfTree):
        with explained(recipe.source.path):
            is_image = image_in(Path(recipe.source.path), bytes_max) is not None
            if is_image and recipe != Recipe(recipe.source):
                raise ImageError("an image, which says itself what it runs; leave out command, env, cwd and user")
        if is_image:
            return bring(store, recipe.source.path, name, progress, bytes_max)

    def write(into: BinaryIO, adding: Adding) -> None:
        if isinstance(recipe.source, Debian):
            _debian(recipe.source, into, adding, progress, bytes_max)
        elif isinstance(recipe.source, OfTree):
            with explained(recipe.source.path):
                write_tree(Path(recipe.source.path), into, adding.staging, progress, bytes_max)
        else:
            progress("copying programs", 0)
            _of_host(recipe.source, into, bytes_max, tell)

    return make(store, name, write, recipe.settings, progress, bytes_max)


def _debian(source: Debian, into: BinaryIO, adding: Adding, progress: Progress, bytes_max: int) -> None:
    """Has mmdebstrap make a tree."""
    argv = [str(files.program("mmdebstrap", "mmdebstrap")), "--format=tar", f"--variant={source.variant}"]
    argv += [f"--include={package}" for package in source.packages]
    argv += [source.suite, "-", *source.mirrors]
    with (adding.staging / "mmdebstrap.log").open("w+b") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=into,
            stderr=log,
            pass_fds=[adding.lock_fd],
            preexec_fn=_by_itself,
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(WATCH_S)
                size = os.fstat(into.fileno()).st_size
                progress(f"installing {source.label}", size)
                if size > bytes_max:
                    raise ImageError("larger than an image may be; see --max-size")
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
        if process.returncode != 0:
            log.seek(0)
            said = log.read().decode(errors="replace").splitlines()
            wrong = [line for line in said if line.startswith("E: ")] or said[-1:]
            raise ImageError(
                "; ".join(_shortened(line) for line in wrong[:LINES_MAX])
                or f"mmdebstrap ended with status {process.returncode}"
            )


def _by_itself() -> None:
    """For a child before it becomes mmdebstrap: it is asked to end with us, and what root mounts there ends with it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if LIBC.unshare(CLONE_NEWNS) == 0:
        LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def _shortened(line: str) -> str:
    """A line that may name every package."""
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX // 2]} … {line[-LINE_MAX // 2 :]}"


def _of_host(source: OfHost, into: BinaryIO, bytes_max: int, tell: Callable[[str], None]) -> None:
    """Writes programs and files of this machine as a layer."""
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
        copied = _Copied(archive, bytes_max, tell)
        for name in source.names:
            found = name if name.startswith("/") else files.find_program(name)
            if found is None or not os.path.lexists(found):
                raise ImageError(f"{name}: not on this machine")
            copied.add(found)
        copied.add_users()


class _Copied:
    """What was taken of this machine, each path once."""

    def __init__(self, archive: tarfile.TarFile, bytes_max: int, tell: Callable[[str], None]) -> None:
        self._archive, self._left, self._tell = archive, bytes_max, tell
        self._done = set[str]()

    def add(self, path: str) -> None:
        """A path of this machine, the links on the way there, and all that it takes to run it."""
        real = self._way(path)
        if real in self._done:
            return
        self._done.add(real)
        kind = os.stat(real).st_mode
        if stat.S_ISDIR(kind):
            self._archive.addfile(self._entry(real))
            for name in sorted(os.listdir(real)):
                self._below(os.path.join(real, name))
        elif stat.S_ISREG(kind):
            self._file(real)
        else:
            raise ImageError(f"{real}: not a file or directory")

    def _below(self, path: str) -> None:
        """What a directory has: also a link that leads to nothing that can be taken along, but no socket or device."""
        if os.path.isfile(path) or os.path.isdir(path):
            self.add(path)
        elif not os.path.islink(path):
            self._tell(f"{path}: left out: not a file, directory or link")
        elif path not in self._done:
            self._done.add(path)
            self._archive.addfile(self._entry(path))

    def add_users(self) -> None:
        """Files without which programs do not know root."""
        for name, contents in USERS.items():
            if f"/{name}" not in self._done:
                entry = tarfile.TarInfo(name)
                entry.size = len(contents)
                self._archive.addfile(entry, io.BytesIO(contents))

    def _file(self, path: str) -> None:
        entry = self._entry(path)
        self._left -= entry.size
        if self._left < 0:
            raise ImageError(f"{path}: with this it is larger than an image may be; see --max-size")
        with open(path, "rb") as stream:
            begin = stream.read(256)
            stream.seek(0)
            self._archive.addfile(entry, stream)
        if begin.startswith(SHEBANG) and (words := begin.removeprefix(SHEBANG).split(b"\n")[0].split()):
            # One that is not here serves no script here either, of which a directory may have some.
            if os.path.exists(words[0]):
                self.add(os.fsdecode(words[0]))
        elif begin.startswith(ELF):
            told = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
            for library in LINKED.findall(told):
                self.add(library)
            if missing := re.findall(r"^\t(\S+) => not found", told, re.MULTILINE):
                raise ImageError(f"{path}: its library {missing[0]} is not on this machine")

    def _way(self, path: str) -> str:
        """Takes the links on the way to a path along: where they lead."""
        way, ahead, links = "/", path.split("/")[::-1], 0
        while ahead:
            part = ahead.pop()
            way = os.path.normpath(os.path.join(way, part))
            if not os.path.islink(way):
                continue
            links += 1
            if links > LINKS_MAX:
                raise ImageError(f"{path}: too many symbolic links")
            target = os.readlink(way)
            if way not in self._done:
                self._done.add(way)
                entry = self._entry(way)
                entry.linkname = target
                self._archive.addfile(entry)
            ahead += target.split("/")[::-1]
            way = "/" if target.startswith("/") else os.path.dirname(way)
        return way

    def _entry(self, path: str) -> tarfile.TarInfo:
        """As it is here, owned by root: who else owns something here is nobody there."""
        entry = self._archive.gettarinfo(path, arcname=path.lstrip("/") or ".")
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        if entry.islnk():
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", os.stat(path).st_size
        entry.pax_headers = attributes_of(path)
        return entry
