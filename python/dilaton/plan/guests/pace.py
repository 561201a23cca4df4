"""How fast virtual time is to pass, from what a lab says of it and from what its links promise."""

from __future__ import annotations

from fractions import Fraction

from dilaton.lab import model as lab
from dilaton.plan.model import Speed, Tdf, Time, Watch
from dilaton.plan.network.bounds import Network

LATE_HOST_NS = 20_000
"""What one timer in a hundred is later than on an ordinary host, in host time, when its guest has much to do."""

LEAST = {"wall": Fraction(1, 10), "work": Fraction(1), "event": Fraction(1)}
"""The least TDF by itself. On the wall drive less is less to wait for; on the work drive idle time is free already, and
less would only be a slower CPU."""


def time(written: lab.Time, network: Network, lateness_ns: int | None) -> Time:
    """The time of a lab with this network, which does not mind that lateness."""
    tdf, watch = _watch(written, network)
    speed = None if written.max_speed is None else Speed.of(written.max_speed)
    return Time(drive=written.drive, tdf=Tdf.of(tdf), max_speed=speed, watch=watch, lateness_ns=lateness_ns)


def highest_tdf(written: lab.Time) -> Fraction:
    """The highest TDF that a run may have by itself."""
    return written.auto.max if written.tdf == "auto" else written.tdf


def _watch(written: lab.Time, network: Network) -> tuple[Fraction, Watch | None]:
    """The TDF at the start, and how it is watched."""
    auto = written.auto
    if written.tdf == "auto":
        least = auto.min or min(filter(None, (LEAST[written.drive], auto.max, auto.start)))
        start, most = auto.start or predicted(network), auto.max
        start = min(max(start, least), most)
    elif written.on_violation == "continue":
        return written.tdf, None
    else:
        start = least = most = written.tdf
    watch = Watch(
        policy=auto.policy,
        least=Tdf.of(least),
        most=Tdf.of(most),
        target=auto.target,
        epoch_ns=auto.epoch_ns,
        on_violation=written.on_violation,
    )
    return start, watch


def predicted(network: Network) -> Fraction:
    """The TDF, whole, at which timers that are as late as on an ordinary host are in time for this network's links."""
    bound_ns = network.late_ns_max
    return Fraction(-(-LATE_HOST_NS // max(1, int(bound_ns)))) if bound_ns else Fraction(1)
