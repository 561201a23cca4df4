"""What the tests of this folder share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every user can write and every jail shows; pytest's own are neither."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="dilaton-test-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)
