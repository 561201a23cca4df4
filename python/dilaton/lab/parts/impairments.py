"""What a direction of a link can do to packets, each as users write it. The words are those of tc-netem(8).

A value alone stands for its main field: `delay: 20ms` is `delay: {mean: 20ms}`, `loss: 1%` is `loss: {random: 1%}`.
Which fields were written is kept (`model_fields_set`), since a later change sets only what it names.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    InstanceOf,
    ValidationInfo,
    model_validator,
)

from dilaton.lab.beside import files
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part

DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")
DISCIPLINES = ("fifo", "red", "codel", "fq_codel", "pie", "cake", "sfq", "fq", "tbf", "htb")
MARKING = ("red", "codel", "fq_codel", "pie", "cake")
"""Disciplines that can mark packets instead of dropping them (ECN)."""
EVERY_MAX = 2**31 - 1
PACKETS_MAX = 100_000
"""How many lost packets of one direction may be listed."""


def count(what: str, minimum: int, maximum: int) -> BeforeValidator:
    """Reads a whole number from `minimum` to `maximum`."""
    return BeforeValidator(lambda value: units.parse_count(value, what, minimum, maximum))


def duration(what: str, maximum_ns: int = units.DURATION_MAX) -> BeforeValidator:
    """Reads a duration into ns."""
    return BeforeValidator(lambda value: units.parse_duration(value, what, maximum_ns))


def percentage(what: str) -> BeforeValidator:
    """Reads 0 % to 100 % into a ratio."""
    return BeforeValidator(lambda value: units.parse_loss(value, what))


def size(what: str) -> BeforeValidator:
    """Reads a size into bytes."""
    return BeforeValidator(lambda value: units.parse_size(value, what))


def short_form(field: str) -> Callable[[type[Part], Any], Any]:
    """A validator that takes a value alone for `field`."""

    def expand(_: type[Part], data: Any) -> Any:
        return data if isinstance(data, dict | Part) else {field: data}

    return expand


Correlation = Annotated[float, percentage("a correlation")]


@dataclass(frozen=True)
class Distribution:
    """How a delay varies: a name, and for a file the table in it (values of 1/8192 of the jitter, ascending)."""

    name: str
    table: tuple[int, ...] | None = None


def _parse_distribution(value: object, info: ValidationInfo) -> Distribution:
    if isinstance(value, Distribution):
        return value
    text = syntax.parse_text(value)
    if text in DISTRIBUTIONS:
        return Distribution(text)
    if "/" not in text and "." not in text:
        hint = syntax.did_you_mean(text, DISTRIBUTIONS) or f"; use {', '.join(DISTRIBUTIONS)} or a table file"
        raise ValueError(f"{text}: not a distribution{hint}")
    return Distribution(text, files.read_table(text, _directory(info)))


def _directory(info: ValidationInfo) -> str:
    """Where paths in the lab start: the directory of its file."""
    return str((info.context or {}).get("directory", os.curdir))


class Delay(Part):
    """One-way delay. With a jitter each packet's own is drawn from the distribution around the mean."""

    mean_ns: Annotated[int, duration("a delay", units.DELAY_MAX)] = Field(default=0, validation_alias="mean")
    jitter_ns: Annotated[int, duration("a jitter", units.DELAY_MAX)] = Field(default=0, validation_alias="jitter")
    correlation: Correlation = 0.0
    distribution: Annotated[InstanceOf[Distribution], BeforeValidator(_parse_distribution)] = Distribution("uniform")

    _from_text = model_validator(mode="before")(classmethod(short_form("mean")))  # type: ignore[arg-type]


class GilbertElliott(Part):
    """Two states, good and bad: p to bad, r back, loss of 1-h in bad and of 1-k in good."""

    p: Annotated[float, percentage("p")]
    r: Annotated[float, percentage("r")] | None = None
    """None: 1 - p, which makes the states independent."""
    loss_bad: Annotated[float, percentage("1-h")] = Field(default=1.0, validation_alias="1-h")
    loss_good: Annotated[float, percentage("1-k")] = Field(default=0.0, validation_alias="1-k")


