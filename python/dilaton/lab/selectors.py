"""What a list of names means: nodes, groups, patterns such as `db*`, and some of those, drawn from the lab's seed.

`one of db*`, `2 of db*` and `50% of db*` are drawn: nothing that the same list of names means already is drawn again,
so that two groups of a partition that are both drawn never share a node.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol, TypeVar

from dilaton.lab.errors import unknown
from dilaton.lab.parts.nodes import Node

_QUANTITY = re.compile(r"(?:(one)|([0-9]+)|([0-9]+(?:\.[0-9]+)?)%) +of +(\S.*)")

Thing = TypeVar("Thing")


class Whole(Protocol):
    """What names are looked up in."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes, by name."""
        ...

    @property
    def groups(self) -> Mapping[str, Node]:
        """All groups, by name."""
        ...


class Quantity(NamedTuple):
    """How many of what is meant are drawn: a number, or a share of them."""

    words: str
    number: int | None
    share: float | None

    def drawn_from(self, candidates: Sequence[Thing], draw: random.Random) -> list[Thing]:
        """So many of the candidates, in their order; of a share the nearest number, and at least one.

        Raises:
            ValueError: There are not so many.
        """
        count = max(1, round(len(candidates) * (self.share or 0))) if self.number is None else self.number
        if count > len(candidates):
            left = {0: "there is none left", 1: "there is only one"}
            raise ValueError(f"{self.words}: {left.get(len(candidates), f'there are only {len(candidates)}')}")
        places = sorted(draw.sample(range(len(candidates)), count))
        return [candidates[place] for place in places]


def split_quantity(text: str) -> tuple[Quantity | None, str]:
    """How many are drawn, None for all of them, and of what.

    Raises:
        ValueError: None at all, or more than all.
    """
    written = _QUANTITY.fullmatch(text)
    if written is None:
        return None, text
    one, number, percent, names = written.groups()
    count = 1 if one else int(number) if number else None
    share = float(percent) / 100 if percent else None
    if count == 0 or (share is not None and not 0 < share <= 1):
        raise ValueError(f"{text}: draws none or more than all; write one of {names}, 2 of {names} or 50% of {names}")
    return Quantity(text, count, share), names


def is_pattern(text: str) -> bool:
    """Whether a name has signs that stand for other characters."""
    return any(sign in text for sign in "*?[")


class Selection:
    """The nodes that one or several lists of names mean, each at most once where it is drawn."""

    def __init__(self, whole: Whole, seed: str, switches: Collection[str] = ()) -> None:
        """Selects from a lab; the same seed draws the same.

        Args:
            whole: The lab.
            seed: Of what is drawn.
            switches: Nodes that only their own names mean. What is about nodes that have addresses or run programs is
                about no switch, also not one that the plan makes of a segment.
        """
        self._whole = whole
        self._switches = switches
        self._draw = random.Random(f"{seed} select")
        self._taken: set[str] = set()

    def select(self, written: Iterable[str]) -> list[str]:
        """The nodes that are meant, in the order in which they are written, those of a pattern in that of the lab.

        Raises:
            ValueError: A name is of nothing, a pattern meets no node, a node is meant twice, or too few could be drawn.
        """
        found: list[str] = []
        for text in written:
            quantity, names = split_quantity(text)
            meant = self._meant(names)
            if quantity is not None:
                meant = quantity.drawn_from([name for name in meant if name not in self._taken], self._draw)
            for name in meant:
                if name in found:
                    raise ValueError(f"{name} is named twice")
                found.append(name)
            self._taken.update(meant)
        return found

    def _meant(self, names: str) -> list[str]:
        found = nodes_of(self._whole, names)
        if names in self._whole.nodes:
            return found
        others = [name for name in found if name not in self._switches]
        if not others:
            raise ValueError(f"{names}: only switches, which run no programs and have no addresses")
        return others


def nodes_of(whole: Whole, text: str) -> list[str]:
    """The nodes that a name, a group or a pattern means, in the order of the lab.

    Raises:
        ValueError: There is none.
    """
    if text in whole.nodes:
        return [text]
    if text in whole.groups:
        found = [name for name, node in whole.nodes.items() if node.group == text]
        if not found:
            raise ValueError(f"{text}: no node is of this group")
        return found
    if is_pattern(text):
        found = [name for name in whole.nodes if fnmatchcase(name, text)]
        if not found:
            raise ValueError(f"{text}: meets no node")
        return found
    raise ValueError(unknown("node or group", text, [*whole.nodes, *whole.groups]))
