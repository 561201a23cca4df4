"""Programs of Debian's that tests use where they are not installed: from their package, unpacked, which installs nothing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dilaton.host.files import find_program
from tests.conftest import ROOT

PLACE = ROOT / "target" / "debian"


def program(name: str, package: str) -> Path:
    """A program that is installed, or that of its package; without either the test is skipped.

    Args:
        name: Of the program.
        package: Debian's that has it.
    """
    if (installed := find_program(name)) is not None:
        return Path(installed)
    unpacked = PLACE / package / "usr" / "bin" / name
    if not unpacked.exists():
        _unpack(package)
    return unpacked


def _unpack(package: str) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PLACE) as place:
        tree = Path(place) / "tree"
        for command in (["apt-get", "download", package], ["sh", "-c", f"dpkg-deb --extract {package}_*.deb tree"]):
            try:
                subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=60)
            except (OSError, subprocess.SubprocessError):
                pytest.skip(f"Debian's package {package} is not installed and cannot be brought")
        shutil.rmtree(PLACE / package, ignore_errors=True)
        tree.rename(PLACE / package)
