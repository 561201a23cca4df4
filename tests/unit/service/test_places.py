"""Where runs of a sweep go: to whoever has the room, in their order, and to no host that is gone."""

from __future__ import annotations

import asyncio
import contextlib
import math

import pytest

from dilaton.service.studies.places import ENDLESS, HERE, NoPlaceError, Places, Room
from tests.unit.measure.made import plan

GB = 10**9
SMALL, LARGE = Room(2, 8 * GB), Room(4, 16 * GB)


class Asked:
    """Runs that ask for places, each in a task, and where they are."""

    def __init__(self, places: Places) -> None:
        self.places, self.at = places, list[str | None]()
        self._ends, self._tasks = list[asyncio.Event](), list[asyncio.Task[None]]()

    async def ask(self, *wanted: Room, count: int = 1) -> list[str | None]:
        for each in wanted:
            number = len(self.at)
            self.at.append(None)
            self._ends.append(asyncio.Event())
            self._tasks.append(asyncio.create_task(self._stay(number, each, count)))
        return await self.settled()

    async def end(self, number: int) -> list[str | None]:
        self._ends[number].set()
        await self._tasks[number]
        return await self.settled()

    async def settled(self) -> list[str | None]:
        for _ in range(20):
            await asyncio.sleep(0)
        return self.at

    async def _stay(self, number: int, wanted: Room, count: int) -> None:
        try:
            async with self.places.place(wanted, count) as names:
                self.at[number] = " ".join(names)
                await self._ends[number].wait()
        except NoPlaceError as error:
            self.at[number] = str(error)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def asked(rooms: dict[str, Room], runs_max: float = math.inf):  # type: ignore[no-untyped-def]
    made = Asked(Places(rooms, runs_max))
    try:
        yield made
    finally:
        await made.close()


def test_runs_go_where_most_is_free_and_wait_when_nothing_is() -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL, "large": LARGE}) as runs:
            run = Room(1, GB)
            found = await runs.ask(*[run] * 7)
            assert found[:6].count("large") == 4 and found[:6].count("small") == 2
            assert found[:2] == ["large", "large"]
            assert found[6] is None
            small = found.index("small")
            assert (await runs.end(small))[6] == "small"

    asyncio.run(scenario())


def test_memory_counts_as_cores_do() -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL, "large": LARGE}) as runs:
            assert await runs.ask(Room(1, 12 * GB), Room(1, 8 * GB), Room(1, GB)) == ["large", "small", "large"]

    asyncio.run(scenario())


def test_who_came_first_is_not_passed_by_who_needs_less() -> None:
    async def scenario() -> None:
        async with asked({"large": LARGE}) as runs:
            assert await runs.ask(Room(3, GB), Room(4, GB), Room(1, GB)) == ["large", None, None]
            assert await runs.end(0) == ["large", "large", None]
            assert await runs.end(1) == ["large", "large", "large"]

    asyncio.run(scenario())


def test_a_run_with_more_guests_than_a_host_has_cores_has_it_alone() -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL}) as runs:
            assert await runs.ask(Room(9, GB), Room(1, GB)) == ["small", None]

    asyncio.run(scenario())


def test_on_this_machine_the_number_of_runs_is_the_bound() -> None:
    async def scenario() -> None:
        async with asked({HERE: ENDLESS}, 2) as runs:
            assert await runs.ask(*[Room(50, GB)] * 3) == [HERE, HERE, None]
            assert await runs.end(0) == [HERE, HERE, HERE]

    asyncio.run(scenario())


def test_a_host_that_is_doubted_gets_nothing_until_it_is_known_to_be_there() -> None:
    async def scenario() -> None:
        async with asked({"a": SMALL}) as runs:
            assert runs.places.shut("a")
            assert not runs.places.shut("a"), "somebody asks it already"
            assert await runs.ask(Room(1, GB)) == [None]
            runs.places.open("a")
            assert await runs.settled() == ["a"]

    asyncio.run(scenario())


@pytest.mark.parametrize("wanted", [Room(1, GB), Room(1, 9 * GB)])
def test_who_waits_for_hosts_that_are_gone_is_told(wanted: Room) -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL, "large": LARGE}) as runs:
            runs.places.shut("large")
            runs.places.drop("large", "no route")
            if wanted.memory_bytes < SMALL.memory_bytes:
                assert await runs.ask(wanted) == ["small"]
            else:
                assert await runs.ask(wanted) == ["large: no route"], "the other one never has so much"
            runs.places.shut("small")
            runs.places.drop("small", "off")
            assert (await runs.ask(wanted))[1] == "large: no route; small: off"

    asyncio.run(scenario())


def test_a_run_over_several_hosts_waits_until_all_of_them_have_the_room() -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL, "large": LARGE, "other": SMALL}) as runs:
            run = Room(2, GB)
            assert await runs.ask(run, run, count=2) == ["small large", "large other"]
            await runs.ask(run, count=2)
            await runs.ask(Room(1, GB))
            assert runs.at[2:] == [None, None], "none is free, and who came first is first"
            await runs.end(0)
            assert runs.at[2:] == ["small large", None]
            await runs.end(1)
            assert runs.at[3] == "large"

    asyncio.run(scenario())


def test_a_run_over_several_hosts_is_told_when_too_few_are_left() -> None:
    async def scenario() -> None:
        async with asked({"small": SMALL, "large": LARGE}) as runs:
            runs.places.shut("small")
            runs.places.drop("small", "off")
            assert await runs.ask(Room(1, GB), count=2) == ["small: off"]

    asyncio.run(scenario())


def test_several_hosts_are_asked_for_an_even_part_of_what_a_run_takes() -> None:
    guests = "guests: 5\nnodes: {a: , b: , c: , d: , e: }\nrun: [{on: a, exec: 'true'}]\nname: x\n"
    made = plan(guests)
    memory_bytes = sum(guest.memory_bytes for guest in made.guests)
    assert (len(made.guests), Room.of(made), Room.of(made, 2).cores) == (5, Room(5, memory_bytes), 3)
    assert Room.of(made, 2).memory_bytes * 2 >= memory_bytes
