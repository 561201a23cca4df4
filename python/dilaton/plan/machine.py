"""What a plan has to know of the machine that will run it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """A machine, as far as plans depend on it."""

    cores: int = 1
    """Over which `guests: auto` divides."""
    memory_bytes: int | None = None
    """All that it has; None: not asked."""
    users: frozenset[str] | None = None
    """The names of its users; None: not asked."""
