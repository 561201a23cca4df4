"""The points of a sweep: which runs a product of values makes; light, as it is known long before all is drawn."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dilaton.lab.settings import Setting

Values = Mapping[str, Sequence[str]]
"""The values of each field, in the order in which they are swept."""

Labels = Mapping[str, str]
"""What fields and measured numbers are called where people read; those that it lacks have their own names."""


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        settings: The fields and their values.
        repeat: Which of the runs with these, from 0.
    """

    settings: tuple[Setting, ...]
    repeat: int

    @property
    def directory(self) -> str:
        """Where its run goes within the sweep: told by its values, so that it is found again."""
        values = ",".join(f"{path}={value}" for path, value in self.settings)
        return str(Path(re.sub(r"[^A-Za-z0-9.=,_-]", "_", values), str(self.repeat)))


def points(values: Values, repeat: int) -> list[Point]:
    """The points of a sweep: all combinations, the last field fastest, each `repeat` times."""
    combinations = itertools.product(*([(path, value) for value in values[path]] for path in values))
    return [Point(settings, number) for settings in combinations for number in range(repeat)]
