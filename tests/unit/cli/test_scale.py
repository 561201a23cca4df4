"""What a pilot says of the run that it is the beginning of."""

from __future__ import annotations

from dilaton.cli.scale import Pilot, pace_of


def test_the_pace_is_that_of_the_second_half_without_what_comes_after_the_end() -> None:
    assert pace_of([(0.5, 4), (1, 5), (2, 8), (2, 20)], 2) == 3
    # Between rows it is taken to be even.
    assert pace_of([(1.5, 3), (2, 4)], 2) == 2


def test_a_run_takes_what_its_beginning_took_and_the_rest_at_its_pace() -> None:
    pilot = Pilot(virtual_s=2, host_s=10, boot_host_s=1, pace=3)
    assert pilot.host_s_of(12) == 1 + 10 + 30
    assert pilot.host_s_of(1) == 11
