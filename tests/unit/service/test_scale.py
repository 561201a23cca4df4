"""What a pilot says of the run that it is the beginning of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dilaton.lab.loader import loads
from dilaton.service.errors import RequestError
from dilaton.service.studies.scale import Pilot, ScaleRequest, pace_of, pilot_duration, run_pilot, scale


def test_the_pace_is_that_of_the_second_half_without_what_comes_after_the_end() -> None:
    assert pace_of([(0.5, 4), (1, 5), (2, 8), (2, 20)], 2) == 3
    # Between rows it is taken to be even.
    assert pace_of([(1.5, 3), (2, 4)], 2) == 2


def test_a_run_takes_what_its_beginning_took_and_the_rest_at_its_pace() -> None:
    pilot = Pilot(virtual_s=2, host_s=10, boot_host_s=1, pace=3)
    assert pilot.host_s_of(12) == 1 + 10 + 30
    assert pilot.host_s_of(1) == 11


def test_a_pilot_that_is_too_short_for_the_lab_says_what_to_give(tmp_path: Path) -> None:
    late = "name: x\nnodes: {a: {}}\nrun: [{on: a, exec: 'true', start: 5s}]\nstop_after: 10s\n"
    (tmp_path / "lab.yaml").write_text(late)
    scaled = scale(ScaleRequest(lab=tmp_path, onto=1, pilot="1s"))
    with pytest.raises(RequestError, match=r"(?s)^the pilot did not run: .*lab-onto-1.yaml:.*\ngive a longer pilot"):
        asyncio.run(run_pilot(scaled))


@pytest.mark.parametrize(
    ("start", "duration_s", "expected_s"), [("0s", 100, 10), ("8s", 100, 16), ("70s", 100, 100), ("8s", 0, 0)]
)
def test_a_pilot_is_a_tenth_or_twice_as_long_as_until_the_last_beginning(
    start: str, duration_s: int, expected_s: int
) -> None:
    lab = loads(f"name: x\nnodes: {{a: {{}}}}\nrun: [{{on: a, exec: 'true', start: {start}}}]\n", "lab.yaml")
    assert pilot_duration(lab, duration_s * 10**9) == expected_s * 10**9