class StateLoss(Part):
    """The four-state Markov chain: 1 received, 2 received within a burst, 3 lost within a burst, 4 lost alone."""

    p13: Annotated[float, percentage("p13")]
    p31: Annotated[float, percentage("p31")] | None = None
    """None: 1 - p13."""
    p32: Annotated[float, percentage("p32")] = 0.0
    p23: Annotated[float, percentage("p23")] = 1.0
    p14: Annotated[float, percentage("p14")] = 0.0


def _parse_packets(value: object) -> object:
    items = value if isinstance(value, list | tuple) else [value]
    if not items:
        raise ValueError("no packets: list their numbers, the first is 1, as in [17, 42]")
    if len(items) > PACKETS_MAX:
        raise ValueError(f"{len(items)} packets: at most {PACKETS_MAX} can be listed")
    return tuple(items)


class Loss(Part):
    """One model of loss; which one is the field that is written."""

    random: Annotated[float, percentage("a loss")] | None = None
    """Probability; with `correlation`, that of netem's correlated draws."""
    correlation: Correlation = 0.0
    gemodel: GilbertElliott | None = None
    state: StateLoss | None = None
    every: Annotated[int, count("a period of packets", 1, EVERY_MAX)] | None = None
    """Every n-th packet of the direction, counted from the start of the run."""
    packets: (
        Annotated[
            tuple[Annotated[int, count("the number of a packet", 1, EVERY_MAX)], ...], BeforeValidator(_parse_packets)
        ]
        | None
    ) = None
    """The packets with these numbers in the direction; the first after the start of the run is 1."""
    seed: Annotated[int, BeforeValidator(syntax.parse_seed)] | None = None
    """The seed of `random` and `gemodel`, with which the losses are the same in every run of the same packets."""

    _from_text = model_validator(mode="before")(classmethod(short_form("random")))  # type: ignore[arg-type]

    @model_validator(mode="after")
    def _one_model(self) -> Loss:
        models = [name for name in LOSS_MODELS if getattr(self, name) is not None]
        if len(models) > 1 or (not models and not {"correlation", "seed"} & self.model_fields_set):
            raise ValueError(f"needs exactly one of {', '.join(LOSS_MODELS)}, such as {{random: 1%}}")
        if self.correlation and models and self.random is None:
            raise ValueError(f"a correlation belongs to a random loss, not to {models[0]}")
        return self


LOSS_MODELS = ("random", "gemodel", "state", "every", "packets")


class Chance(Part):
    """How probable something is, and how much each draw resembles the one before."""

    probability: Annotated[float, percentage("a probability")] = 0.0
    correlation: Correlation = 0.0

    _from_text = model_validator(mode="before")(classmethod(short_form("probability")))  # type: ignore[arg-type]


class Reorder(Chance):
    """Packets that are sent at once while others are delayed; with a gap only every gap-th can be one."""

    gap: Annotated[int, count("a gap", 1, 2**31 - 1)] = 1


class PacketLimit(Part):
    """A queue that holds this many packets."""

    packets: int = Field(gt=0)


class ByteLimit(Part):
    """A queue that holds this many bytes."""

    bytes: int = Field(gt=0)


class BdpLimit(Part):
    """A queue that holds this many bandwidth-delay products: the direction's rate times `Link.round_trip_ns`."""

    factor: InstanceOf[Fraction]


class TimeLimit(Part):
    """A queue that holds what the direction's rate sends in this time."""

    ns: int = Field(gt=0)


QueueLimit = PacketLimit | ByteLimit | BdpLimit | TimeLimit


def _parse_limit(value: object) -> QueueLimit:
    if isinstance(value, PacketLimit | ByteLimit | BdpLimit | TimeLimit):
        return value
    kind, amount = syntax.parse_queue_limit(value)
    if kind == "packets":
        return PacketLimit(packets=int(amount))
    if kind == "time":
        return TimeLimit(ns=int(amount))
    return ByteLimit(bytes=int(amount)) if kind == "bytes" else BdpLimit(factor=amount)


