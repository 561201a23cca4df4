"""A run as those find it who steer what is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dilaton.lab.model import Lab
from dilaton.plan.model import Plan
from dilaton.run.files.clock_log import Reading
from dilaton.run.steering.clock import ClockControl
from dilaton.run.steering.updates import Updates


@dataclass(frozen=True)
class Steered:
    """What is run, and what there is to steer it by.

    Attributes:
        lab: What is run.
        plan: What it was compiled to.
        updates: Tells the agents of its guests.
        clock: Lets its clock stand still.
        now: Reads that clock.
    """

    lab: Lab
    plan: Plan
    updates: Updates
    clock: ClockControl
    now: Callable[[], Reading]
