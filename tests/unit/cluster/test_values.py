"""Values of the port survive their way to another machine, and what is none is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from dilaton.cluster.values import from_json, to_json
from dilaton.host.counters import Counters, Lack, Late, Shares, Traffic, Waits, Wires
from dilaton.host.orders import Orders

VALUES = (
    Counters(virtual_ns=5, timers=Late([1, 2], 3), shares=Shares(1, 2, 3, 4), lacks=Lack.KVM | Lack.AMX),
    Counters(timers=Late([0], 0), frames=Late([0], 0)),
    Orders(Fraction(1, 3), "event", 7, Fraction(5, 2)),
    Orders(None, "work"),
    Wires([Traffic(0, 1, sent=4)], [Waits(1)]),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_is_the_same_on_the_other_side(value: Any) -> None:
    there = json.loads(json.dumps(to_json(value)))
    assert to_json(from_json(type(value), there)) == to_json(value)


@pytest.mark.parametrize(
    "wrong",
    [{}, [], None, {"tdf": [1, 0]}, {"tdf": "1"}, {"drive": "sun"}, {"end_ns": 1.5}, {"end_ns": True}, {"more": 1}],
    ids=str,
)
def test_what_is_no_value_is_refused(wrong: Any) -> None:
    orders = to_json(Orders(Fraction(1), "event", 7))
    with pytest.raises(ValueError, match="not a"):
        from_json(Orders, {**orders, **wrong} if wrong else wrong)
