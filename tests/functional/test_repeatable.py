"""On the event drive the same seed gives the same run, whatever else the host does; another seed gives another one."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Outcome, RunLab

LABS = [ROOT / "examples" / name for name in ("lossy-bulk", "many-pings", "asyncio-echo", "five-kernels")]


def left(outcome: Outcome) -> dict[str, bytes]:
    """What a run left that is to be the same: its events, what its programs wrote, samples and captures."""
    written = (file for place in ("nodes", "measure", "captures") for file in (outcome.path / place).rglob("*"))
    files = [outcome.path / "events.jsonl", *written]
    return {str(file.relative_to(outcome.path)): file.read_bytes() for file in files if file.is_file()}


@pytest.fixture(scope="module")
def first(run_lab_once: RunLab) -> Callable[[Path], dict[str, bytes]]:
    """What the first run of a lab left, which all others are compared with."""
    return functools.cache(lambda lab: left(run_lab_once(lab)))


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_byte_is_the_same_also_beside_other_load(
    run_lab: RunLab, first: Callable[[Path], dict[str, bytes]], lab: Path
) -> None:
    alone = first(lab)
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        loaded = left(run_lab(lab))
    finally:
        loop.kill()
        loop.wait()
    assert loaded == alone


def test_captures_and_samples_are_among_what_is_the_same(first: Callable[[Path], dict[str, bytes]]) -> None:
    assert {"captures/a.eth0.pcapng", "measure/guest0/tcp.csv"} <= first(LABS[0]).keys()


def test_another_seed_gives_another_run(run_lab: RunLab, first: Callable[[Path], dict[str, bytes]]) -> None:
    text = (LABS[0] / "lab.yaml").read_text()
    assert "seed: 1\n" in text
    assert left(run_lab(text.replace("seed: 1\n", "seed: 2\n"))) != first(LABS[0])
