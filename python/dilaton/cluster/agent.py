"""A host agent: the guests of one machine, for who conducts a run that is elsewhere.

It is started by an engine with an order on its standard input, which stays open as long as the engine is there. Every
request has a number, and its answer the same one; what an agent sees without being asked has none. When the relay ends,
or the standard input, everything ends that it has started: guests have their life lines from it (`host/here`). If it
ends without being asked to, its last word on its standard output is why: the engine hears that although the relay may
be gone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dilaton.cluster.engines import having
from dilaton.cluster.engines.engine import Order
from dilaton.cluster.engines.having import Needs
from dilaton.cluster.engines.processes import LINE_BYTES_MAX
from dilaton.cluster.files import archive, carried, kernel, place
from dilaton.cluster.host_agent import Presence
from dilaton.cluster.relay import Relay, Saying, What
from dilaton.cluster.sessions import Passing
from dilaton.cluster.values import from_json, to_json
from dilaton.host.errors import GuestError, HostLacksError
from dilaton.host.here.machine import Here
from dilaton.host.here.memory.wire import Share
from dilaton.host.messages import TO_AGENT, Event, FromAgent, ToAgent, Update
from dilaton.host.orders import Orders
from dilaton.host.port import Progress
from dilaton.host.tasks import beside, within
from dilaton.plan.model import Plan, StoredImage

LOOK_HOST_S = 0.25
"""How often it says what it sees."""

ORDER_HOST_S_MAX = 120.0
"""How long it waits to be told what to do, which is until the last host has answered. Of a machine that is cut off its
standard input would not end for hours."""

GIVEN = {"plan.json", "lab.yaml"}
"""What is in the directory of a machine before the run, and stays there."""


class Agent:
    """The agent. `serve` ends when the run, or the relay, has ended."""

    def __init__(self, order: Order, relay: Relay, memory_fd: int) -> None:
        """Takes its order, and a relay that has the memory."""
        self._relay, self._number, self._memory_fd = relay, order.number, memory_fd
        self._dir = Path(order.directory)
        self._arriving: carried.Arriving | None = None
        self._guests: Any = None
        self._passing: list[Passing] = []
        """The sessions of the run, for each guest."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, ended: Awaitable[object]) -> str | None:
        """Does what it is asked until nobody asks any more, or `ended` comes; then nothing is left of it.

        Returns:
            Why it has ended, if nobody has asked it to.
        """
        self._dir.mkdir(mode=0o700)
        working = asyncio.create_task(beside(self._listen(), self._report()))
        await asyncio.wait({working, asyncio.ensure_future(ended)}, return_when=asyncio.FIRST_COMPLETED)
        failure = working.exception() if working.done() else None
        for task in (working, *self._tasks):
            task.cancel()
        await asyncio.gather(working, *self._tasks, return_exceptions=True)
        if self._guests is not None:
            await self._guests.close()
        if self._arriving is not None:
            self._arriving.close()
        await archive.remove(self._dir)
        return None if failure is None else explained(failure)

    async def _listen(self) -> None:
        while True:
            _, what, message = await self._relay.hear()
            if what is What.GONE:
                raise GuestError(message.decode(errors="replace"))
            saying = json.loads(message)
            if "line" in saying:
                self._passing[saying["line"]].take(saying)
                continue
            if saying["do"] == "end":
                return
            task = asyncio.create_task(self._answer(saying))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _say(self, **saying: Any) -> None:
        await self._relay.say(self._number, saying)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(LOOK_HOST_S)
            # Before its guests are up there is nothing to see, but it is there.
            await self._say(**({} if self._guests is None else {"seen": self._seen()}))

    def _seen(self) -> Saying:
        guests = self._guests
        look = guests.look()
        return {
            "look": list(look),
            "latest_ns": guests.latest_ns(),
            "pace": to_json(guests.pace()),
            "wires": to_json(guests.wires()),
            "guests": [
                {"counters": to_json(guest.counters()), "is_stopped": guest.is_stopped(), "kernel": guest.kernel}
                for guest in guests.all
            ],
        }

    async def _answer(self, saying: Saying) -> None:
        answer: dict[str, Any] = {"answers": saying["number"]}
        try:
            handler: Callable[[Saying], Awaitable[Any]] = getattr(self, f"do_{saying['do']}")
            answer["value"] = await handler(saying)
            if self._guests is not None:
                answer["seen"] = self._seen()
        except HostLacksError as error:
            answer |= {"lacks": error.what, "fix": error.fix}
        except Exception as error:
            # Whoever has asked waits for an answer, whatever went wrong.
            answer["error"] = explained(error)
        await self._say(**answer)

    async def do_lacks(self, asked: Saying) -> list[str]:
        """Which of these images are not on its machine, by digest."""
        images = [StoredImage.model_validate(image) for image in asked["images"]]
        return [image.digest for image in images if carried.found(image) is None]

    async def do_carry(self, asked: Saying) -> None:
        """Takes a part of an image."""
        if self._arriving is None:
            self._arriving = carried.Arriving(self._dir / "arriving")
        self._arriving.add(base64.b64decode(asked["part"]))

    async def do_carried(self, asked: Saying) -> None:
        """Has an image whole."""
        assert self._arriving is not None, "a part of it came before"
        arriving, self._arriving = self._arriving, None
        arriving.finish(asked["digest"], asked["sha256"])

    async def do_use_kernel(self, asked: Saying) -> bool:
        """Has its guests run a kernel; false: it is not on its machine."""
        return kernel.use(asked["sha256"], has_seccomp=asked["has_seccomp"])

    async def do_carried_kernel(self, asked: Saying) -> None:
        """Has a kernel whole."""
        assert self._arriving is not None, "a part of it came before"
        arriving, self._arriving = self._arriving, None
        digest = asked["digest"]
        contents = arriving.whole(f"the kernel {digest[:12]}", asked["sha256"])
        try:
            await asyncio.to_thread(kernel.keep, contents, digest, self._dir)
        finally:
            contents.unlink()

    async def do_boot(self, asked: Saying) -> Saying:
        """Boots its guests."""
        planned = carried.placed(Plan.model_validate(asked["plan"]))
        for name, text in asked["files"].items():
            file = self._dir / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(text))
        share = Share(self._number, asked["homes"], self._memory_fd)
        here = Here(tuple(map(Path, asked["hidden"])), share, asked["behind"])
        loop = asyncio.get_running_loop()

        def progress(made: Progress) -> None:
            task = loop.create_task(self._say(progress=to_json(made)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        booting = here.boot(
            planned, self._dir, jailed=asked["jailed"], disk_bytes=asked["disk_bytes"], progress=progress
        )
        self._guests = await booting
        self._passing = [
            Passing(number, guest.streams, partial(self._relay.put, self._number))
            for number, guest in enumerate(self._guests.all)
        ]
        if planned.wires:
            await self._relay.send(self._number, What.LAYOUT, b"")
        return to_json(self._guests.identity())  # type: ignore[no-any-return]

    async def do_arm(self, asked: Saying) -> None:
        """See `port.Guests`."""
        await self._guests.arm(asked["date_ns"])

    async def do_order(self, asked: Saying) -> None:
        """See `port.Clocks`."""
        await self._guests.order(from_json(Orders, asked["orders"]))

    async def do_set_tdf(self, asked: Saying) -> None:
        """See `port.Clocks`."""
        await self._guests.set_tdf(from_json(Fraction, asked["tdf"]))

    async def do_set_max_speed(self, asked: Saying) -> None:
        """See `port.Clocks`."""
        speed = asked["speed"]
        await self._guests.set_max_speed(None if speed is None else from_json(Fraction, speed))

    async def do_run_until(self, asked: Saying) -> None:
        """See `port.Clocks`."""
        tdf = asked["tdf"]
        await self._guests.run_until(asked["at_ns"], None if tdf is None else from_json(Fraction, tdf))

    async def do_next_timer(self, _: Saying) -> int:
        """When the next timer of its guests expires."""
        return await self._guests.next_timer_ns()  # type: ignore[no-any-return]

    async def do_stop_clocks(self, _: Saying) -> None:
        """See `port.Guests`."""
        await self._guests.stop_clocks()

    async def do_look(self, _: Saying) -> None:
        """Says what it sees, as every answer does."""

    async def do_follow(self, _: Saying) -> list[Saying]:
        """See `port.Guests`."""
        heard: asyncio.Queue[tuple[int, FromAgent | Event]] = asyncio.Queue()

        async def pass_on() -> None:
            while True:
                guest, message = await heard.get()
                await self._say(told=guest, message=message.json())

        finished = await beside(self._guests.follow(lambda *message: heard.put_nowait(message)), pass_on())
        while not heard.empty():
            guest, message = heard.get_nowait()
            await self._say(told=guest, message=message.json())
        return [message.json() for message in finished]

    async def do_send(self, asked: Saying) -> None:
        """Tells the agent of a guest something."""
        fields = dict(asked["message"])
        (form,) = TO_AGENT[fields.pop("type")]
        message = form(**fields)
        assert isinstance(message, ToAgent), "of the table of those"
        if isinstance(message, Update):
            (self._dir / message.file).write_bytes(base64.b64decode(asked["file"]))
        await self._guests.all[asked["guest"]].send(message)

    async def do_halt(self, _: Saying) -> None:
        """See `port.Guests`."""
        await self._guests.halt()

    async def do_collect(self, _: Saying) -> None:
        """Sends what its guests have written, and ends those that still write."""
        if self._guests is not None:
            self._guests.kill()
        loop = asyncio.get_running_loop()

        def send(part: bytes) -> None:
            # Waits until it is on its way, so that no more than a part is held here.
            asyncio.run_coroutine_threadsafe(self._say(part=base64.b64encode(part).decode()), loop).result()

        paths = [path for path in sorted(self._dir.iterdir()) if path.name not in GIVEN]
        await asyncio.to_thread(archive.pack, paths, send)


def explained(error: BaseException) -> str:
    """What went wrong: in words if somebody has expected it, and otherwise with where it was."""
    if isinstance(error, GuestError | OSError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


async def main(presence: Presence, *, says_what_it_has: bool) -> None:
    """Reads its order, and serves until the engine, the relay or the run has ended.

    Args:
        presence: Says until it joins that it is there.
        says_what_it_has: Whether it is asked that before.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    with contextlib.ExitStack() as stack:
        stack.callback(transport.close)
        if says_what_it_has:
            found = having.has(from_json(Needs, json.loads(await _told(reader))))
            presence.say(having.MARK + json.dumps(to_json(found)).encode() + b"\n")
        line = await _told(reader)
        if not line and says_what_it_has:
            # That was all that anybody wanted to know.
            return
        order = from_json(Order, json.loads(line))
        if not order.directory:
            order = replace(order, directory=str(stack.enter_context(place.own(place.parent())) / "run"))
        await _serve(order, reader, presence)


async def _told(reader: asyncio.StreamReader) -> bytes:
    """The next line that it is told.

    Raises:
        GuestError: None comes.
    """
    try:
        return await within(ORDER_HOST_S_MAX, reader.readline())
    except TimeoutError:
        raise GuestError(f"nobody has said for {ORDER_HOST_S_MAX:g} seconds what it is to do") from None


async def _serve(order: Order, reader: asyncio.StreamReader, presence: Presence) -> None:
    loop = asyncio.get_running_loop()
    memory_fd = os.memfd_create("dilaton-wire")
    relay = await Relay.start(bytes.fromhex(order.key), "machine", str(memory_fd), fds=[memory_fd])
    await relay.send(order.number, What.CONTROL, order.hub.encode())
    # That it has joined is the next that is heard of it.
    presence.end()
    ended = asyncio.create_task(reader.read())
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, ended.cancel)
    why = await Agent(order, relay, memory_fd).serve(ended)
    ended.cancel()
    await relay.close()
    if why is not None:
        raise GuestError(why)


def serve(presence: Presence, *, says_what_it_has: bool) -> int:
    """Is the host agent of this machine, as `main`; returns the exit status."""
    try:
        asyncio.run(main(presence, says_what_it_has=says_what_it_has))
    except Exception as failure:
        print(explained(failure), flush=True)
        return 1
    return 0
