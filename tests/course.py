"""What tests look at in the entries of a plan's course."""

from __future__ import annotations

from dilaton.plan.course.entries import At, ChangeLink, EndChange, Timed


def instant(entry: Timed) -> int:
    """When an entry begins that has an instant, ns."""
    assert isinstance(entry.when, At)
    return entry.when.at_ns


def ends(entry: Timed) -> list[EndChange]:
    """The ends of a link that an entry changes."""
    assert isinstance(entry.effect, ChangeLink)
    return entry.effect.ends
