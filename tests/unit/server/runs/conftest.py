"""What tests of a server's runs share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is kept for an account, images among it, is of the test alone, and readable as usual."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    before = os.umask(0o022)
    yield
    os.umask(before)
