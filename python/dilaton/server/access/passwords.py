"""Passwords: kept as argon2id hashes, tried only so often, and a few at a time, since each try takes 64 MiB and time.

Who waits for their turn has a thread of those that answer all requests, so only so many wait: others are told to come
again, or whoever sends enough of them would keep everybody else.

Whoever guesses is slowed down by name: after some mistakes a name has to wait, for everybody, so that it does not
matter from how many places it is tried. Who is locked out by that still has their sessions, their tokens, and the link
that an administrator can make. Of a name that there is not, or that has no password, as much is computed as of others.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from dilaton.server.access.secrets import secret

LENGTH_MIN = 10
LENGTH_MAX = 200
"""Characters: argon2 computes of all of them."""

FREE_TRIES = 5
"""Mistakes in a row before which nobody waits."""

WAIT_MS = 30_000
"""How long one waits before each further try."""

FORGOTTEN_MS = 3_600_000
"""After which mistakes count no more."""

NAMES_MAX = 10_000
"""Whose mistakes are remembered."""

AT_ONCE = 2

WAIT_MAX = 10
"""Who wait for their turn, each with one of the 40 threads that answer requests."""


class BusyError(Exception):
    """Too many passwords are tried at once."""


@dataclass
class Passwords:
    """Makes and checks hashes of passwords, for threads."""

    _hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _turn: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE))
    _place: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE + WAIT_MAX))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _mistakes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By name: how many, and when the last was."""
    _nobody: str = ""

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """A place among those whose passwords are computed of, or soon: to be had before anything is tried.

        Raises:
            BusyError: there is none.
        """
        if not self._place.acquire(blocking=False):
            raise BusyError
        try:
            yield
        finally:
            self._place.release()

    def hash(self, password: str) -> str:
        """What is kept of a password."""
        with self._turn:
            return self._hasher.hash(password)

    def fits(self, kept: str | None, password: str) -> bool:
        """Whether a password is that of which `kept` was kept; None: of nobody."""
        with self._turn:
            if kept is None:
                self._nobody = self._nobody or self._hasher.hash(secret())
            try:
                self._hasher.verify(kept or self._nobody, password)
            except (Argon2Error, InvalidHashError):
                return False
        return kept is not None

    def tries(self, name: str, now_ms: int) -> int:
        """A name is tried: how many milliseconds it has to wait before that; 0: none.

        A try counts as a mistake until it is known to be `right`, or many at a time would be free.
        """
        with self._lock:
            count, last_ms = self._mistakes.get(name, (0, 0))
            if now_ms > last_ms + FORGOTTEN_MS:
                count = 0
            if count >= FREE_TRIES and now_ms < last_ms + WAIT_MS:
                return last_ms + WAIT_MS - now_ms
            self._mistakes.pop(name, None)
            if len(self._mistakes) >= NAMES_MAX:
                # The oldest: a name that is tried goes to the end.
                del self._mistakes[next(iter(self._mistakes))]
            self._mistakes[name] = (count + 1, now_ms)
        return 0

    def right(self, name: str) -> None:
        """Somebody knew it."""
        with self._lock:
            self._mistakes.pop(name, None)
