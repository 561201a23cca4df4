"""Queue disciplines as the plan names them: the parameters of the kernel's own, in the plan's units.

A chain of them hangs on an interface, each the child of the one before it. Every parameter is there, so that applying
one anew resets nothing by leaving it out.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Nanoseconds = Annotated[int, Field(ge=0)]
Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
Limit = Annotated[int, Field(gt=0, lt=2**32)]
Rate = Annotated[int, Field(gt=0)]


ORPHANING_RATE_BIT_PER_S = 10**16
"""A rate at which netem rounds what a packet takes to 0 ns; it does nothing but to hide a queue from its sender."""


class Part(BaseModel):
    """Base of every part of the plan: immutable, and nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RandomLoss(Part):
    """Each packet with this probability, each draw resembling the one before by the correlation."""

    kind: Literal["random"] = "random"
    probability: Ratio
    correlation: Ratio = 0.0


class GilbertElliottLoss(Part):
    """Two states: p good to bad, r bad to good, and the loss in each."""

    kind: Literal["gemodel"] = "gemodel"
    p: Ratio
    r: Ratio
    loss_bad: Ratio
    loss_good: Ratio


class StateLoss(Part):
    """netem's Markov chain of four states, by its transitions."""

    kind: Literal["state"] = "state"
    p13: Ratio
    p31: Ratio
    p32: Ratio
    p23: Ratio
    p14: Ratio


NetemLoss = Annotated[RandomLoss | GilbertElliottLoss | StateLoss, Field(discriminator="kind")]


Seed = Annotated[int, Field(ge=0, lt=2**64)]
"""Where the stream of random numbers of one direction begins; each packet takes one draw of it for each decision."""


class Netem(Part):
    """One netem queue discipline; what is 0 or None does nothing.

    `limit_packets` counts the packets that the discipline holds, those in transit included when it delays. `seed` is
    None where nothing is drawn; kernels before Linux 6.7 pass over it.
    """

    kind: Literal["netem"] = "netem"
    delay_ns: Nanoseconds = 0
    jitter_ns: Nanoseconds = 0
    delay_correlation: Ratio = 0.0
    table: str | None = None
    """The name in `Plan.tables` of how the delay varies; None: uniformly within the jitter."""
    loss: NetemLoss | None = None
    duplicate: Ratio = 0.0
    duplicate_correlation: Ratio = 0.0
    corrupt: Ratio = 0.0
    corrupt_correlation: Ratio = 0.0
    reorder: Ratio = 0.0
    reorder_correlation: Ratio = 0.0
    gap: Annotated[int, Field(ge=0, lt=2**32)] = 0
    rate_bit_per_s: Rate | None = None
    limit_packets: Limit
    seed: Seed | None = None


class Hfsc(Part):
    """One class with one linear upper limit: packets begin to leave exactly when the one before has ended."""

    kind: Literal["hfsc"] = "hfsc"
    rate_bit_per_s: Rate


class Htb(Part):
    """One class: a token bucket that lets a packet go whenever it is not in debt."""

    kind: Literal["htb"] = "htb"
    rate_bit_per_s: Rate
    burst_bytes: Limit


class Tbf(Part):
    """A token bucket that lets a packet go when there are tokens for all of it."""

    kind: Literal["tbf"] = "tbf"
    rate_bit_per_s: Rate
    burst_bytes: Limit


class Pfifo(Part):
    """First in, first out, a limit in packets."""

    kind: Literal["pfifo"] = "pfifo"
    limit_packets: Limit


class Bfifo(Part):
    """First in, first out, a limit in bytes."""

    kind: Literal["bfifo"] = "bfifo"
    limit_bytes: Limit


class Red(Part):
    """Random early detection."""

    kind: Literal["red"] = "red"
    limit_bytes: Limit
    min_bytes: Limit
    max_bytes: Limit
    probability: Ratio
    average_packet_bytes: Limit
    burst_packets: Limit
    rate_bit_per_s: Rate
    """The rate with which it ages its average while idle."""
    ecn: bool


class Codel(Part):
    """Controlled delay (RFC 8289)."""

    kind: Literal["codel"] = "codel"
    limit_packets: Limit
    target_ns: Nanoseconds
    interval_ns: Nanoseconds
    ecn: bool


class FqCodel(Part):
    """Controlled delay in a queue per flow (RFC 8290)."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit_packets: Limit
    flows: Annotated[int, Field(ge=1, le=2**16)]
    target_ns: Nanoseconds
    interval_ns: Nanoseconds
    quantum_bytes: Limit
    ecn: bool


class Pie(Part):
    """Proportional integral controller, enhanced (RFC 8033)."""

    kind: Literal["pie"] = "pie"
    limit_packets: Limit
    target_ns: Nanoseconds
    ecn: bool


class Cake(Part):
    """Common applications kept enhanced: shaper, flow isolation and AQM in one."""

    kind: Literal["cake"] = "cake"
    rate_bit_per_s: Rate
    limit_bytes: Limit


class Sfq(Part):
    """Stochastic fairness queueing."""

    kind: Literal["sfq"] = "sfq"
    limit_packets: Limit
    quantum_bytes: Limit


class Fq(Part):
    """A queue per flow that keeps packets until their departure time; it does not pace by itself."""

    kind: Literal["fq"] = "fq"
    limit_packets: Limit
    flow_limit_packets: Limit


Qdisc = Annotated[
    Netem | Hfsc | Htb | Tbf | Pfifo | Bfifo | Red | Codel | FqCodel | Pie | Cake | Sfq | Fq,
    Field(discriminator="kind"),
]


class DropEvery(Part):
    """Drops every n-th packet of an interface's egress, counted from when this is set."""

    kind: Literal["every"] = "every"
    period: Annotated[int, Field(gt=0)]


class DropPackets(Part):
    """Drops the packets with these numbers, counted from 1 when this is set."""

    kind: Literal["packets"] = "packets"
    numbers: list[Annotated[int, Field(gt=0)]]


class DropRandom(Part):
    """Drops each packet with this probability, from a stream of its own."""

    kind: Literal["random"] = "random"
    probability: Ratio
    seed: Seed


class DropGilbertElliott(Part):
    """Drops as `GilbertElliottLoss`, from a stream of its own."""

    kind: Literal["gemodel"] = "gemodel"
    p: Ratio
    r: Ratio
    loss_bad: Ratio
    loss_good: Ratio
    seed: Seed


Drops = Annotated[DropEvery | DropPackets | DropRandom | DropGilbertElliott, Field(discriminator="kind")]


class Delivery(Part):
    """Gives each packet the instant at which a delivery trace lets it leave, and drops what finds the queue full."""

    trace: str
    """The name of the trace in `Plan.traces`."""
    delay_ns: Nanoseconds
    """What a packet is delayed on its way to the queue."""
    limit_packets: Limit


class Egress(Part):
    """Everything that an interface does to the packets that leave by it."""

    drops: Drops | None = None
    delivery: Delivery | None = None
    qdiscs: list[Qdisc] = []
    """A chain, the outermost first."""

    @property
    def delay_ns(self) -> int:
        """What every packet is delayed, on average."""
        return sum(one.delay_ns for one in self.qdiscs if isinstance(one, Netem))

    @property
    def rate_bit_per_s(self) -> int | None:
        """The rate at which packets leave; None: unlimited, or that of a trace."""
        rates = (getattr(one, "rate_bit_per_s", None) for one in self.qdiscs)
        return min((rate for rate in rates if rate and rate < ORPHANING_RATE_BIT_PER_S), default=None)
