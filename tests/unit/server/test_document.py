"""What docs/server.md tells administrators to write is read without a mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dilaton.server.access.policy import PolicyFile
from dilaton.server.settings import ServerFile
from dilaton.server.written import Written, read_written
from tests.conftest import ROOT

BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = BLOCK.findall((ROOT / "docs" / "server.md").read_text())


@pytest.mark.parametrize("text", FILES)
def test_every_file_in_it_is_a_good_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    kind: type[Written] = ServerFile if text.startswith("listen:") else PolicyFile
    assert read_written(kind, path).model_fields_set


def test_both_kinds_of_files_are_in_it() -> None:
    assert {text.startswith("listen:") for text in FILES} == {True, False}
