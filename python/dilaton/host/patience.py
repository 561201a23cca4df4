"""How long a guest is waited for that has to do something.

Host seconds say little about it: beside other load a guest may be ten times slower than alone, and while the host was
suspended it did not run at all. What counts is how often in a row it is found where it was before. So one that gets on
is waited for, and whoever looks is held up by what holds up the guest.
"""

from __future__ import annotations

THIN_SHARE = 40
"""Patience wears thin when one look in so many of those that it has are gone: half a second of twenty."""


class Patience:
    """Ends when a guest has stood still for a number of looks, or has gone far beyond what it had to do."""

    def __init__(self, looks_max: int, farthest: int | None = None) -> None:
        """Begins to wait.

        Args:
            looks_max: Looks in a row, 1 or more, that may find the guest where it was.
            farthest: Where a guest counts as astray; None: nowhere.
        """
        self._looks_max = looks_max
        self._farthest = farthest
        self._place = -1
        self._looks = 0

    def ends(self, place: int) -> bool:
        """Whether it ends with a look that finds the guest at `place`, which only grows, as virtual time does."""
        self._looks = self._looks + 1 if place == self._place else 0
        self._place = place
        return self._looks >= self._looks_max or (self._farthest is not None and place > self._farthest)

    def wears_thin(self) -> bool:
        """Whether the guest has stood still for so many looks already that it is worth a look why."""
        return self._looks * THIN_SHARE >= self._looks_max
