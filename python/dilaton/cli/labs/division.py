"""How a lab would be divided among machines: for those who look at it before they run it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dilaton.cli.errors import failing, refusing
from dilaton.host.errors import GuestError
from dilaton.measure import numbers
from dilaton.plan.model import Plan
from dilaton.run import machines as places
from dilaton.run.machines import Division
from dilaton.service.prepare import refuse_division

CUTS_SHOWN_MAX = 10


def divided(plan: Plan, machines: int, onto: Sequence[str]) -> Division | None:
    """How a run would divide a plan; None where one machine has all of it.

    Raises:
        RequestError: It cannot be divided so.
        BadInputError: No host can have such a name.
        FailedError: A host cannot be asked, or has too little memory.
        HostLacksError: A host lacks what the run needs.
    """
    refuse_division(plan, machines, onto)
    if machines == 1 and not onto:
        return None
    with failing(GuestError), refusing(ValueError, option="--onto"):
        return places.divided(plan, machines, onto)


def placed(plan: Plan, division: Division) -> Plan:
    """The plan with the machine of each guest."""
    guests = [
        guest.model_copy(update={"machine": home}) for guest, home in zip(plan.guests, division.homes, strict=True)
    ]
    return plan.model_copy(update={"guests": guests})


def words(plan: Plan, division: Division) -> Iterator[str]:
    """Where guests are, and what the links between machines cost, a line each."""
    for machine, name in enumerate(division.names):
        here = [guest.name for guest, home in zip(plan.guests, division.homes, strict=True) if home == machine]
        yield f"{name}: {', '.join(here)}"
    for cut in division.cuts[:CUTS_SHOWN_MAX]:
        what = "what agents tell each other" if cut.link is None else f"link {cut.link}"
        a, b = (division.names[machine] for machine in cut.machines)
        ahead, cost = (numbers.duration(value, digits=2) for value in (cut.delay_ns / 1e9, cut.host_s_per_virtual_s))
        yield f"{what}, from {a} to {b}: {ahead}, about {cost} of host time per virtual second while both ends work"
    if (more := len(division.cuts) - CUTS_SHOWN_MAX) > 0:
        yield f"and {numbers.counted(more, 'longer link')} between machines"
