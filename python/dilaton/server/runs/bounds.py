"""How much of the server each person has at the same time, of what lasts: programs in nodes, captures."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

from dilaton.server.problems import Problem

OF_PERSON_MAX = 20
ALL_MAX = 200


class Bounds:
    """Counts what goes on of a kind."""

    def __init__(self, what: str) -> None:
        """`what` they are called, many of them."""
        self._what = what
        self._of: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many go on."""
        return self._of.total()

    @contextlib.contextmanager
    def one_of(self, person: str) -> Iterator[None]:
        """Counts one for as long as the context lasts.

        Raises:
            Problem: there are too many.
        """
        mine, all_of = self._of[person], self.count
        if mine >= OF_PERSON_MAX or all_of >= ALL_MAX:
            raise Problem(
                409,
                "limit",
                f"there are {mine} {self._what} of yours and {all_of} of all; at most {OF_PERSON_MAX} and {ALL_MAX} go "
                "on at once: end one",
            )
        self._of[person] += 1
        try:
            yield
        finally:
            self._of[person] -= 1
            self._of += Counter()  # forgets who has none
