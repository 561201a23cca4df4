"""What is worked out of tables that hardly change, for as long as they have not: who is calling, and what they may do.

Every request asks that, and every event asks it of everybody who listens. The answer takes three queries, and changes
when somebody is made, closed, granted something or let out. This server alone writes to its database, so it knows: what
is remembered is forgotten after each commit that may have changed it, before whoever asked for the change is answered.
What was read before such a commit, and is told after it, is not kept. And while such a commit is made, nothing is
remembered at all: whoever has read what it brought, as that somebody may see a lab, finds what they may do in the
tables, where it is, too.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

DECIDING = tuple(
    f"{verb} {table} "
    for table, verbs in {
        "people": ("INSERT INTO", "UPDATE", "DELETE FROM"),
        "grants": ("INSERT INTO", "UPDATE", "DELETE FROM"),
        "sessions": ("DELETE FROM",),
        "tokens": ("DELETE FROM",),
    }.items()
    for verb in verbs
)
"""How statements begin that change who may do what. Of a new session or token nothing is remembered yet, and when a
session was seen last is kept with what is remembered of it."""

KEPT_MAX = 10_000

Value = TypeVar("Value")


class Memory:
    """What is remembered; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[object, object] = {}
        self._changes = 0
        self._changing = 0
        """How many commits are being made that may change something."""

    def known(self, key: object) -> object | None:
        """What is remembered by this key; None: nothing."""
        with self._lock:
            return None if self._changing else self._kept.get(key)

    def of(self, key: object, work: Callable[[], Value]) -> Value:
        """What `work` returned when it was asked for by this key since the last change; what it raises is not kept."""
        with self._lock:
            if key in self._kept and not self._changing:
                return self._kept[key]  # type: ignore[return-value]
            changes = self._changes
        value = work()
        with self._lock:
            if changes == self._changes and not self._changing and len(self._kept) < KEPT_MAX:
                self._kept[key] = value
        return value

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Remembers nothing while a commit is made that may change something, and has forgotten all after it."""
        with self._lock:
            self._changing += 1
        try:
            yield
        finally:
            with self._lock:
                self._changing -= 1
                self._kept.clear()
                self._changes += 1
