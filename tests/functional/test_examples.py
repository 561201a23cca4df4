"""Every example runs and meets its own expectations; those that take minutes do so in a smaller version."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from tests.conftest import ROOT, RunLab

EXAMPLES = sorted((ROOT / "examples").glob("*/lab.yaml"))

SMALLER = {"dumbbell": 10, "hundred-gig": 10}
"""By how much the rates of an example are divided here, and its TDF by half of that: the host has half as much to do in a
second as in the full one, which a slow one can, and for fewer seconds."""


def smaller(text: str, divisor: int) -> str:
    """A lab with all its rates, those that it expects included, divided, and its TDF by half of that."""

    def divided(by: Decimal) -> Callable[[re.Match[str]], str]:
        return lambda match: f"{match['before']}{Decimal(match['number']) / by:f}{match['after']}"

    text, rates = re.subn(r"(?P<before>\b)(?P<number>[0-9.]+)(?P<after>[kMGT]bit\b)", divided(Decimal(divisor)), text)
    text, tdfs = re.subn(r"(?P<before>\btdf: )(?P<number>[0-9.]+)(?P<after>\b)", divided(Decimal(divisor) / 2), text)
    assert rates >= 2 and tdfs == 1, "the link's rate, an expectation and the TDF were found"
    return text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_meets_its_own_expectations(run_lab: RunLab, path: Path) -> None:
    divisor = SMALLER.get(path.parent.name)
    outcome = run_lab(smaller(path.read_text(), divisor) if divisor else path)
    assert outcome.status == 0
    assert outcome.record["checks"], "an example says what it expects"
    assert all(check["passed"] for check in outcome.record["checks"])
