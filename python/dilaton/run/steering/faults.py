"""Faults by hand in a run that goes on: begun now, listed, and undone, those of the lab too.

A fault is written as in a lab, read with the lab's own rules, and becomes an entry of the agents' courses at the
virtual instant at which they hear of it. From then on nobody is needed: with `for` it is undone at the exact instant,
without it lasts until somebody undoes it or the run is over. One of nodes in several guests is told while virtual time
stands still, so that all of it begins at one instant.

A link may suffer several faults that speak of different things, and the agents know what it is under each set of them.
So a fault of a link by hand also tells what that link is under it and each of the others that last or may yet come.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from dilaton.host.messages import Began, Event, FaultSkipped, OfFault, Undone, Updated, UpdateFaults
from dilaton.lab.checks.course import names
from dilaton.lab.errors import LabError
from dilaton.lab.faults.fault import Fault
from dilaton.lab.segments import without_lans
from dilaton.lab.steering import read_faults
from dilaton.lab.text import units
from dilaton.plan.course.entries import FaultUpdate, Timed
from dilaton.plan.course.faults import begins_apart, effect_of, nodes_of, not_its_own, timed
from dilaton.plan.guests.kernels import BPF_MODULES
from dilaton.plan.links.updates import SteeredLink
from dilaton.run import here
from dilaton.run.control import verbs
from dilaton.run.control.answers import FaultShown, FaultsShown, FaultsTaken, FaultState
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler
from dilaton.run.control.verbs import FaultBegin, FaultUndo, Nothing
from dilaton.run.record.events import FaultSteered
from dilaton.run.steering.links import LinkControl
from dilaton.run.steering.steered import Steered

HAND = "hand"
"""What faults by hand are called, with a number behind it."""


@dataclass
class _Known:
    """A fault that there is, and what has become of it so far."""

    fault: Fault
    words: str
    guests: tuple[int, ...]
    by_hand: bool
    state: FaultState = "waiting"
    began_ns: int | None = None
    ended_ns: int | None = None

    @property
    def can_be_undone(self) -> bool:
        """It lasts, or somebody has asked for it and it is yet to come."""
        return self.state == "lasting" or (self.by_hand and self.state == "waiting")

    @property
    def heard_ns(self) -> int:
        """The last instant that a guest has said of it: its clock may be a step ahead of the run's, which stands."""
        return max(self.began_ns or 0, self.ended_ns or 0)

    @property
    def as_it_was(self) -> Fault:
        """The same fault at the instants at which it has begun and ended, as far as it has."""
        if self.began_ns is None:
            # One that never begins meets no other one.
            return self.fault.model_copy(update={"at_ns": None}) if self.state == "skipped" else self.fault
        lasted = {} if self.ended_ns is None else {"for_ns": self.ended_ns - self.began_ns, "restart_ns": None}
        return self.fault.model_copy(update={"at_ns": self.began_ns, "after": None, **lasted})

    def shown(self, name: str) -> FaultShown:
        return FaultShown(
            name=name,
            what=self.words,
            by_hand=self.by_hand,
            state=self.state,
            began_ns=self.began_ns,
            ended_ns=self.ended_ns,
            for_ns=self.fault.lasts_ns,
        )


@dataclass(frozen=True)
class _Planned:
    """Faults that are to begin, and what agents have to know of them."""

    known: dict[str, _Known]
    timed: list[Timed]
    again: list[Timed]
    links: Mapping[int, SteeredLink]
    now_ns: int

    @property
    def guests(self) -> list[int]:
        """The numbers of the guests that carry them out."""
        return sorted({guest for known in self.known.values() for guest in known.guests})


