"""The wires of a run, and what attaches a guest to its ends of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dilaton.host.here.memory.wire import SPIN_NS, VARIABLE, Share, Way, Wire
from dilaton.plan.guests.devices import device_arguments

if TYPE_CHECKING:
    from dilaton.plan import model as plan


@dataclass(frozen=True)
class Attachment:
    """What the kernel of a guest is given for its ends of wires.

    Attributes:
        arguments: of its command line: a network device for each end.
        environment: names the memory of the wires to the clock.
        fd: that memory, to be inherited.
    """

    arguments: list[str]
    environment: dict[str, str]
    fd: int


def lay_out(planned: plan.Plan, share: Share | None = None, *, shares_cores: bool) -> Wire | None:
    """The memory of a plan's wires on this machine; None when there are none."""
    if not planned.wires:
        return None
    numbers = {guest.name: number for number, guest in enumerate(planned.guests)}
    ways = []
    for wire in planned.wires:
        a, b = (numbers[end.guest] for end in wire.ends)
        (there_ns, back_ns), (there_bytes, back_bytes) = wire.delays_ns, wire.ring_bytes
        ways += [Way(a, b, there_ns, there_bytes), Way(b, a, back_ns, back_bytes)]
    return Wire(len(planned.guests), ways, 0 if shares_cores else SPIN_NS, share)


def attach(planned: plan.Plan, wire: Wire | None, number: int) -> Attachment | None:
    """What attaches the guest of that number to its wires."""
    if wire is None:
        return None
    arguments = device_arguments(planned.wires)[planned.guests[number].name]
    return Attachment(arguments, {VARIABLE: wire.variable(number)}, wire.fd)
