"""Whatever becomes of a host agent is heard of, with its reason, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from dilaton.cluster import agent as agent_module
from dilaton.cluster import lines as lines_module
from dilaton.cluster.agent import LOOK_HOST_S, Agent
from dilaton.cluster.beats import BEAT_HOST_S, SILENCE_HOST_S_MAX, SILENT_BEATS_MAX
from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.engines.local import Local
from dilaton.cluster.guests import Guests
from dilaton.cluster.host_agent import THERE
from dilaton.cluster.lines import Lines
from dilaton.cluster.relay import Relay, Saying, What
from dilaton.host import processes
from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.port import LEFT_OUT_FILE
from tests.conftest import environment
from tests.functional.cluster.connections import STALL_S

if TYPE_CHECKING:
    from dilaton.cluster.host_agent import Presence
    from dilaton.plan.model import Plan

PATIENCE_HOST_S = 20

HOSTS = [Host("machine0", 1), Host("machine1", 1)]


class Hub(Relay):
    """A hub of which a test says what it hears."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[int, What, bytes]] = asyncio.Queue()
        self.said: list[tuple[int, Saying]] = []
        self.is_killed = False

    async def hear(self) -> tuple[int, What, bytes]:
        return await self.heard.get()

    async def say(self, machine: int, saying: Saying) -> None:
        self.said.append((machine, saying))

    def tell(self, machine: int, **saying: Any) -> None:
        self.heard.put_nowait((machine, What.CONTROL, json.dumps(saying).encode()))

    def kill(self) -> None:
        self.is_killed = True

    async def close(self) -> None:
        pass


class Engine(Local):
    """An engine whose agents end when a test says so, and how."""

    def __init__(self) -> None:
        super().__init__(2)
        self.words = {host.name: asyncio.get_running_loop().create_future() for host in HOSTS}
        self.stopped: list[list[str]] = []
        self.said_there = 0

    def there(self, host: Host) -> int:
        return self.said_there if host is HOSTS[1] else 0

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        return HOSTS

    async def ended(self, host: Host) -> str:
        return await asyncio.shield(self.words[host.name])

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        self.stopped.append([host.name for host in lost])


def with_lines(work: Callable[[Lines, Hub, Engine], Awaitable[None]]) -> None:
    async def do() -> None:
        hub, engine = Hub(), Engine()
        lines = Lines(hub, engine, HOSTS)
        for machine in lines.machines:
            hub.heard.put_nowait((machine, What.JOINED, b""))
        await lines.all_there(PATIENCE_HOST_S)
        try:
            await asyncio.wait_for(work(lines, hub, engine), PATIENCE_HOST_S)
        finally:
            await lines.end()

    asyncio.run(do())


def test_a_machine_is_lost_for_the_reason_of_its_own_agent_and_no_other() -> None:
    async def work(lines: Lines, hub: Hub, engine: Engine) -> None:
        engine.words["machine0"].set_result("the host agent of machine0 ended with status 0")
        engine.words["machine1"].set_result("the ring of way 3 is full")
        hub.heard.put_nowait((1, What.GONE, b"the connection has ended"))
        assert str(await lines.lost) == "machine1 was lost: the ring of way 3 is full"

    with_lines(work)


