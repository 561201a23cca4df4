"""The frames of the stream line, as `crates/agent/PROTOCOL.md` defines them, and what a session is asked and tells."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

HEADER = struct.Struct("<IBBHI")

PAYLOAD_BYTES_MAX = 4 << 20
"""As `crates/agent/src/streams/frames.rs` has it."""

LINE = 0
"""The session that stands for the line."""

STREAMS = STDIN, STDOUT, STDERR = 0, 1, 2


class Kind(IntEnum):
    """What a frame is about; `PROTOCOL.md` says what each means."""

    OPEN = 1
    DATA = 2
    GRANT = 3
    CLOSE = 4
    SIGNAL = 5
    SIZE = 6
    FAILED = 7
    EXITED = 8


@dataclass(frozen=True)
class Request:
    """What a session executes.

    Attributes:
        node: Where.
        argv: Program and arguments, in bytes as the kernel has them.
        env: The whole environment.
        cwd: Working directory in the node.
        user: A user name or number of the node.
        terminal: Rows and columns of the terminal that it gets; None: pipes.
    """

    node: str
    argv: Sequence[bytes]
    env: Mapping[bytes, bytes] = field(default_factory=dict)
    cwd: str = "/"
    user: str = "root"
    terminal: tuple[int, int] | None = None

    def encode(self) -> bytes:
        """The payload of the frame that opens the session."""
        size = "{} {}".format(*self.terminal) if self.terminal else ""
        head = [self.node, size, self.user, self.cwd, str(len(self.argv))]
        words = [word.encode("utf-8", "surrogateescape") for word in head]
        words += [*self.argv, *(name + b"=" + value for name, value in self.env.items())]
        return b"".join(word + b"\0" for word in words)


@dataclass(frozen=True)
class Ending:
    """How a session ended.

    Attributes:
        status: Exit status, as a shell has it: 128 and the number of the signal that killed it; 127 when there is no
            such program, 126 when it cannot be executed.
        reason: Why it could not be executed; empty when it was.
    """

    status: int
    reason: str = ""
