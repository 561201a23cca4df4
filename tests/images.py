"""Small images made by hand: layers from members, an OCI layout from layers."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.files import find_program
from tests.conftest import environment

MISSING = [name for name in ("skopeo", "sqfstar", "sqfs2tar", "busybox") if find_program(name) is None]

needs_programs = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

APPLETS = ("sh", "cat", "env", "getfattr", "httpd", "id", "ls", "ping", "sleep", "stat", "touch", "wget")

OWN = 4242
"""A user whom this machine need not have."""


KILLED = """
import os, signal, sys
place, left = sys.argv.pop(1), int(sys.argv.pop(1))
def step(event, arguments):
    global left
    if event in {steps!r} and place in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(step)
"""
STEPS = (
    "open",
    "os.fsync",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.symlink",
    "shutil.rmtree",
    "subprocess.Popen",
    "tempfile.mkdtemp",
)


def killed_at(
    step: int, place: Path, code: str, *arguments: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python code that is killed at so many steps that have to do with files below `place`."""
    argv = [sys.executable, "-c", KILLED.format(steps=STEPS) + code, str(place), str(step), *map(str, arguments)]
    return subprocess.run(argv, env=environment() | variables, capture_output=True, text=True, check=False)


def member(name: str, **fields: Any) -> tarfile.TarInfo:
    """A member of a layer: an empty file, unless its fields say otherwise."""
    made = tarfile.TarInfo(name)
    made.mode = 0o755
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def folder(name: str, **fields: Any) -> tarfile.TarInfo:
    """A directory."""
    return member(name, type=tarfile.DIRTYPE, **fields)


def link(name: str, target: str, *, hard: bool = False) -> tarfile.TarInfo:
    """A symbolic link, or a hard one."""
    return member(name, type=tarfile.LNKTYPE if hard else tarfile.SYMTYPE, linkname=target)


def layer(*members: tarfile.TarInfo | tuple[str, bytes] | tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A layer of these; a file with contents is a pair."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for one in members:
            entry, contents = one if isinstance(one, tuple) else (one, b"")
            info = member(entry) if isinstance(entry, str) else entry
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return raw.getvalue()


def busybox() -> bytes:
    """A layer with a busybox, its users, and a file that only root's group reads and that has a capability."""
    program = find_program("busybox")
    assert program, "needs_programs"
    capability = bytes.fromhex("0100000200200000000000000000000000000000").decode("latin-1")
    own = member("data/own", uid=OWN, gid=OWN, mode=0o640, pax_headers={"SCHILY.xattr.user.note": "kept"})
    capable = member("data/capable", pax_headers={"SCHILY.xattr.security.capability": capability})
    return layer(
        folder("bin"),
        ("bin/busybox", Path(program).read_bytes()),
        *(link(f"bin/{name}", "busybox") for name in APPLETS),
        ("etc/passwd", f"root:x:0:0::/:/bin/sh\nweb:x:{OWN}:{OWN}::/:/bin/sh\n".encode()),
        ("etc/group", f"root:x:0:\nweb:x:{OWN}:\n".encode()),
        folder("data"),
        (own, b"mine\n"),
        capable,
        member("data/zero", type=tarfile.CHRTYPE, devmajor=1, devminor=5, mode=0o666),
        folder("usr/lib"),
        link("lib", "/usr/lib"),
        link("var/run", "/run"),
    )


def layout(
    directory: Path, layers: Sequence[bytes], config: dict[str, Any] | None = None, architecture: str = "amd64"
) -> str:
    """Writes an OCI layout: what skopeo calls it."""
    shutil.rmtree(directory, ignore_errors=True)
    blobs = directory / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(contents: bytes, kind: str) -> dict[str, Any]:
        digits = hashlib.sha256(contents).hexdigest()
        (blobs / digits).write_bytes(contents)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digits}", "size": len(contents)}

    parts = [blob(one, "layer.v1.tar") for one in layers]
    about = {
        "architecture": architecture,
        "os": "linux",
        "config": config or {},
        "rootfs": {"type": "layers", "diff_ids": [part["digest"] for part in parts]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(about).encode(), "config.v1+json"),
        "layers": parts,
    }
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    (directory / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    return f"oci:{directory}"