@pytest.fixture
def beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beats are turns of the loop."""
    monkeypatch.setattr(lines_module, "BEAT_HOST_S", 0.0)


async def speak(hub: Hub, every_beats: int, machines: Sequence[int] = (0,)) -> None:
    while True:
        for machine in machines:
            hub.tell(machine)
        for _ in range(every_beats):
            await asyncio.sleep(0)


@pytest.mark.usefixtures("beats")
@pytest.mark.parametrize("do", ["boot", "arm", "halt", "collect"])
def test_an_agent_that_is_silent_is_given_up_whatever_it_does(do: str) -> None:
    async def work(lines: Lines, hub: Hub, _: Engine) -> None:
        speaking = asyncio.create_task(speak(hub, 1))
        with pytest.raises(GuestError, match=r"^machine1 was lost: its host agent has said nothing for 3\.9 seconds$"):
            await (lines.collect(1, io.BytesIO()) if do == "collect" else lines.ask(1, do))
        speaking.cancel()

    with_lines(work)


@pytest.mark.usefixtures("beats")
def test_agents_that_are_heard_of_a_few_beats_before_the_last_are_not_given_up() -> None:
    async def work(lines: Lines, hub: Hub, _: Engine) -> None:
        speaking = asyncio.create_task(speak(hub, SILENT_BEATS_MAX - 5, (0, 1)))
        for _ in range(10 * SILENT_BEATS_MAX):
            await asyncio.sleep(0)
            assert not lines.lost.done()
        speaking.cancel()

    with_lines(work)


def test_a_stall_of_three_seconds_between_two_sayings_of_an_agent_is_shorter_than_the_limit_by_several_beats() -> None:
    assert STALL_S + LOOK_HOST_S + 4 * BEAT_HOST_S < SILENCE_HOST_S_MAX


@pytest.mark.usefixtures("beats")
def test_a_hub_that_passes_nothing_on_is_named_and_ended() -> None:
    async def work(lines: Lines, hub: Hub, _: Engine) -> None:
        with pytest.raises(GuestError, match=r"^the hub of the run has passed nothing on for 3\.9 seconds$"):
            await lines.ask(1, "arm")
        assert hub.is_killed

    with_lines(work)


@pytest.mark.usefixtures("beats")
@pytest.mark.parametrize("beats_there", [0, 3 * SILENT_BEATS_MAX])
def test_an_agent_that_is_silent_before_it_joins_is_given_up_and_one_that_is_there_is_waited_for(
    beats_there: int,
) -> None:
    async def do() -> None:
        hub, engine = Hub(), Engine()
        lines = Lines(hub, engine, HOSTS)
        hub.heard.put_nowait((0, What.JOINED, b""))
        speaking = asyncio.create_task(speak(hub, 1))
        joining = asyncio.create_task(lines.all_there(PATIENCE_HOST_S))
        for _ in range(beats_there):
            engine.said_there += 1
            await asyncio.sleep(0)
            assert not joining.done()
        with pytest.raises(
            MachineLostError, match=r"^machine1 did not join the run: its host agent has said nothing for 3\.9 seconds$"
        ) as failure:
            await joining
        assert failure.value.machine == "machine1"
        speaking.cancel()
        await lines.end()

    asyncio.run(do())


def test_a_machine_that_never_joined_is_not_waited_for_when_files_are_collected() -> None:
    async def do() -> None:
        hub, engine = Hub(), Engine()
        lines = Lines(hub, engine, HOSTS)
        hub.heard.put_nowait((0, What.JOINED, b""))
        engine.words["machine1"].set_result("it has no way to the hub")
        with pytest.raises(GuestError, match=r"^machine1 did not join the run: it has no way to the hub$"):
            await lines.all_there(PATIENCE_HOST_S)
        assert not await asyncio.wait_for(lines.collect(1, io.BytesIO()), PATIENCE_HOST_S)
        await lines.end()

    asyncio.run(do())


def test_what_survives_is_collected_when_a_machine_is_lost() -> None:
    async def work(lines: Lines, hub: Hub, engine: Engine) -> None:
        engine.words["machine1"].set_result("gone")
        hub.heard.put_nowait((1, What.GONE, b""))
        await lines.lost
        into = io.BytesIO()
        collecting = asyncio.create_task(lines.collect(0, into))
        await asyncio.sleep(0)
        machine, saying = hub.said[-1]
        assert (machine, saying["do"]) == (0, "collect")
        hub.tell(0, part=base64.b64encode(b"files").decode())
        hub.tell(0, answers=saying["number"])
        assert await collecting
        assert into.getvalue() == b"files"
        assert not await lines.collect(1, io.BytesIO())

    with_lines(work)


def test_what_cannot_be_brought_here_is_named_and_so_is_a_machine_that_is_lost(tmp_path: Path) -> None:
    async def work(lines: Lines, hub: Hub, engine: Engine) -> None:
        plan = SimpleNamespace(guests=[SimpleNamespace(name=f"guest{number}") for number in range(2)])
        guests = Guests(cast("Plan", plan), [0, 1], lines, tmp_path)
        engine.words["machine1"].set_result("gone")
        hub.heard.put_nowait((1, What.GONE, b""))
        await lines.lost
        closing = asyncio.create_task(guests.close())
        while not hub.said:
            await asyncio.sleep(0)
        ((machine, saying),) = hub.said
        assert (machine, saying["do"]) == (0, "collect")
        hub.tell(0, answers=saying["number"], error="its disk is full")
        await closing
        assert engine.stopped == [["machine1"]], "only who is lost is ended without patience"

    with_lines(work)
    assert (tmp_path / LEFT_OUT_FILE).read_text().splitlines() == [
        "all other files of machine0: its disk is full",
        "all files of machine1: it was lost",
    ]


def test_an_error_that_nobody_has_expected_here_fails_the_run() -> None:
    async def work(lines: Lines, hub: Hub, _: Engine) -> None:
        def fail(machine: int, seen: Saying) -> None:
            raise IndexError(f"{machine} {seen}")

        lines.seen = fail
        hub.tell(0, seen={})
        assert "IndexError" in str(await lines.lost)

    with_lines(work)


class ToAgent(Hub):
    """A relay of an agent, of which a test says what the agent hears, and hears what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: asyncio.Queue[Saying] = asyncio.Queue()

    async def say(self, machine: int, saying: Saying) -> None:
        if "answers" in saying:
            self.answers.put_nowait(saying)


