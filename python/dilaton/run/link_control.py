"""Showing and changing the links of a run that goes on.

A change is planned as if the lab had said it (`plan/updates.py`), written to the run directory, and taken over by the
agent at the virtual instant at which it hears of it, or later, at exactly the instant that it names. What is wrong with
it is found here, before the agent hears of it, and the run is unharmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dilaton.host.channel import Message
from dilaton.host.guests import Guests
from dilaton.lab import units
from dilaton.lab.errors import LabError
from dilaton.lab.links import find_link
from dilaton.lab.model import Lab
from dilaton.lab.segments import without_lans
from dilaton.lab.steering import read_change
from dilaton.measure import numbers
from dilaton.plan.changes import changes_of_links, states_of_links
from dilaton.plan.guests import memory_bytes
from dilaton.plan.model import Guest, Plan
from dilaton.plan.updates import SteeredLink, link_update
from dilaton.run.clock_log import Reading
from dilaton.run.control import ControlError, Handler, Request, Result, argument
from dilaton.run.directory import RunDir

FOLDER = "link-updates"
"""Of the run directory: what the agent was told of links, in the order in which it was."""


@dataclass(frozen=True)
class _Asked:
    """A change that the agent has been told of and has not answered yet."""

    link: str
    words: str
    at_ns: int
    answer: asyncio.Future[Message]
    accepted: Callable[[], None]


class LinkControl:
    """The links of a run, for those who steer it."""

    def __init__(self, lab: Lab, plan: Plan, run_dir: RunDir, guests: Guests, clock: Callable[[], Reading]) -> None:
        """Takes the links of a run.

        Args:
            lab: What is run.
            plan: What it was compiled to.
            run_dir: Where updates are written for the agents.
            guests: That have its nodes.
            clock: Reads the clock of the run.
        """
        self._lab = without_lans(lab)
        self._plan = plan
        self._run_dir = run_dir
        self._guests = guests
        self._guest_of = {node.name: node.guest for node in plan.nodes}
        self._clock = clock
        self._changes = changes_of_links(self._lab)
        self._steered: dict[int, SteeredLink] = {}
        self._count = 0
        self._asked: dict[str, _Asked] = {}
        self._turn = asyncio.Lock()

    @property
    def handlers(self) -> dict[str, Handler]:
        """By the verbs of the control socket."""
        return {"link.show": self._on_show, "link.change": self._on_change}

    def answered(self, message: Message) -> dict[str, Any] | None:
        """Takes what the agent says became of an update; returns the event that this is, or None if it was refused."""
        asked = self._asked.pop(message["file"])
        if not asked.answer.done():
            asked.answer.set_result(message)
        if message["type"] == "link-refused":
            return None
        asked.accepted()
        about = {"link": asked.link, "asked": asked.words, "at_ns": asked.at_ns, "file": message["file"]}
        return {"t_ns": message["t_ns"], "kind": "link-steered", **about, "host_s": self._clock().host_ns / 1e9}

    async def _on_show(self, request: Request) -> Result:
        """All links, or one, as they are now."""
        numbers_ = [self._find(request["link"])] if "link" in request else range(len(self._lab.links))
        return {"links": [self._shown(number) for number in numbers_]}

    async def _on_change(self, request: Request) -> Result:
        """Changes a link, now or at a later instant."""
        number = self._find(argument(request, "link", str))
        asked = argument(request, "settings", lambda pairs: [(str(path), str(value)) for path, value in pairs])
        async with self._turn:
            now_ns = self._clock().virtual_ns
            at_ns = argument(request, "at", units.parse_duration) if "at" in request else now_ns
            if at_ns < now_ns:
                at, now = numbers.duration(at_ns / 1e9), numbers.duration(now_ns / 1e9)
                raise ControlError(f"{at}: virtual time is already at {now}, and never goes back")
            t_ns = await self._change(number, asked, at_ns, now_ns, str(request.get("directory", ".")))
        return {"t_ns": t_ns, "at_ns": max(at_ns, t_ns), **self._shown(number)}

    async def _change(self, number: int, asked: list[tuple[str, str]], at_ns: int, now_ns: int, directory: str) -> int:
        """Has the agent take a change over; returns the virtual instant at which it did."""
        before = self._link(number)
        guest = self._guest(before)
        try:
            change = read_change(before.link, before.changes, asked, at_ns, directory)
        except LabError as error:
            raise ControlError(str(error)) from error
        after = before.changed(change, now_ns)
        self._check_memory(number, after, guest)
        self._count += 1
        file = f"{FOLDER}/{self._count}.json"
        (self._run_dir.path / FOLDER).mkdir(exist_ok=True)
        self._run_dir.write(file, link_update(before, after, now_ns, guest.modules).model_dump_json(indent=1))
        words = " ".join(f"{path}={value}" for path, value in asked)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def accepted() -> None:
            self._steered[number] = after

        self._asked[file] = _Asked(after.link.name, words, at_ns, answer, accepted)
        there = next(one for one in self._guests.all if one.name == guest.name)
        await there.channel.send({"type": "update-link", "file": file})
        message = await answer
        if message["type"] == "link-refused":
            raise ControlError(f"{before.link.name}: the guest cannot do that: {message['reason']}")
        return int(message["t_ns"])

    def _guest(self, steered: SteeredLink) -> Guest:
        """The guest that a link is in."""
        a, b = (self._guest_of[end.node] for end in steered.link.endpoints)
        if a != b:
            raise ControlError(
                f"{steered.link.name}: it joins two guests, {a} and {b}; only links within one guest can be changed "
                "while the run goes on; say it in the lab's changes: beforehand"
            )
        return next(guest for guest in self._plan.guests if guest.name == a)

    def _check_memory(self, number: int, after: SteeredLink, guest: Guest) -> None:
        states = states_of_links(self._lab)
        states[number] = [*states[number], *after.course.states]
        nodes = {node for node, name in self._guest_of.items() if name == guest.name}
        need = memory_bytes(self._lab, states, nodes, is_alone=len(self._plan.guests) == 1)
        if need > guest.memory_bytes:
            raise ControlError(
                f"{after.link.name}: what could then be under way takes a guest of {units.format_size(need)}, and this "
                f"one has {units.format_size(guest.memory_bytes)}; say it in the lab's changes: beforehand"
            )

    def _find(self, text: str) -> int:
        try:
            return find_link(text, self._lab.links)
        except ValueError as error:
            raise ControlError(str(error)) from error

    def _link(self, number: int) -> SteeredLink:
        planned = self._lab.links[number], self._changes.get(number, [])
        return self._steered.get(number) or SteeredLink.planned(*planned)

    def _shown(self, number: int) -> Result:
        steered = self._link(number)
        state = steered.course.at(max(self._clock().virtual_ns, steered.course.states[0].at_ns))
        return {
            "link": steered.link.name,
            "up": state.up,
            "ends": [
                {"node": end.node, "interface": end.interface, "egress": egress.model_dump()}
                for end, egress in zip(steered.link.endpoints, state.egress, strict=True)
            ],
        }
