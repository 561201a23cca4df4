"""The guests of a run as one, seen while they go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dilaton.host.guests import Guests
from dilaton.plan.model import Plan

END_NS = 10


class Guest:
    """A guest whose clock goes on by a nanosecond with each look at it, up to its end."""

    def __init__(self, virtual_ns: int) -> None:
        self._virtual_ns = virtual_ns
        self.page = self

    def virtual_ns(self) -> int:
        self._virtual_ns = min(self._virtual_ns + 1, END_NS)
        return self._virtual_ns

    def is_held(self, host_ns: int) -> bool:
        return self.virtual_ns() == END_NS


@pytest.mark.parametrize("begin_ns", range(END_NS))
def test_a_clock_is_seen_to_stand_where_it_stands_and_nowhere_else(begin_ns: int) -> None:
    planned: Any = SimpleNamespace(guests=[SimpleNamespace(tdf=None)])
    guests = Guests(cast(Plan, planned), [cast(Any, Guest(begin_ns))], None, cast(Any, None))
    now_ns, is_held = guests.look()
    assert is_held == (now_ns == END_NS)
