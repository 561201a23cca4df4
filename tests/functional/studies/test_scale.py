"""`dilaton scale`: many machines on few guests, a prediction, and a lab that is ready to run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.conftest import dilaton

SERVICE = """
name: service
# What this says is kept.
time: {tdf: auto, auto: {max: 30}}
topology: {generate: star, leaves: 6, rate: 1Gbit, delay: 1ms}
defaults: {memory: 32MB}
nodes: {n0: {kind: switch}, n3: {cpu: 0.5}}
stop_after: 2s
run:
  - {on: n1, exec: sh -c "while true; do true; done"}
"""


def write(directory: Path) -> Path:
    path = directory / "service.yaml"
    path.write_text(SERVICE)
    return path


def test_a_scaled_lab_runs_and_takes_no_more_than_is_said(tmp_path: Path) -> None:
    path = write(tmp_path)
    said = dilaton("scale", path, "--machines", "6", "--onto", "2", "--pilot", "500ms")
    assert said.returncode == 0
    # Lines are as wide as the terminal.
    words = " ".join(said.stdout.split())
    text = (tmp_path / "service-onto-2.yaml").read_text()
    assert "# What this says is kept." in text and "n3: {cpu: 0.5}" in text and "cpu: 1" in text
    assert re.search(r"CPU shares [\d.]+%, [\d.]+% of a guest each", words)
    assert re.search(r"host time [\d.]+ s for 2 virtual s, as the pilot went; at most [\d.]+ s", words)
    assert "6 onto 2 guests" in words and "0.192 GB in sum" in words
    plan = json.loads(dilaton("plan", tmp_path / "service-onto-2.yaml").stdout)
    assert len(plan["guests"]) == 2


def test_a_lab_with_other_machines_than_said_is_refused(tmp_path: Path) -> None:
    said = dilaton("scale", write(tmp_path), "--machines", "40", "--onto", "2")
    assert (said.returncode, "--machines: 40: the lab has 6, its hosts" in said.stderr) == (2, True)


def test_the_scaled_lab_goes_beside_the_lab_and_never_over_it(tmp_path: Path) -> None:
    path = write(tmp_path)
    for out in (path, tmp_path / "elsewhere" / "x.yaml"):
        said = dilaton("scale", path, "--onto", "2", "--pilot", "0s", "--out", out)
        assert (said.returncode, "must be another file beside" in said.stderr) == (2, True)
    assert path.read_text() == SERVICE