def test_an_agent_answers_whatever_goes_wrong_and_its_last_word_is_why_it_ended(tmp_path: Path) -> None:
    async def do() -> tuple[Saying, str | None]:
        relay = ToAgent()
        agent = Agent(Order("", "", 0, str(tmp_path / "machine0")), relay, -1)
        serving = asyncio.create_task(agent.serve(asyncio.get_running_loop().create_future()))
        relay.tell(0, do="dance", number=7)
        answer = await asyncio.wait_for(relay.answers.get(), PATIENCE_HOST_S)
        relay.heard.put_nowait((0, What.GONE, b"the ring of way 3 is full"))
        return answer, await asyncio.wait_for(serving, PATIENCE_HOST_S)

    answer, why = asyncio.run(do())
    assert answer["answers"] == 7
    assert "AttributeError" in answer["error"]
    assert "do_dance" in answer["error"]
    assert why == "the ring of way 3 is full"
    assert not (tmp_path / "machine0").exists()


def test_what_an_agent_says_last_is_how_it_ended() -> None:
    async def do() -> str:
        engine = Local(1)
        (host,) = await engine.hosts(cast("Plan", None), jailed=True)
        # Its relay finds no hub there.
        await engine.start(host, Order("00" * 32, "127.0.0.1:1", 0, "/nowhere/machine0"))
        try:
            return await asyncio.wait_for(engine.ended(host), PATIENCE_HOST_S)
        finally:
            await engine.stop()

    assert "/nowhere/machine0" in asyncio.run(do())


@pytest.mark.parametrize("says_what_it_has", [False, True])
def test_an_agent_that_nobody_tells_what_to_do_ends(says_what_it_has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdin, os.fdopen(writing, "wb"):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(agent_module, "ORDER_HOST_S_MAX", 0.01)
        serving = agent_module.main(cast("Presence", None), says_what_it_has=says_what_it_has)
        with pytest.raises(GuestError, match=r"^nobody has said for 0\.01 seconds what it is to do$"):
            asyncio.run(serving)


@pytest.mark.parametrize("turns", range(8))
def test_an_agent_that_ends_just_when_a_run_does_keeps_nobody_waiting(turns: int) -> None:
    class Ending(Engine):
        async def stop(self, lost: Sequence[Host] = ()) -> None:
            self.words[HOSTS[1].name].set_result("it ended")
            for _ in range(turns):
                await asyncio.sleep(0)

    async def scenario() -> None:
        hub, engine = Hub(), Ending()
        lines = Lines(hub, engine, HOSTS)
        hub.heard.put_nowait((1, What.GONE, b""))
        while not hub.heard.empty():
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_HOST_S):
            await lines.end()

    asyncio.run(scenario())


def test_an_agent_that_is_stopped_is_ended_when_nobody_conducts_it_any_more() -> None:
    agent = subprocess.Popen(
        [sys.executable, "-m", "dilaton.cluster.host_agent", "--say"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with agent:
        try:
            assert agent.stdin and agent.stdout
            assert agent.stdout.readline() == THERE
            (guard,) = processes.below(agent.pid)
            agent.send_signal(signal.SIGSTOP)
            agent.stdin.close()
            assert agent.wait(PATIENCE_HOST_S) == -signal.SIGKILL
        finally:
            agent.kill()
    end = time.monotonic() + PATIENCE_HOST_S
    while Path(f"/proc/{guard}").exists():
        assert time.monotonic() < end, "its guard is left"
        time.sleep(0.01)
