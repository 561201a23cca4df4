"""Every example runs and meets its own expectations; those that take minutes do so in a smaller version."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import ROOT, Outcome, RunLab, dilaton

EXAMPLES = sorted((ROOT / "examples").glob("*/lab.yaml"))

SMALLER = {"dumbbell": 20, "hundred-gig": 100}
"""By how much the rates of an example are divided here. Its TDF stays, so that a slow host has CPU over."""


def smaller(text: str, divisor: int) -> str:
    """A lab with all its rates, those that it expects included, divided."""

    def divided(match: re.Match[str]) -> str:
        return f"{Decimal(match['number']) / divisor:f}{match['unit']}"

    text, rates = re.subn(r"\b(?P<number>[0-9.]+)(?P<unit>[kMGT]bit\b)", divided, text)
    assert rates >= 2, "the link's rate and an expectation were found"
    return text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_meets_its_own_expectations(
    run_lab: RunLab, run_example: Callable[[Path], Outcome], built_examples: None, path: Path
) -> None:
    divisor = SMALLER.get(path.parent.name)
    outcome = run_lab(smaller(path.read_text(), divisor)) if divisor else run_example(path)
    assert outcome.status == 0
    assert outcome.record["checks"], "an example says what it expects"
    assert all(check["passed"] for check in outcome.record["checks"])
    # As at the end of its run, which draws none here.
    if any(outcome.path.glob("measure/*/*.csv")) or any(outcome.path.glob("captures/*")):
        assert dilaton("report", outcome.path).returncode == 0
        assert "<svg" in (outcome.path / "report.html").read_text()
