"""On the event drive the same seed gives the same run, whatever else the host does; another seed gives another one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Outcome, RunLab

LABS = [ROOT / "examples" / name / "lab.yaml" for name in ("lossy-bulk", "many-pings", "asyncio-echo", "five-kernels")]


def left(outcome: Outcome) -> dict[str, bytes]:
    """What a run left that is to be the same: its events, what its programs wrote, samples and captures."""
    written = (file for place in ("nodes", "measure", "captures") for file in (outcome.path / place).rglob("*"))
    files = [outcome.path / "events.jsonl", *written]
    return {str(file.relative_to(outcome.path)): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.parent.name)
def test_every_byte_is_the_same_also_beside_other_load(
    run_lab: RunLab, run_example: Callable[[Path], Outcome], lab: Path
) -> None:
    alone = left(run_example(lab))
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        loaded = left(run_lab(lab))
    finally:
        loop.kill()
        loop.wait()
    assert loaded == alone


def test_captures_and_samples_are_among_what_is_the_same(run_example: Callable[[Path], Outcome]) -> None:
    assert {"captures/a.eth0.pcapng", "measure/guest0/tcp.csv"} <= left(run_example(LABS[0])).keys()


def test_another_seed_gives_another_run(run_lab: RunLab, run_example: Callable[[Path], Outcome]) -> None:
    text = LABS[0].read_text()
    assert "seed: 1\n" in text
    assert left(run_lab(text.replace("seed: 1\n", "seed: 2\n"))) != left(run_example(LABS[0]))