class FaultControl:
    """The faults of a run, for those who steer it."""

    def __init__(self, run: Steered, links: LinkControl) -> None:
        """Takes the faults of a run, which has these links."""
        self._run = run
        self._links = links
        lab, plan = run.lab, run.plan
        numbers = {guest.name: number for number, guest in enumerate(plan.guests)}
        self._guest_of = {node.name: numbers[node.guest] for node in plan.nodes}
        self._nodes = {node.name: node for node in plan.nodes}
        planned = {entry.name: entry for entry in plan.course if entry.name}
        self._known = {
            fault.name: _Known(fault, planned[fault.name].what, self._guests(planned[fault.name]), by_hand=False)
            for fault in lab.faults
        }
        self._timed = planned
        self._count = 0

    @property
    def handlers(self) -> dict[str, Handler]:
        """By the verbs of the control socket."""
        return (
            verbs.FAULT_BEGIN.by(self._on_begin)
            | verbs.FAULT_LIST.by(self._on_list)
            | verbs.FAULT_UNDO.by(self._on_undo)
        )

    def heard(self, event: Event) -> None:
        """Takes what an agent says of a fault.

        Raises:
            ValueError: There is no such fault.
        """
        if not isinstance(event, OfFault):
            return
        known = self._known.get(event.fault)
        if known is None:
            raise ValueError(f"there is no fault {event.fault}")
        match event:
            case Began():
                known.state, known.began_ns = "lasting", event.t_ns
                # What a node boots by is over at once, and so is a death for good: neither is undone.
                if known.fault.start is not None or (known.fault.kill is not None and known.fault.lasts_ns is None):
                    known.state, known.ended_ns = "over", event.t_ns
            case Undone():
                known.state, known.ended_ns = "over", event.t_ns
            case FaultSkipped():
                known.state = "skipped"

    async def _on_list(self, _: Nothing) -> FaultsShown:
        return FaultsShown(faults=[known.shown(name) for name, known in self._known.items()])

    async def _on_begin(self, asked: FaultBegin) -> FaultsTaken:
        """Begins a fault, now or later."""
        async with self._run.updates.turn:
            # What is drawn has instants of its own, none of which may be over when its agents hear of it.
            guests = self._plan_for(asked).guests
            is_one_message = len(guests) == 1 and not _is_drawn(asked)
            at_once = contextlib.nullcontext() if is_one_message else self._run.at_one_instant(guests, "a fault begins")
            async with at_once:
                planned = self._plan_for(asked)
                # Also of one that is refused: a name is never that of two.
                self._count += "name" not in asked.fault
                t_ns = await self._begin(planned)
        self._timed |= {timed.name: timed for timed in planned.timed}
        return self._taken(t_ns, planned.known)

    def _plan_for(self, asked: FaultBegin) -> _Planned:
        now_ns = max([self._run.now().virtual_ns, *(known.heard_ns for known in self._known.values())])
        before = self._run.lab.model_copy(update={"faults": [known.as_it_was for known in self._known.values()]})
        try:
            made = read_faults(before, asked.fault, self._next_name(), now_ns, asked.directory, here.core_ghz())
            if lack := next(filter(None, (not_its_own(one, self._guest_of, self._nodes) for one in made)), None):
                raise ControlError(lack)
            going = [known.fault for known in self._known.values() if known.state in ("waiting", "lasting")]
            # Of links with two ends. Nobody knows to the nanosecond when one begins that is not drawn, so it may meet
            # any of the others.
            met = made if _is_drawn(asked) else [fault.model_copy(update={"at_ns": None}) for fault in made]
            whole = without_lans(self._run.lab.model_copy(update={"faults": [*going, *met]})).faults
            new = whole[len(going) :]
            links = self._links.under(whole, new, now_ns)
        except LabError as error:
            raise ControlError(str(error)) from error
        except ValueError as error:
            raise ControlError(str(error)) from error
        again = [
            self._timed[fault.name].model_copy(update={"effect": self._links.impairment(fault, links)})
            for fault in whole[: len(going)]
            if fault.changes and self._links.meets(fault, links)
        ]
        # One that begins now does so when its agents hear of it, whose clocks may be a little behind this one.
        has_instants = "at" in asked.fault or _is_drawn(asked)
        instants = [fault.at_ns if has_instants else None for fault in made]
        begins = [one.model_copy(update={"at_ns": at_ns}) for one, at_ns in zip(new, instants, strict=True)]
        entries = [self._planned(fault, links) for fault in begins]
        guest_of = {node.name: node.guest for node in self._run.plan.nodes}
        for fault, entry in zip(made, entries, strict=True):
            if apart := begins_apart(fault, entry.effect, guest_of):
                raise ControlError(apart)
        known = {
            entry.name: _Known(fault, entry.what, self._guests(entry), by_hand=True)
            for fault, entry in zip(made, entries, strict=True)
        }
        return _Planned(known, entries, again, links, now_ns)

    def _next_name(self) -> str:
        """What a fault is called to which nobody gives a name: the first that is free."""
        known = names(self._run.lab) | self._known.keys()
        return next(name for number in itertools.count(self._count + 1) if (name := f"{HAND}{number}") not in known)

    def _planned(self, fault: Fault, links: Mapping[int, SteeredLink]) -> Timed:
        effect, words = (
            (self._links.impairment(fault, links), fault.words)
            if fault.changes
            else effect_of(self._run.lab, self._nodes, fault)
        )
        return timed(fault, effect, words, names(self._run.lab) | self._known.keys())

    async def _begin(self, planned: _Planned) -> int:
        words = ", ".join(_asked(known) for known in planned.known.values())

        def update(guest: int) -> FaultUpdate:
            modules = self._run.plan.guests[guest].modules
            cuts = any(entry.effect.kind == "partition" for entry in planned.timed)
            return FaultUpdate(
                is_question=False,
                links=self._links.updates(planned.links, planned.now_ns, modules),
                modules=[module for module in BPF_MODULES if cuts and module not in modules],
                again=planned.again,
                begin=[entry for entry in planned.timed if guest in self._guests(entry)],
                undo=[],
            )

        def taken(message: Updated) -> Event:
            self._links.take(planned.links, [known.fault for known in planned.known.values()])
            return self._event(message, planned.known, words)

        # Agents say that it has begun before they say that they have taken it over.
        self._known |= planned.known
        try:
            with self._links.becoming(list(planned.links.values())):
                return await self._tell(planned.guests, update, taken)
        except ControlError:
            has_begun = any(known.state != "waiting" for known in planned.known.values())
            if not has_begun:
                self._known = {name: one for name, one in self._known.items() if name not in planned.known}
            raise

    async def _on_undo(self, asked: FaultUndo) -> FaultsTaken:
        """Undoes faults that last, and takes back those that were asked for by hand and are yet to begin."""
        async with self._run.updates.turn:
            guests = self._guests_with(self._undoable(asked.names))
            at_once = (
                contextlib.nullcontext() if len(guests) == 1 else self._run.at_one_instant(guests, "a fault is undone")
            )
            async with at_once:
                # Some may have ended before the clock stood.
                names = self._undoable(asked.names)

                def update(guest: int) -> FaultUpdate:
                    here = [name for name in names if guest in self._known[name].guests]
                    return FaultUpdate(is_question=False, links=[], modules=[], again=[], begin=[], undo=here)

                def taken(message: Updated) -> Event:
                    return self._event(message, names, "undo")

                t_ns = await self._tell(self._guests_with(names), update, taken)
        return self._taken(t_ns, names)

    async def _tell(
        self, guests: list[int], update: Callable[[int], FaultUpdate], taken: Callable[[Updated], Event]
    ) -> int:
        """Has agents take an update over, all of them or none; returns the virtual instant at which they have.

        Of several, all are asked first. Virtual time stands still meanwhile, so that the answers stay true.
        """
        if len(guests) > 1:
            for guest in guests:
                question = update(guest).model_copy(update={"is_question": True})
                await self._run.updates.tell(guest, UpdateFaults, question.model_dump_json(indent=1))
        t_ns = 0
        for guest in guests:
            is_last = guest == guests[-1]
            document = update(guest).model_dump_json(indent=1)
            told = self._run.updates.tell(guest, UpdateFaults, document, taken if is_last else lambda _: None)
            t_ns = max(t_ns, await told)
        return t_ns

    def _guests_with(self, names: Iterable[str]) -> list[int]:
        return sorted({guest for name in names for guest in self._known[name].guests})

    def _undoable(self, asked: list[str]) -> list[str]:
        """The faults that are meant; those of one that was of several things are named by its name, too.

        Args:
            asked: Names; empty: all that were asked for by hand.

        Raises:
            ControlError: There is none of such a name, or none that can be undone now.
        """
        # One that is to begin later by hand can be taken back; the lab's are as the lab says.
        undoable = [name for name, known in self._known.items() if known.can_be_undone]
        if not asked:
            found = [name for name in undoable if self._known[name].by_hand]
            if not found:
                raise ControlError("no fault that was begun by hand lasts now")
            return found
        found = []
        for text in asked:
            of_several = re.compile(rf"{re.escape(text)}(-[0-9]+)+")
            meant = [text] if text in self._known else list(filter(of_several.fullmatch, self._known))
            if not meant:
                there = ", ".join(self._known) or "none"
                raise ControlError(f"{text}: no such fault; there is {there}")
            if not (now := [name for name in meant if name in undoable]):
                raise ControlError(f"{text}: does not last now, but is {self._known[meant[0]].state}")
            found += now
        return list(dict.fromkeys(found))

    def _event(self, message: Updated, names: Iterable[str], words: str) -> Event:
        host_s = self._run.now().host_ns / 1e9
        return FaultSteered(t_ns=message.t_ns, fault=", ".join(names), asked=words, file=message.file, host_s=host_s)

    def _taken(self, t_ns: int, names: Iterable[str]) -> FaultsTaken:
        return FaultsTaken(t_ns=t_ns, faults=[self._known[name].shown(name) for name in names])

    def _guests(self, entry: Timed) -> tuple[int, ...]:
        return tuple(sorted({self._guest_of[node] for node in nodes_of(entry.effect)}))


def _is_drawn(asked: FaultBegin) -> bool:
    return "random" in asked.fault


def _asked(known: _Known) -> str:
    lasts_ns = known.fault.lasts_ns
    if lasts_ns is None:
        return known.words
    field = "for" if known.fault.kill is None else "restart"
    return f"{known.words} {field} {units.format_duration(lasts_ns)}"
