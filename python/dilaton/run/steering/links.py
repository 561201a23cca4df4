"""Showing and changing the links of a run that goes on.

A change is planned as if the lab had said it (`plan/links/updates.py`), written to the run directory, and taken over by
the agent at the virtual instant at which it hears of it, or later, at exactly the instant that it names. What is wrong
with it is found here, before the agent hears of it, and the run is unharmed.

A link between guests is changed by both of their agents, and a segment port by port. They hear of it while virtual time
stands still, so that all of it changes at one instant.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from dilaton.host.messages import Began, Event, LinkChanged, Undone, Updated, UpdateLink
from dilaton.lab.errors import LabError
from dilaton.lab.faults.fault import Fault
from dilaton.lab.faults.layers import key_of, layers
from dilaton.lab.parts.links import Change, Link, find_link
from dilaton.lab.segments import port_change, without_lans
from dilaton.lab.steering import check_changed, read_change
from dilaton.lab.text import units
from dilaton.measure import numbers
from dilaton.plan.course.entries import Flap, ImpairLink, LinkUpdate
from dilaton.plan.guests.kernels import MEMORY_SPARE, memory_bytes
from dilaton.plan.links.changes import changes_of_links, faults_of_links, first_under, impairment, states_of_links
from dilaton.plan.links.updates import SteeredLink, link_update
from dilaton.run.control import verbs
from dilaton.run.control.answers import ChangeTaken, LinkEnd, LinkShown, LinksShown
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler
from dilaton.run.control.verbs import LinkChange, WhichLink
from dilaton.run.record.events import LinkBecame, LinkSteered
from dilaton.run.steering.steered import Steered


class LinkControl:
    """The links of a run, for those who steer it."""

    def __init__(self, run: Steered) -> None:
        """Takes the links of a run."""
        self._run = run
        self._lab = without_lans(run.lab)
        self._segments = [link for link in run.lab.links if len(link.endpoints) > 2]
        self._wires = {wire.link: wire for wire in run.plan.wires}
        self._guest_of = {node.name: node.guest for node in run.plan.nodes}
        self._changes = changes_of_links(self._lab)
        self._faults = faults_of_links(self._lab)
        self._impaired = {fault.name: fault for fault in self._lab.faults if fault.changes}
        """All faults of links, those by hand too."""
        self._lasting: dict[str, int] = {}
        """Faults that have begun and did not end yet, and when they began."""
        self._steered: dict[int, SteeredLink] = {}
        self.asked: list[tuple[int, LinkChange]] = []
        """The changes that were asked for and taken over, with the instants at which they come."""
        self._pending: list[SteeredLink] = []
        """What links become by what agents have been told of and have not answered yet."""

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verbs of the control socket."""
        return verbs.LINK_SHOW.by(self._on_show) | verbs.LINK_CHANGE.by(self._on_change)

    def explained(self, event: Event) -> Event:
        """An agent's event; where it says that a link has changed, with what the lab, or somebody, said of that."""
        match event:
            case Began(fault=name):
                self._lasting[name] = event.t_ns
            case Undone(fault=name):
                self._lasting.pop(name, None)
        if not isinstance(event, LinkChanged):
            return event
        number = next(place for place, link in enumerate(self._lab.links) if link.name == event.link)
        # An agent makes what comes at once before it says that it has taken it over.
        asked = [after for after in self._pending if after.link.name == event.link]
        at_once = next(iter(asked), self._link(number)).course.states[0].at_ns
        at_ns = event.at_ns or at_once
        knowing = (after for after in asked if any(state.at_ns == at_ns for state in after.course.states))
        became = next(knowing, self._link(number)).became(at_ns)
        return LinkBecame(t_ns=event.t_ns, link=event.link, at_ns=became.at_ns, what=became.what, up=became.up)

    async def _on_show(self, asked: WhichLink) -> LinksShown:
        """All links, or one, as they are now."""
        if asked.link is None:
            return LinksShown(name=None, links=[self._shown(number) for number in range(len(self._lab.links))])
        link, found = self._find(asked.link)
        return LinksShown(name=link.name, links=[self._shown(number) for number in found])

    async def _on_change(self, asked: LinkChange) -> ChangeTaken:
        """Changes a link, now or at a later instant."""
        link, found = self._find(asked.link)
        async with self._run.updates.turn:
            guests = sorted({guest for number in found for guest in self.guests_of(number)})
            is_one_message = len(found) == 1 and len(guests) == 1
            why = f"{link.name} is changed"
            async with contextlib.nullcontext() if is_one_message else self._run.at_one_instant(guests, why):
                now_ns = self._run.now().virtual_ns
                at_ns = now_ns if asked.at is None else asked.at
                if at_ns < now_ns:
                    at, now = numbers.duration(at_ns / 1e9), numbers.duration(now_ns / 1e9)
                    raise ControlError(f"{at}: virtual time is already at {now}, and never goes back")
                try:
                    change = read_change(link, asked.settings, at_ns, asked.directory)
                    changed = {number: self._changed(link, number, change, now_ns) for number in found}
                except LabError as error:
                    raise ControlError(str(error)) from error
                self._check_memory(changed)
                words = " ".join(f"{path}={value}" for path, value in asked.settings)
                told = [await self._tell(number, after, now_ns, at_ns, words) for number, after in changed.items()]
                t_ns = max(told)
                self.asked.append((at_ns, asked))
        return ChangeTaken(t_ns=t_ns, at_ns=max(at_ns, t_ns), links=[self._shown(number) for number in found])

    def _changed(self, link: Link, number: int, change: Change, now_ns: int) -> SteeredLink:
        """What a change makes of a link of the lab, or of a port of a segment."""
        before = self._link(number)
        own = port_change(change, before.link) if len(link.endpoints) > 2 else change
        check_changed(before.link, (*before.changes, own), itertools.chain(*before.faults.values()))
        after = before.changed(own, now_ns)
        for what in after.beyond_wire():
            raise ControlError(f"{link.name}: {what}")
        return after

    async def _tell(self, number: int, after: SteeredLink, now_ns: int, at_ns: int, words: str) -> int:
        """Has the agents take a change over; returns the virtual instant at which they did."""
        before = self._link(number)

        def taken(message: Updated) -> Event:
            self._steered[number] = after
            host_s = self._run.now().host_ns / 1e9
            return LinkSteered(
                t_ns=message.t_ns,
                link=after.link.name,
                asked=words,
                at_ns=at_ns,
                file=message.file,
                host_s=host_s,
            )

        t_ns = 0
        *first, last = self.guests_of(number)
        with self.becoming([after]):
            # All guests have the same kernel and modules: what one takes over the other does not refuse.
            for guest in (*first, last):
                document = link_update(before, after, now_ns, self._run.plan.guests[guest].modules).model_dump_json(
                    indent=1
                )
                told = self._run.updates.tell(guest, UpdateLink, document, taken if guest == last else lambda _: None)
                try:
                    t_ns = max(t_ns, await told)
                except ControlError as error:
                    raise ControlError(f"{before.link.name}: {error}") from error
        return t_ns

    @contextlib.contextmanager
    def becoming(self, after: Sequence[SteeredLink]) -> Iterator[None]:
        """Says what links become while agents are told: they make what comes at once before they answer."""
        self._pending += after
        try:
            yield
        finally:
            for one in after:
                self._pending.remove(one)

    def under(self, faults: Sequence[Fault], touched: Sequence[Fault], now_ns: int) -> dict[int, SteeredLink]:
        """What the links that some faults are of become by these and all others.

        Args:
            faults: All that last or may yet come, in a lab without segments.
            touched: Those of them that come now.
            now_ns: Virtual time since the run's virtual 0.

        Raises:
            LabError: A link could not be that.
            ControlError: A wire, or the memory of a guest, has no room for it.
            ValueError: Too many faults may last together.
        """
        numbers = {find_link(change.link, self._lab.links) for fault in touched for change in fault.changes}
        found = {}
        for number in sorted(numbers):
            of_link = [
                (fault, change)
                for fault in faults
                for change in fault.changes
                if find_link(change.link, self._lab.links) == number
            ]
            before, sets = self._link(number), layers(of_link)
            check_changed(before.link, before.changes, itertools.chain(*sets.values()))
            found[number] = before.suffering(sets, now_ns)
            for what in found[number].beyond_wire():
                raise ControlError(f"{before.link.name}: {what}")
        self._check_memory(found)
        return found

    def impairment(self, fault: Fault, found: Mapping[int, SteeredLink]) -> ImpairLink:
        """What a fault makes of links that become this."""
        own = [found[find_link(change.link, self._lab.links)] for change in fault.changes]
        turns = None if fault.flap is None else Flap(down_ns=fault.flap.down_ns, up_ns=fault.flap.up_ns)
        first = [first_under(map(after.beside_wire, after.course.all_states)) for after in own]
        return impairment([after.link for after in own], first, fault.name, turns)

    def meets(self, fault: Fault, found: Mapping[int, SteeredLink]) -> bool:
        """Whether a fault is of links that become this; of a segment it is of all ports."""
        return any(find_link(change.link, self._lab.links) in found for change in fault.changes)

    def updates(self, found: Mapping[int, SteeredLink], now_ns: int, modules: Sequence[str]) -> list[LinkUpdate]:
        """What agents are told of links that become this, beside the faults themselves."""
        return [link_update(self._link(number), after, now_ns, modules) for number, after in found.items()]

    def take(self, found: Mapping[int, SteeredLink], faults: Sequence[Fault]) -> None:
        """The agents have taken over what links become by new faults."""
        self._steered.update(found)
        self._impaired |= {fault.name: fault for fault in faults if fault.changes}

    def guests_of(self, number: int) -> list[int]:
        """The guests that a link is in, by their numbers."""
        names = {self._guest_of[end.node] for end in self._lab.links[number].endpoints}
        return [number for number, guest in enumerate(self._run.plan.guests) if guest.name in names]

    def _check_memory(self, changed: Mapping[int, SteeredLink]) -> None:
        """Makes sure that guests have room for what can then be under way."""
        planned = states_of_links(self._lab)
        states = list(planned)
        for number, after in changed.items():
            states[number] = [*planned[number], *after.course.all_states]
        is_alone = len(self._run.plan.guests) == 1
        for number in sorted({guest for link in changed for guest in self.guests_of(link)}):
            guest = self._run.plan.guests[number]
            nodes = {node for node, name in self._guest_of.items() if name == guest.name}
            need, given = (memory_bytes(self._lab, each, nodes, is_alone=is_alone) for each in (states, planned))
            if need > max(guest.memory_bytes, given) + MEMORY_SPARE:
                raise ControlError(
                    f"what could then be under way takes a guest of {units.format_size(need)}, and {guest.name} has "
                    f"{units.format_size(guest.memory_bytes)}; say it in the lab's changes: beforehand"
                )

    def _find(self, text: str) -> tuple[Link, list[int]]:
        """The link that is meant, or the segment, and its positions, or those of the segment's ports."""
        try:
            number = find_link(text, [*self._lab.links, *self._segments])
        except ValueError as error:
            raise ControlError(str(error)) from error
        if number < len(self._lab.links):
            return self._lab.links[number], [number]
        segment = self._segments[number - len(self._lab.links)]
        return segment, [place for place, link in enumerate(self._lab.links) if link.endpoints[0] in segment.endpoints]

    def _link(self, number: int) -> SteeredLink:
        if number in self._steered:
            return self._steered[number]
        link = self._lab.links[number]
        wire, faults = self._wires.get(link.name), self._faults.get(number)
        return SteeredLink.planned(link, self._changes.get(number, []), self._lab.seed, wire, faults)

    def _faults_of(self, number: int, now_ns: int) -> list[str]:
        """The faults under which a link is at this moment; one that comes and goes is there or is not."""
        return [
            name
            for name, begin_ns in self._lasting.items()
            if name in self._link(number).faults and self._impaired[name].is_there(now_ns - begin_ns)
        ]

    def _shown(self, number: int) -> LinkShown:
        steered = self._link(number)
        now_ns = max(self._run.now().virtual_ns, steered.course.states[0].at_ns)
        faults = self._faults_of(number, now_ns)
        state = steered.course.at(now_ns, key_of(faults))
        ends = zip(steered.link.endpoints, steered.beside_wire(state).egress, steered.wire_delays_ns, strict=True)
        return LinkShown(
            link=steered.link.name,
            up=state.up,
            faults=faults,
            ends=[
                LinkEnd(
                    node=end.node,
                    interface=end.interface,
                    egress=egress.model_dump(),
                    wire_delay_ns=wire_delay_ns,
                )
                for end, egress, wire_delay_ns in ends
            ],
        )
