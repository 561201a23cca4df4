"""Links as users write them: what a direction does, what joins two nodes, and what changes while the lab runs.

Parameters are given in up to three places, each more particular than the one before: the `netem:` text, the link's own
fields, and those of one direction. They are merged leaf by leaf (`merged`): what a place does not name it leaves alone,
so that `b_to_a: {delay: {jitter: 1ms}}` keeps the link's mean, and a change of the loss keeps the delay.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from ipaddress import IPv4Interface, IPv6Interface
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, InstanceOf, ModelWrapValidatorHandler, PrivateAttr, model_validator

from dilaton.lab.parts.addressing import parse_address, parse_addresses
from dilaton.lab.parts.impairments import LOSS_MODELS, Chance, Delay, Loss, Queue, Reorder, Trace, count, duration
from dilaton.lab.text import syntax, units
from dilaton.lab.text.document import MAIN_FIELDS
from dilaton.lab.text.netem_text import parse_netem
from dilaton.lab.text.part import Part, Text

Way = Literal["a_to_b", "b_to_a"]
WAYS: tuple[Way, Way] = ("a_to_b", "b_to_a")

AnyPart = TypeVar("AnyPart", bound=Part)

MTU_OF_IPV6 = 1280
"""Bytes of the smallest MTU that a link has to have for IPv6 (RFC 8200, section 5)."""


class Impairments(Part):
    """What can be written as netem's own text."""

    rate_bit_per_s: Annotated[int, BeforeValidator(units.parse_link_rate)] | None = Field(
        default=None, validation_alias="rate"
    )
    """None: unlimited."""
    delay: Delay = Delay.model_construct()
    loss: Loss = Loss.model_construct(random=0.0)
    duplicate: Chance = Chance.model_construct()
    corrupt: Chance = Chance.model_construct()
    reorder: Reorder = Reorder.model_construct()

    @property
    def delay_ns(self) -> int:
        """One-way delay: its mean."""
        return self.delay.mean_ns


class Direction(Impairments):
    """What one direction of a link does to packets."""

    queue: Queue = Queue.model_construct()
    trace: Trace | None = None
    """A delivery trace in place of a rate."""
    netem: Annotated[Impairments, BeforeValidator(parse_netem)] = Impairments.model_construct()
    """What was written as text; the other fields count before it."""

    @property
    def rates_bit_per_s(self) -> tuple[int, ...]:
        """Every rate that the direction has in the course of time; none: unlimited, or a trace from a file."""
        if self.trace is not None and self.trace.schedule is not None:
            return tuple(rate for _, rate in self.trace.schedule)
        return () if self.rate_bit_per_s is None else (self.rate_bit_per_s,)


OWN_FIELDS = frozenset(Direction.model_fields) - {"netem"}
"""Those of a direction that are not written as text."""


def merged(base: AnyPart, over: Part, among: Container[str] | None = None) -> AnyPart:
    """`base` with what was written in `over`, leaf by leaf; an empty mapping puts the defaults back.

    Args:
        base: What to begin with.
        over: What counts before it.
        among: The fields that count; None: all.
    """
    update: dict[str, Any] = {}
    for name in over.model_fields_set:
        if among is not None and name not in among:
            continue
        old, new = getattr(base, name), getattr(over, name)
        keep = isinstance(old, Part) and type(old) is type(new) and new.model_fields_set and not _replaces(old, new)
        update[name] = merged(old, new) if keep else new
    return base.model_copy(update=update) if update else base


def _replaces(old: Part, new: Part) -> bool:
    """Whether `new` is another model altogether, of which nothing old is left."""
    if isinstance(new, Loss) and isinstance(old, Loss):
        names_model = any(getattr(new, name) is not None for name in LOSS_MODELS)
        return names_model and (old.random is None or new.random is None)
    return isinstance(new, Trace)


def effective(*layers: Part) -> Direction:
    """The parameters of a direction after all layers, each counting before those left of it."""
    direction = Direction()
    for layer in layers:
        if isinstance(layer, Direction) and "netem" in layer.model_fields_set:
            direction = merged(direction, layer.netem)
        written = layer.model_fields_set & OWN_FIELDS
        direction = merged(direction, layer, among=written)
        # A rate and a trace exclude each other; the later one counts.
        if "rate_bit_per_s" in written and "trace" not in written:
            direction = direction.model_copy(update={"trace": None})
        elif "trace" in written and "rate_bit_per_s" not in written:
            direction = direction.model_copy(update={"rate_bit_per_s": None})
    return direction


