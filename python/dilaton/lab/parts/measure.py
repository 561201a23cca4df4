"""What a lab wants measured: samples and captures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.text import filters, syntax, units
from dilaton.lab.text.part import Part

PERIOD_MIN_NS = 10_000
PERIOD_MAX_NS = 24 * units.DURATIONS["h"]
SNAPLEN_MIN, SNAPLEN_MAX = 14, 262_144
"""An Ethernet header, and more than any packet, as tcpdump's default."""


def _parse_period(value: object) -> int:
    period = units.parse_duration(value, "a period", PERIOD_MAX_NS)
    if period < PERIOD_MIN_NS:
        shortest = units.format_duration(PERIOD_MIN_NS)
        raise ValueError(f"{units.format_duration(period)}: a period must be at least {shortest}")
    return period


def _parse_interface(value: object) -> str:
    node, interface = syntax.parse_endpoint(syntax.parse_text(value))
    if not interface:
        raise ValueError(f"{node}: a capture is on an interface; write for example {node}:eth0")
    return f"{node}:{interface}"


def _parse_filter(value: object) -> str:
    text = syntax.parse_text(value).strip()
    if not text:
        raise ValueError("an empty filter; leave it out to keep every packet")
    filters.compile_filter(text, SNAPLEN_MAX)
    return text


Period = Annotated[int, BeforeValidator(_parse_period)]


class Capture(Part):
    """The packets of an interface, both directions, that are kept."""

    interface: Annotated[str, BeforeValidator(_parse_interface)]
    """As `a:eth0`."""
    filter: Annotated[str, BeforeValidator(_parse_filter)] | None = None
    """None: every packet."""
    snaplen: Annotated[
        int, BeforeValidator(lambda value: units.parse_count(value, "a snaplen", SNAPLEN_MIN, SNAPLEN_MAX))
    ] = SNAPLEN_MAX
    """Bytes of a packet that are kept at most."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        return {"interface": data} if isinstance(data, str) else data


class Measure(Part):
    """What is sampled, how often in virtual time, what is noted as it comes, and what is captured."""

    interfaces_ns: Period | None = Field(default=None, validation_alias="interfaces")
    """Counters and queues of all interfaces."""
    tcp_ns: Period | None = Field(default=None, validation_alias="tcp")
    """The inside of all TCP connections."""
    nodes_ns: Period | None = Field(default=None, validation_alias="nodes")
    """CPU, memory and disk of all nodes."""
    outputs: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    """Whether it is noted when processes wrote what."""
    capture: list[Capture] = Field(default_factory=list)
