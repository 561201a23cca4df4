"""What servers and clients of the reproductions of DieCast share: talking to Redis, and something to compute."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, BinaryIO

DATABASE_PORT = 6379


def commands(stream: BinaryIO, sent: Sequence[Sequence[bytes]]) -> list[Any]:
    """Sends Redis commands at once, and returns their replies: bytes, numbers, lists, or None for what is not there."""
    for words in sent:
        parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        stream.write(b"*%d\r\n%s" % (len(words), parts))
    stream.flush()
    return [reply(stream) for _ in sent]


def reply(stream: BinaryIO) -> Any:
    """Reads one reply of Redis."""
    line = stream.readline()
    kind, value = line[:1], line[1:-2]
    if kind == b"+":
        return value
    if kind == b":":
        return int(value)
    if kind == b"*":
        return [reply(stream) for _ in range(int(value))]
    if kind == b"$":
        return None if value == b"-1" else stream.read(int(value) + 2)[:-2]
    raise ConnectionError(f"Redis says {line!r}")


def hash_often(text: bytes, times: int) -> None:
    """Computes so many hashes of it."""
    for _ in range(times):
        hashlib.sha1(text, usedforsecurity=False).digest()