def _parse_discipline(value: object) -> object:
    text = {"pfifo": "fifo", "bfifo": "fifo"}.get(str(value), value)
    if text not in DISCIPLINES:
        hint = syntax.did_you_mean(units.shown(value), DISCIPLINES) or f"; use {', '.join(DISCIPLINES)}"
        raise ValueError(f"{units.shown(value)}: not a queue discipline{hint}")
    return text


DISCIPLINES_WITH: dict[str, tuple[str, ...]] = {
    "ecn": MARKING,
    "target_ns": ("codel", "fq_codel", "pie"),
    "interval_ns": ("codel", "fq_codel"),
    "flows": ("fq_codel",),
    "burst_bytes": ("tbf", "htb"),
    "min_bytes": ("red",),
    "max_bytes": ("red",),
    "probability": ("red",),
}
"""The disciplines that know a field of `Queue`."""


class Queue(Part):
    """The queue in front of one direction of a link; no limit: the plan chooses. The rest is the kernel's."""

    limit: Annotated[QueueLimit, BeforeValidator(_parse_limit)] | None = None
    discipline: Annotated[
        Literal["fifo", "red", "codel", "fq_codel", "pie", "cake", "sfq", "fq", "tbf", "htb"],
        BeforeValidator(_parse_discipline),
    ] = "fifo"
    ecn: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    target_ns: Annotated[int, duration("a target", 10**9)] | None = Field(default=None, validation_alias="target")
    interval_ns: Annotated[int, duration("an interval", 100 * 10**9)] | None = Field(
        default=None, validation_alias="interval"
    )
    flows: Annotated[int, count("a number of flows", 1, 2**16)] | None = None
    burst_bytes: Annotated[int, size("a burst")] | None = Field(default=None, validation_alias="burst")
    min_bytes: Annotated[int, size("a minimum")] | None = Field(default=None, validation_alias="min")
    max_bytes: Annotated[int, size("a maximum")] | None = Field(default=None, validation_alias="max")
    probability: Annotated[float, percentage("a probability")] | None = None


def _parse_step(value: object) -> tuple[int, int]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{units.shown(value)}: a step is an instant and a rate, as in [5s, 2Mbit]")
    return units.parse_duration(value[0], "an instant"), units.parse_link_rate(value[1])


def _check_schedule(steps: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    if not steps or steps[0][0] != 0:
        raise ValueError("must begin with the rate at 0s, as in [[0s, 10Mbit], [5s, 2Mbit]]")
    for (earlier, _), (later, _) in itertools.pairwise(steps):
        if later <= earlier:
            first, second = units.format_duration(earlier), units.format_duration(later)
            raise ValueError(f"{second} comes after {first}: write the instants in ascending order")
    return steps


def _parse_trace_file(value: object, info: ValidationInfo) -> TraceFile:
    if isinstance(value, TraceFile):
        return value
    text = syntax.parse_text(value)
    return TraceFile(text, files.read_trace(text, _directory(info)))


@dataclass(frozen=True)
class TraceFile:
    """A delivery trace of mahimahi: the milliseconds at which 1500 bytes may leave, ascending, the last the period."""

    name: str
    opportunities_ms: tuple[int, ...]


class Trace(Part):
    """A rate that varies: a mahimahi delivery trace, or instants with the rate from then on."""

    file: Annotated[InstanceOf[TraceFile], BeforeValidator(_parse_trace_file)] | None = None
    schedule: (
        Annotated[
            tuple[Annotated[tuple[int, int], BeforeValidator(_parse_step)], ...],
            BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
            AfterValidator(_check_schedule),
        ]
        | None
    ) = None
    """(instant in ns, rate in bit/s), ascending from 0."""

    @model_validator(mode="after")
    def _one_kind(self) -> Trace:
        if (self.file is None) == (self.schedule is None):
            raise ValueError("needs exactly one of file and schedule, such as {file: lte.up}")
        return self
