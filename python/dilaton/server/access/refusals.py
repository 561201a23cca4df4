"""Attempts that were refused, of which the audit log has one a minute of each kind: it is bounded, and whoever could
fill it by trying would push out what they did before."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

AGAIN_MS = 60_000

KEPT_MAX = 10_000
"""Kinds that are remembered."""


@dataclass
class Refusals:
    """Knows which attempts have just been written down; for threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _at_ms: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def is_new(self, person: str, permission: str, path: str, now_ms: int) -> bool:
        """Whether this attempt is to be written down."""
        key = (person, permission, path)
        with self._lock:
            if now_ms < self._at_ms.get(key, -AGAIN_MS) + AGAIN_MS:
                return False
            self._at_ms.pop(key, None)
            if len(self._at_ms) >= KEPT_MAX:
                del self._at_ms[next(iter(self._at_ms))]
            self._at_ms[key] = now_ms
        return True
