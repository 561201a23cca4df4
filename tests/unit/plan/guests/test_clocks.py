"""Clocks of guests run apart where the lab says so, at the rate of two TDFs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dilaton.lab import Lab, LabError
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan

LAB: dict[str, Any] = {
    "name": "x",
    "time": {"drive": "wall", "tdf": "10", "clocks": "apart"},
    "nodes": {"a": {"guest": "x"}, "b": {"guest": "y"}, "c": {"guest": "z"}},
    "guests": {"x": {"tdf": "20"}, "y": {"tdf": "5"}},
    "links": [{"endpoints": "a -- b", "rate": "10Mbit", "delay": "20ms"}, {"endpoints": "b -- c", "delay": "20ms"}],
}


def plan(**time: str) -> Plan:
    return compile_plan(Lab.model_validate(LAB | {"time": LAB["time"] | time}))


def test_a_clock_runs_by_the_labs_tdf_over_the_guests() -> None:
    found = plan()
    assert [guest.clock_rate.ratio for guest in found.guests] == [Fraction(1, 2), Fraction(2), Fraction(1)]


def test_virtual_time_and_all_that_is_in_it_are_the_labs() -> None:
    found, plain = plan(), compile_plan(Lab.model_validate(LAB | {"guests": {}}))
    assert [guest.tdf for guest in found.guests] == [None, None, None]
    assert (found.time, found.wires, found.nodes) == (plain.time, plain.wires, plain.nodes)


@pytest.mark.parametrize(
    ("time", "why"),
    [
        (
            {"clocks": "together"},
            "guests.x.tdf: on the wall drive clocks of different TDFs run apart; write clocks: apart",
        ),
        ({"tdf": "auto"}, "guests.x.tdf: where clocks run apart this is a rate beside the TDF of the lab"),
        ({"tdf": "1/10"}, "guests.x.tdf: 20: a clock runs at most 100 times as fast or as slow as virtual time"),
    ],
)
def test_a_rate_that_nobody_can_say_or_run_at_is_refused(time: dict[str, str], why: str) -> None:
    with pytest.raises(LabError) as error:
        plan(**time)
    assert why in str(error.value)
