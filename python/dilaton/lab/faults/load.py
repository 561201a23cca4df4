"""What a fault has a node send to another one."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, InstanceOf, model_validator

from dilaton.lab.parts.impairments import count
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

KINDS = ("syn", "udp", "http")
"""What can be sent: fields of `Load`, of which exactly one is written."""

PORTS = {"syn": 80, "udp": 9, "http": 80}
"""To which port, unless that is written; 9 is the one that discards (RFC 863)."""

PER_S_MAX = 1_000_000
"""More than a kernel in user space could send in the time of any run."""

SIZE_BYTES = 512
SIZE_BYTES_MAX = 65_507
"""What fits into a packet of IPv4 with the headers of both."""

_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) */ *s", re.ASCII)


def _parse_rate(value: object) -> Fraction:
    """Reads how many a second, `100/s`."""
    if isinstance(value, Fraction):
        return value
    written = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if written is None:
        raise ValueError(f"{units.shown(value)}: a load is so many a second, as in 100/s or 0.5/s")
    per_s = Fraction(written[1])
    if not 0 < per_s <= PER_S_MAX:
        raise ValueError(f"{units.shown(value)}: a load is more than 0/s and at most {PER_S_MAX}/s")
    return per_s


def _parse_size(value: object) -> int:
    size = units.parse_size(value, "the size of a datagram")
    if not 0 < size <= SIZE_BYTES_MAX:
        raise ValueError(f"{units.shown(value)}: the size of a datagram is 1B to {SIZE_BYTES_MAX}B")
    return size


def _parse_path(value: object) -> str:
    path = syntax.parse_text(value)
    if not re.fullmatch(r"/[!-~]*", path):
        raise ValueError(f"{units.shown(value)}: a path begins with /, and has no blanks")
    return path


Rate = Annotated[InstanceOf[Fraction] | None, BeforeValidator(_parse_rate)]


class Load(Part):
    """What is sent to another node, so often, while the fault lasts."""

    node: Text = Field(validation_alias="from")
    """The node that sends."""
    to: Text
    """The node to which it sends."""
    syn: Rate = None
    """First segments of TCP connections that never go on, a second."""
    udp: Rate = None
    """Datagrams, a second."""
    http: Rate = None
    """Requests, a second, each over a connection of its own."""
    written_port: Annotated[int, count("a port", 1, 65535)] | None = Field(default=None, validation_alias="port")
    """To which port; 80 unless written, of datagrams 9."""
    written_size: Annotated[int, BeforeValidator(_parse_size)] | None = Field(default=None, validation_alias="size")
    """Of each datagram, without headers; 512 bytes unless written."""
    written_path: Annotated[str, BeforeValidator(_parse_path)] | None = Field(default=None, validation_alias="path")
    """What requests ask for; / unless written."""

    @model_validator(mode="after")
    def _one_kind(self) -> Load:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"needs what is sent, one of {', '.join(KINDS)}, as in http: 100/s")
        for value, field, kind in ((self.written_size, "size", "udp"), (self.written_path, "path", "http")):
            if value is not None and self.kind != kind:
                raise ValueError(f"{field} goes with {kind}")
        return self

    @property
    def kind(self) -> Literal["syn", "udp", "http"]:
        """Which of `KINDS` it is."""
        return "syn" if self.syn is not None else "udp" if self.udp is not None else "http"

    @property
    def per_s(self) -> Fraction:
        """How many a second."""
        return next(rate for rate in (self.syn, self.udp, self.http) if rate is not None)

    @property
    def port(self) -> int:
        """To which port of the other node."""
        return self.written_port or PORTS[self.kind]

    @property
    def size_bytes(self) -> int:
        """Of a datagram, without headers."""
        return self.written_size or SIZE_BYTES

    @property
    def path(self) -> str:
        """What is asked for."""
        return self.written_path or "/"

    def __str__(self) -> str:
        return f"{self.node} to {self.to} {self.kind} {float(self.per_s):g}/s"
