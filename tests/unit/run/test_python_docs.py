"""docs/python.md names every column that a table has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dilaton
from tests.unit.measure import made

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs/python.md").read_text()
OF_RX = {"timeFirstRxPacket", "timeLastRxPacket", "rxBytes", "rxPackets"}


@pytest.mark.parametrize("table", ["interfaces", "tcp", "nodes", "outputs", "flows", "packets"])
def test_every_column_is_documented(tmp_path: Path, table: str) -> None:
    run = dilaton.load(made.run_dir(tmp_path))
    frame = run.packets("a:eth0") if table == "packets" else getattr(run, table)
    named = set(re.findall(r"`(\w+)`", DOCUMENT)) | OF_RX
    assert set(frame.columns) <= named
