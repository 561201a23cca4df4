"""The bell rings once for what happens at about the same time, and at once where it has not rung just before."""

from __future__ import annotations

import asyncio

import pytest

from dilaton.server import bell
from dilaton.server.bell import Bell, rung
from tests.conftest import PATIENCE_HOST_S

TURNS = 10


async def turns() -> None:
    """Lets the loop do what it has to do by now."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def test_it_rings_at_once_and_then_once_for_all_that_comes_within_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        hung = Bell()
        hung.hang()
        first = hung.waiting()
        hung.ring()
        await turns()
        assert first.is_set()
        second = hung.waiting()
        for _ in range(3):
            hung.ring()
        assert await rung(second, PATIENCE_HOST_S)
        third = hung.waiting()
        await turns()
        assert not third.is_set(), "three commits, one ring"
        monkeypatch.setattr(bell, "PAUSE_HOST_S", 1e6)
        hung.ring()
        await turns()
        assert not third.is_set(), "it has rung just before"

    asyncio.run(work())
