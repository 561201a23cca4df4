"""A tunnel into a run ends with its session or its permission, and leaves nothing, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from dilaton.run.control.errors import ControlError
from dilaton.server.runs import tunnels
from dilaton.server.runs.tunnels import Tunnel, Tunnels
from dilaton.service.vpn.configuration import Way
from dilaton.service.vpn.gateway import Gateway

WAY = Way("gate", (), (IPv4Address("100.64.0.9"),))


class Ends:
    """What is told of the end of tunnels, and whether what they had is closed."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.is_closed = False

    async def tell(self, tunnel: Tunnel, wrong: str) -> None:
        self.told.append((tunnel.identity, wrong))

    def close(self) -> None:
        self.is_closed = True


def begun(all_of: Tunnels, ends: Ends, allowed: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Tunnel]:
    undo = contextlib.ExitStack()
    undo.callback(ends.close)
    return all_of.begin("r", "ann", Path("/none"), Gateway(WAY), 51820, allowed, ends.tell, undo)


async def settled(ends: Ends) -> None:
    while not ends.is_closed:
        await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_it_ends_with_its_permission_or_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def carried(_: Path, __: Gateway, there: asyncio.Future[None], allowed: Coroutine[Any, Any, Any]) -> str:
        there.set_result(None)
        await allowed
        return "no device"

    async def work() -> None:
        monkeypatch.setattr(tunnels, "_carried", carried)
        all_of = Tunnels()
        allowed = asyncio.Event()
        first, second = Ends(), Ends()
        one = await begun(all_of, first, allowed.wait())
        other = await begun(all_of, second, asyncio.Event().wait())
        assert all_of.of("r", "ann") == [one, other] and all_of.of("r", "ben") == all_of.of("x", "ann") == []
        allowed.set()
        await settled(first)
        assert first.told == [(one.identity, "no device")] and all_of.of("r", "ann") == [other]
        await all_of.close()
        assert second.is_closed and second.told == [(other.identity, "")] and all_of.of("r", "ann") == []

    asyncio.run(work())


def test_where_the_run_refuses_nothing_is_left_and_who_asked_is_told() -> None:
    async def work() -> None:
        all_of, ends = Tunnels(), Ends()
        with pytest.raises(ControlError):
            await begun(all_of, ends, asyncio.Event().wait())
        assert ends.is_closed and ends.told == [] and all_of.of("r", "ann") == []

    asyncio.run(work())


def test_a_tunnel_that_ends_by_itself_while_all_are_ended_keeps_none_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def carried(_: Path, __: Gateway, there: asyncio.Future[None], allowed: Coroutine[Any, Any, Any]) -> str:
        there.set_result(None)
        await over.wait()
        return ""

    async def work() -> None:
        monkeypatch.setattr(tunnels, "_carried", carried)
        all_of, first, second = Tunnels(), Ends(), Ends()
        await begun(all_of, first, asyncio.Event().wait())
        await begun(all_of, second, asyncio.Event().wait())
        over.set()
        await all_of.close()
        assert first.is_closed and second.is_closed and all_of.of("r", "ann") == []

    asyncio.run(work())


def test_who_asked_hears_of_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    async def carried(*_: object) -> str:
        raise ZeroDivisionError

    async def work() -> None:
        monkeypatch.setattr(tunnels, "_carried", carried)
        all_of, ends = Tunnels(), Ends()
        with pytest.raises(ZeroDivisionError):
            await begun(all_of, ends, asyncio.Event().wait())
        assert ends.is_closed and ends.told == [] and all_of.of("r", "ann") == []

    asyncio.run(work())