class Endpoint(Part):
    """One end of a link."""

    node: Text
    interface: Annotated[str, BeforeValidator(syntax.parse_interface)] = ""
    """Empty only until it is part of a lab, which gives it the next free of eth0, eth1, … of its node."""
    addresses: Annotated[
        list[Annotated[InstanceOf[IPv4Interface] | InstanceOf[IPv6Interface], BeforeValidator(parse_address)]],
        BeforeValidator(parse_addresses),
    ] = Field(default_factory=list, validation_alias="address")
    """Empty: planned."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        node, interface = syntax.parse_endpoint(data)
        return {"node": node, "interface": interface} if interface else {"node": node}


class BothWays(Direction):
    """Parameters of both directions, and what differs in each."""

    a_to_b: Direction = Direction.model_construct()
    b_to_a: Direction = Direction.model_construct()


class Link(BothWays):
    """A link between two nodes, a and b in the order in which they are written; or a segment of more than two.

    Each node of a segment has a port of its own with the rate and queue of the link; delay, loss and all else happens
    once, to what it sends.
    """

    endpoints: Annotated[tuple[Endpoint, ...], BeforeValidator(syntax.split_endpoints)]
    mtu: Annotated[int, count("an MTU", 68, 65535)] = 1500
    offload: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    """Whether interfaces keep segmentation and checksum offloads; with them a queue sees packets beyond the MTU."""
    cost: Annotated[int, count("a cost", 1, 65535)] = 1
    """What a path over the link costs; the shortest path is the cheapest."""
    lookahead_ns: Annotated[int, duration("a lookahead")] | None = Field(default=None, validation_alias="lookahead")
    """Between guests: at most so much of the delay is the wire's, so that it can become as short while the run goes on.
    None: all that it ever has as planned."""

    @model_validator(mode="before")
    @classmethod
    def _from_short_form(cls, data: Any) -> Any:
        return {"endpoints": data} if isinstance(data, str) else data

    def direction(self, which: Way) -> Direction:
        """The effective parameters of one direction: the link's own, and those written for the direction."""
        return effective(self, getattr(self, which))

    @property
    def round_trip_ns(self) -> int:
        """Delay there and back: what a bandwidth-delay product is reckoned with."""
        return self.direction("a_to_b").delay_ns + self.direction("b_to_a").delay_ns

    @property
    def name(self) -> str:
        """How it is spoken of: `a:eth0--b:eth0`."""
        return "--".join(f"{end.node}:{end.interface}" for end in self.endpoints)


class Change(BothWays):
    """New parameters of a link from an instant on; what it does not name stays as it is."""

    at_ns: Annotated[int, duration("an instant")] = Field(validation_alias="at")
    link: Text
    """The link's endpoints, as `a -- b` or `a:eth0 -- b:eth0`."""
    down: Annotated[bool, BeforeValidator(syntax.parse_flag)] | None = None
    """Whether both interfaces are down from then on; None: as before."""
    _words: str = PrivateAttr("")

    @model_validator(mode="wrap")
    @classmethod
    def _keep_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        change = handler(data)
        if isinstance(data, Mapping):
            change._words = words_of(data, change.down)
        return change

    @property
    def words(self) -> str:
        """What it sets, as it was written: `down`, `rate 5Mbit, delay 60ms`."""
        return self._words

    def worded(self, words: str) -> Change:
        """The same change, in other words."""
        copy = self.model_copy()
        copy._words = words
        return copy

    def layers(self, which: Way) -> tuple[Part, ...]:
        """What it sets of one direction, as layers for `effective`."""
        return (self, getattr(self, which))


SETTINGS = frozenset(
    {str(one.validation_alias or name) for name, one in BothWays.model_fields.items()}
    | {*BothWays.model_fields, "down"}
)
"""What can be set of a link, as it is written."""


def words_of(data: Mapping[str, Any], down: bool | None) -> str:
    """What is set of a link, as it was written: `down`, `rate 5Mbit, delay 60ms, delay.jitter 1ms`."""
    return ", ".join(_words({name: value for name, value in data.items() if name in SETTINGS}, down))


def _words(data: Mapping[str, Any], down: bool | None, within: str = "") -> Iterator[str]:
    """What is set, one by one; it has the link `down`, or up again."""
    for name, value in data.items():
        if name == "down" and not within:
            yield "down" if down else "up"
        elif isinstance(value, Mapping):
            yield from _words(value, down, f"{within}{name}.")
        elif within and name in MAIN_FIELDS:
            yield f"{within[:-1]} {value}"
        else:
            yield f"{within}{name} {value}"


def find_link(text: str, links: list[Link]) -> int:
    """The position of the link that `a -- b` or `a:eth0 -- b:eth1` means, in any order; of a segment, all its ends.

    Raises:
        ValueError: there is none, or there are several.
    """
    ends = [Endpoint.model_validate(end) for end in syntax.split_endpoints(text)]  # type: ignore[attr-defined]

    def is_end(written: Endpoint, end: Endpoint) -> bool:
        return written.node == end.node and written.interface in ("", end.interface)

    def is_meant(link: Link) -> bool:
        # No node is twice on a link.
        pairs = [any(is_end(written, end) for written in ends) for end in link.endpoints]
        return len(pairs) == len(ends) and all(pairs)

    found = [number for number, link in enumerate(links) if is_meant(link)]
    if len(found) == 1:
        return found[0]
    names = [link.name for link in links]
    if found:
        raise ValueError(f"{text}: several links: write one of {', '.join(links[number].name for number in found)}")
    hint = syntax.did_you_mean(text, names)
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    raise ValueError(f"{text}: no such link{hint or (f'; known: {listed}' if names else '; there is none at all')}")
