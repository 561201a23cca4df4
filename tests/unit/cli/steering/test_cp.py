"""What a node sends is put where it was asked to go, whatever it sends."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from dilaton.cli.steering.cp import _packing
from dilaton.cli.steering.unpack import unpack


@pytest.mark.parametrize("name", ["wanted", r"a\tb [c]* 'd'", "-x"])
def test_a_copy_has_what_was_asked_for_and_nothing_else(name: str, tmp_path: Path) -> None:
    sent, here = tmp_path / "sent", tmp_path / "here"
    here.mkdir()
    (sent / name).mkdir(parents=True)
    (sent / name / "inside").write_text("1")
    (sent / ".bashrc").write_text("2")
    packing = _packing(str(sent / name), name)
    archive = subprocess.run([*packing, ".bashrc"], stdout=subprocess.PIPE, check=True).stdout
    assert unpack(io.BytesIO(archive), str(here), name).refused == 1
    assert sorted(str(path.relative_to(here)) for path in here.rglob("*")) == [name, f"{name}/inside"]
