"""`dilaton cp`: files from this machine to a node of a run that goes on, and back.

Where things go follows cp(1) and `docker cp`: into a directory that is there, else to that name; `DIR/.` is what is in
a directory. They pass as an archive from tar to tar, one here and one in the node, which is a session. Owners are not
kept: files belong to root in the node, and to whoever copies here.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO

from dilaton.cli.errors import BadInputError, FailedError, failing, refusing
from dilaton.run.control import ControlError, find
from dilaton.run.session_client import attend, capture


@refusing(ControlError)
@failing(OSError)
def copy(run: str, source: str, target: str) -> None:
    """Copies a file or directory; one of the two is NODE:PATH.

    Raises:
        BadInputError: they are not, or there is no such run or node.
        FailedError: it cannot be copied.
    """
    if "-" in (source, target):
        raise BadInputError("-: not a file; write ./- for one, or dilaton shell RUN NODE cat PATH to read it here")
    run_dir = find(run)
    match _place(source), _place(target):
        case (None, from_here), (str(node), path):
            _send(run_dir, from_here, node, path)
        case (str(node), path), (None, to_here):
            _fetch(run_dir, node, path, to_here)
        case _:
            raise BadInputError(f"{source} {target}: one of them is NODE:PATH, the other a path of this machine")


def _place(text: str) -> tuple[str | None, str]:
    """Node and path; of this machine there is no node. Where its path has a colon, a slash is written before that."""
    before, colon, after = text.partition(":")
    return (before, after or ".") if colon and "/" not in before else (None, text)


def _send(run_dir: Path, source: str, node: str, target: str) -> None:
    if not os.path.lexists(source):
        raise FailedError(f"{source}: No such file or directory")
    is_directory = capture(run_dir, node, ["test", "-d", target]).returncode == 0
    into, name = destination(source, target, is_directory)
    if name == "." and (made := capture(run_dir, node, ["mkdir", "-p", "--", into])).returncode:
        raise FailedError(f"{node}: {made.stderr.strip()}")
    with (
        tempfile.TemporaryFile() as errors,
        open(os.devnull, "wb") as nothing,
        subprocess.Popen(_packing(source, name), stdout=subprocess.PIPE) as packer,
    ):
        assert packer.stdout is not None
        files = (packer.stdout.fileno(), nothing.fileno(), errors.fileno())
        unpacked = attend(run_dir, node, _unpacking(into, name), *files)
        packer.stdout.close()
        _check(node, unpacked.status, errors)
    _check("here", packer.returncode, None)


def _fetch(run_dir: Path, node: str, source: str, target: str) -> None:
    into, name = destination(source, target, os.path.isdir(target))
    # Before anything is made here.
    if capture(run_dir, node, ["test", "-e", source]).returncode:
        raise FailedError(f"{node}:{source}: No such file or directory")
    if name == ".":
        os.makedirs(into, exist_ok=True)
    unpacking = _unpacking(into, name)
    with tempfile.TemporaryFile() as errors, subprocess.Popen(unpacking, stdin=subprocess.PIPE) as unpacker:
        assert unpacker.stdin is not None
        packed = attend(run_dir, node, _packing(source, name), None, unpacker.stdin.fileno(), errors.fileno())
        unpacker.stdin.close()
        unpacker.wait()
        _check(node, packed.status, errors)
    _check("here", unpacker.returncode, None)


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
    """A tar that unpacks what has that name and nothing else, whatever a node sends."""
    as_it_is = ["--no-unquote", "--no-wildcards"]
    return ["tar", "-x", "--no-same-owner", *as_it_is, "-f", "-", "-C", into, "--", name]


def _check(where: str, status: int, errors: BinaryIO | None) -> None:
    if not status:
        return
    if errors is None:
        raise FailedError(f"{where}: tar ended with status {status}")
    errors.seek(0)
    raise FailedError(f"{where}: {errors.read().decode(errors='replace').strip() or f'tar ended with status {status}'}")
