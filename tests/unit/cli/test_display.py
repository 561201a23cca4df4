"""What is shown of a run while it goes."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from dilaton.cli.runs.display import Display
from dilaton.host.errors import GuestError
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.run.observer import RunClock

PLAN = Path(__file__).parents[1] / "plan" / "golden" / "plan.json"


def test_a_clock_is_read_from_its_release_until_it_has_stopped(tmp_path: Path) -> None:
    display = Display(Plan.model_validate_json(PLAN.read_text()), tmp_path)
    display.state("ready")
    assert "ready" in display._line().plain
    display.released(lambda: RunClock(1_500_000_000, 3_000_000_000, None, 0))
    assert "virtual    1.500 s  host    3.00 s  speed 0.5x" in display._line().plain
    display.stopped()
    assert "virtual" not in display._line().plain


def test_how_long_a_run_will_still_take_is_shown_where_its_end_is_known(tmp_path: Path) -> None:
    for end_ns, shown in ((11_500_000_000, True), (None, False), (1_000_000_000, False)):
        plan = Plan.model_validate_json(PLAN.read_text()).model_copy(update={"stop_after_ns": end_ns})
        display = Display(plan, tmp_path)
        display.released(lambda: RunClock(1_500_000_000, 3_000_000_000, None, 0))
        assert ("about 20 s left" in display._line().plain) == shown


def test_how_long_a_run_will_still_take_is_told_from_the_words_of_its_programs(tmp_path: Path) -> None:
    for exec_, shown in (("ping -c 100 -i 0.1 b", "about 17 s left"), ("sh -c work", ""), ("sleep 1", "")):
        text = f"{{name: x, nodes: {{a: , b: }}, links: [a -- b], run: [{{on: a, exec: {exec_}}}]}}"
        lab = loads(text, "lab.yaml")
        display = Display(compile_plan(lab), tmp_path)
        display.released(lambda: RunClock(1_500_000_000, 3_000_000_000, None, 0))
        line = display._line().plain
        assert shown in line and (shown or "left" not in line)


@pytest.mark.parametrize("error", [GuestError("the clock page stays half-written"), ValueError("mmap closed")])
def test_a_clock_that_has_died_while_it_is_read_shows_nothing(error: Exception, tmp_path: Path) -> None:
    display = Display(Plan.model_validate_json(PLAN.read_text()), tmp_path)
    display.state("running")
    display.released(Mock(side_effect=error))
    assert display._line().plain.endswith("running ")
