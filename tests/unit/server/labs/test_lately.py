"""What was found of late is found once for all who ask; what was not found is looked for anew."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dilaton.lab.errors import LabError
from dilaton.server.labs import lately, worker
from dilaton.server.labs.checking import Checker
from dilaton.server.labs.lately import Lately
from dilaton.service.request import Overrides
from tests.unit.server.serving import LAB


class Finder:
    """Finds what it is told to, once it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_end = asyncio.Event()
        self.fails = False

    async def find(self) -> int:
        self.asked += 1
        number = self.asked
        await self.may_end.wait()
        if self.fails:
            raise ValueError(number)
        return number


def test_who_asks_the_same_meanwhile_and_soon_after_has_what_the_first_one_finds() -> None:
    async def work() -> None:
        found: Lately[int] = Lately()
        finder = Finder()
        first, same, leaver = (asyncio.create_task(found.of("same", finder.find)) for _ in range(3))
        other = asyncio.create_task(found.of("other", finder.find))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        finder.may_end.set()
        assert (await same, await leaver, await other) == (1, 1, 2)
        assert (await found.of("same", finder.find), finder.asked) == (1, 2)

    asyncio.run(work())


def test_what_was_not_found_is_told_to_all_who_waited_and_looked_for_anew() -> None:
    async def work() -> None:
        found: Lately[int] = Lately()
        finder = Finder()
        finder.fails = True
        waiting = [asyncio.create_task(found.of("same", finder.find)) for _ in range(2)]
        finder.may_end.set()
        assert [str(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == ["1", "1"]
        finder.fails = False
        assert await found.of("same", finder.find) == 2

    asyncio.run(work())


def test_what_is_old_or_too_much_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        found: Lately[int] = Lately()
        finder = Finder()
        finder.may_end.set()
        monkeypatch.setattr(lately, "KEPT_MAX", 2)
        assert [await found.of(str(number), finder.find) for number in (1, 2, 3, 4, 1)] == [1, 2, 3, 4, 5]
        assert await found.of("4", finder.find) == 4
        monkeypatch.setattr(lately, "KEPT_HOST_S", -1.0)
        assert await found.of("4", finder.find) == 6

    asyncio.run(work())


def test_a_lab_that_names_no_file_of_the_machine_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bool] = []

    async def answer_of(module: str, asked: bytes, *, sees_host: bool, is_forked: bool) -> dict[str, Any]:
        read.append(sees_host)
        return worker.answer(json.loads(asked))

    async def work() -> None:
        checker = Checker(tmp_path)
        monkeypatch.setattr(checker._forks, "answer_of", answer_of)
        first = await checker.check(LAB, Overrides(), sees_host=False, is_drawn=True)
        assert await checker.check(LAB, Overrides(), sees_host=False, is_drawn=True) is first
        assert len(first.memory_bytes) == len(first.drawing.guests) == 1
        assert read == [False]
        # Another question, or one whose answer may be another by now.
        await checker.check(LAB, Overrides(tdf="2"), sees_host=False, is_drawn=True)
        await checker.check(LAB, Overrides(), sees_host=False, is_drawn=True, machines=1)
        for _ in range(2):
            await checker.check(LAB, Overrides(), sees_host=True, is_drawn=True)
        for _ in range(2):
            with pytest.raises(LabError):
                await checker.check("nodes: {a: {x: 1}}", Overrides(), sees_host=False, is_drawn=True)
        assert read == [False, False, True, True, False, False]

    asyncio.run(work())
