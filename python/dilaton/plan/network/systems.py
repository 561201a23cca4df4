"""Autonomous systems: which one each router is, where routers speak BGP.

Each router is a system of its own, as in a data centre that routes by BGP alone (RFC 7938), so every session is one
between systems, over a link, and no interior protocol is needed. A lab may number them. Two neighbours in one system
would need one, and are refused; routers further apart may share a number, as the spines of such a data centre do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dilaton.lab.model import Lab
from dilaton.plan.errors import lab_error

PRIVATE = range(64512, 65535)
"""The numbers of autonomous systems for private use (RFC 6996)."""
PRIVATE_LARGE = range(4_200_000_000, 4_294_967_295)
"""The same where those are too few."""


def as_numbers(lab: Lab, routers: Collection[str]) -> dict[str, int]:
    """The number of each router's system: what the lab gives it, else a private one that no other has."""
    given = {name: number for name in routers if (number := lab.nodes[name].as_number) is not None}
    taken = set(given.values())
    pool = PRIVATE if len(routers) <= len(PRIVATE) - len(taken) else PRIVATE_LARGE
    free = (number for number in pool if number not in taken)
    return {name: given[name] if name in given else next(free) for name in routers}


def check_neighbours(numbers: dict[str, int], neighbours: Iterable[tuple[str, str]]) -> None:
    """Makes sure that neighbours are different systems.

    Raises:
        LabError: two are not.
    """
    for one, other in neighbours:
        if numbers[one] == numbers[other]:
            raise lab_error(
                f"nodes.{other}.as",
                f"{numbers[other]}: {one}, which a link joins to {other}, is the same autonomous system; give each its "
                "own, or both a config: with an interior protocol",
            )
