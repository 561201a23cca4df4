"""Secrets that let somebody in: made here, shown once, and kept as digests, which let nobody in."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "dilaton_"
"""How a token begins."""


def secret() -> str:
    """A secret of 256 bits."""
    return secrets.token_urlsafe(32)


def identity() -> str:
    """The identity of a lab or run: 64 random bits, as 16 hexadecimal digits."""
    return secrets.token_hex(8)


def digest(said: str) -> str:
    """What is kept of a secret, and looked up.

    It has 256 bits of chance, so one round of a hash is enough, no salt is needed, and the time that a look-up takes
    tells nothing about it.
    """
    return hashlib.sha256(said.encode()).hexdigest()
