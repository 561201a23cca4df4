"""The reproductions of DieCast's figures, in small versions that show the same."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, dilaton
from tests.functional.papers.test_papers_pads15 import rows


def test_dbench_finds_the_same_disk_at_every_tdf_if_cpu_and_disk_are_scaled(tmp_path: Path) -> None:
    """Not scaled, a disk looks as much faster as time is slower.

    With a CPU that is fast enough for most of the time to be the disk's, whatever the host's core does.
    """
    arguments = ["--tdfs", "1,3", "--seconds", "2", "--clients", "2", "--faster", "20"]
    one, three = ([float(cell) for cell in row[1:]] for row in rows("diecast-disk", "--out", str(tmp_path), *arguments))
    assert one[0] == one[1] == one[2] > 0
    neither, cpu, both = three
    # The rest is the host's, whose core may be half as fast in the one run as in the other.
    assert both == pytest.approx(one[2], rel=0.25)
    assert min(neither, cpu) > 1.3 * both
    assert (tmp_path / "figure-2c.svg").is_file()


@pytest.mark.parametrize("placed", ["baseline", "DieCast", "no DieCast"])
@pytest.mark.parametrize("experiment", ["failure", "stress DB"])
def test_isaac_is_a_good_lab_at_the_size_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, experiment: str, placed: str
) -> None:
    """Forty machines; its runs, of minutes, are made by hand (papers/diecast-isaac)."""
    spec = importlib.util.spec_from_file_location("diecast_isaac", ROOT / "papers/diecast-isaac/reproduce.py")
    assert spec and spec.loader
    isaac = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "diecast_isaac", isaac)
    spec.loader.exec_module(isaac)
    chosen = argparse.Namespace(servers=4, clients=28, requests=20, pause=20.0, fail_at=200.0, fail_for=60.0)
    lab = isaac.lab(isaac.Case(experiment, placed), chosen)
    machines = [node for name, node in lab["nodes"].items() if name != "core"]
    assert (len(machines), len({node["guest"] for node in machines})) == (40, 40 if placed == "baseline" else 4)
    (path := tmp_path / "lab.yaml").write_text(json.dumps(lab))
    assert dilaton("check", path).returncode == 0
