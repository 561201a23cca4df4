"""`dilaton cp`: files from this machine to a node of a run that goes on, and back.

Where things go follows cp(1) and `docker cp`: into a directory that is there, else to that name; `DIR/.` is what is in
a directory. They pass as an archive, which the node's tar packs or unpacks in a session. Here, tar packs what the user
has, and `unpack.py` unpacks what a node says that it has. Owners are not kept: files belong to root in the node, and to
whoever copies here.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from dilaton.cli.errors import BadInputError, FailedError, failing, refusing
from dilaton.cli.steering.unpack import Unpacked, unpack
from dilaton.run.control.errors import ControlError
from dilaton.run.control.session_client import Reached, attend, capture, reached
from dilaton.service.catalogue import find


def copy(run: str, source: str, target: str, *, preserve: bool = False) -> None:
    """Copies a file or directory; one of the two is NODE:PATH.

    Args:
        run: The run.
        source: From where.
        target: To where.
        preserve: Of what comes from a node, whether to keep set-id and sticky bits, pipes and any symbolic link, too.

    Raises:
        BadInputError: they are not, or there is no such run or node.
        FailedError: it cannot be copied.
    """
    copy_of(lambda: reached(find(run)), source, target, preserve=preserve)


@refusing(ControlError)
@failing(OSError)
def copy_of(run: Callable[[], Reached], source: str, target: str, *, preserve: bool) -> None:
    """As `copy`, of whatever run, which is looked for once it is known what is wanted."""
    if "-" in (source, target):
        raise BadInputError("-: not a file; write ./- for one, or dilaton shell RUN NODE cat PATH to read it here")
    match _place(source), _place(target):
        case (None, from_here), (str(node), path):
            _send(run(), from_here, node, path)
        case (str(node), path), (None, to_here):
            _fetch(run(), node, path, to_here, preserve)
        case _:
            raise BadInputError(f"{source} {target}: one of them is NODE:PATH, the other a path of this machine")


def _place(text: str) -> tuple[str | None, str]:
    """Node and path; of this machine there is no node. Where its path has a colon, a slash is written before that."""
    before, colon, after = text.partition(":")
    return (before, after or ".") if colon and "/" not in before else (None, text)


def _send(run: Reached, source: str, node: str, target: str) -> None:
    if not os.path.lexists(source):
        raise FailedError(f"{source}: No such file or directory")
    is_directory = capture(run, node, ["test", "-d", target]).returncode == 0
    into, name = destination(source, target, is_directory)
    if name == "." and (made := capture(run, node, ["mkdir", "-p", "--", into])).returncode:
        raise FailedError(f"{node}: {made.stderr.strip()}")
    with (
        tempfile.TemporaryFile() as errors,
        open(os.devnull, "wb") as nothing,
        subprocess.Popen(_packing(source, name), stdout=subprocess.PIPE) as packer,
    ):
        assert packer.stdout is not None
        files = (packer.stdout.fileno(), nothing.fileno(), errors.fileno())
        unpacked = attend(run, node, _unpacking(into, name), *files)
        packer.stdout.close()
        _check(node, unpacked.status, errors)
    _check("here", packer.returncode, None)


def _fetch(run: Reached, node: str, source: str, target: str, preserve: bool) -> None:
    into, name = destination(source, target, os.path.isdir(target))
    # Before anything is made here.
    if capture(run, node, ["test", "-e", source]).returncode:
        raise FailedError(f"{node}:{source}: No such file or directory")
    if name == ".":
        os.makedirs(into, exist_ok=True)
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as errors, ThreadPoolExecutor(1) as beside:
        with open(writing, "wb") as pipe:
            unpacking = beside.submit(_unpack, reading, into, name, preserve)
            packed = attend(run, node, _packing(source, name), None, pipe.fileno(), errors.fileno())
        try:
            unpacked = unpacking.result()
        except tarfile.TarError as error:
            _check(node, packed.status, errors)
            raise FailedError(f"{node}: what it sends is not unpacked to its end: {error}") from error
        if unpacked.refused:
            raise FailedError(_refusals(node, unpacked, preserve))
        _check(node, packed.status, errors)


def _unpack(reading: int, into: str, name: str, preserve: bool) -> Unpacked:
    """Unpacks what comes through a pipe; once that is closed here, the node's tar notices."""
    with open(reading, "rb") as pipe:
        unpacked = unpack(pipe, into, name, preserve=preserve)
        while pipe.read(1 << 16):
            pass  # tar fills its last block
        return unpacked


def _refusals(node: str, unpacked: Unpacked, preserve: bool) -> str:
    """What of a copy was refused, a line each, and what was not."""
    lines = [f"{node}:{reason}" for reason in unpacked.reasons]
    if unpacked.refused > len(lines):
        lines.append(f"{node}: and {unpacked.refused - len(lines)} more")
    hint = "" if preserve else "; --preserve takes pipes and any symbolic link too, and set-id bits"
    return "\n".join([*lines, f"{node}: {unpacked.refused} not copied, {unpacked.made} copied{hint}"])


def destination(source: str, target: str, into_directory: bool) -> tuple[str, str]:
    """The directory into which something goes, and its name there; `.`: what is in the source, not itself.

    Args:
        source: What is copied.
        target: Where, as it was written.
        into_directory: Whether that is a directory that is there.

    Raises:
        FailedError: the target says that it is a directory, and it is not there.
    """
    if posixpath.basename(source) in (".", "..") or not source.strip("/"):
        return target, "."
    if into_directory:
        return target, posixpath.basename(source.rstrip("/"))
    if target.endswith("/"):
        raise FailedError(f"{target}: no such directory")
    parent, name = posixpath.split(target)
    return parent or ".", name


def _packing(source: str, name: str) -> list[str]:
    """A tar that packs a source under another name."""
    archive = ["tar", "-c", "--no-unquote", "-f", "-"]
    if name == ".":
        return [*archive, "-C", source, "."]
    parent, base = posixpath.split(source.rstrip("/"))
    # Of names and of hard links, not of what symbolic links say.
    pattern, replacement = re.sub(r"([\\.*^$\[\]|])", r"\\\1", base), re.sub(r"([\\&|])", r"\\\1", name)
    directory = parent or ("/" if source.startswith("/") else ".")
    return [*archive, f"--transform=flags=rh;s|^{pattern}|{replacement}|", "-C", directory, "--", base]


def _unpacking(into: str, name: str) -> list[str]:
    """A tar that unpacks in a node what has that name."""
    as_it_is = ["--no-unquote", "--no-wildcards"]
    return ["tar", "-x", "--no-same-owner", *as_it_is, "-f", "-", "-C", into, "--", name]


def _check(where: str, status: int, errors: BinaryIO | None) -> None:
    if not status:
        return
    if errors is None:
        raise FailedError(f"{where}: tar ended with status {status}")
    errors.seek(0)
    raise FailedError(f"{where}: {errors.read().decode(errors='replace').strip() or f'tar ended with status {status}'}")
