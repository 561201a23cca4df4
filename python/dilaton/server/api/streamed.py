"""Answers that are sent piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

Piece = str | bytes


class Streamed(StreamingResponse):
    """An answer with whose end goes what it is made of, also where who asked goes away in the middle.

    Otherwise nobody ends a generator that waits for its next piece to be wanted, until the interpreter happens to look
    for what nobody has any more; and one that nobody has asked yet never gives up what it was handed.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[Piece, None] | Iterator[Piece],
        kind: str,
        held: AsyncExitStack | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Takes over.

        Args:
            pieces: The answer.
            kind: Its media type.
            held: What the pieces are made of, which is given up after them.
            headers: Others of the answer.
        """
        super().__init__(pieces, media_type=kind, headers=headers)
        self._held = held or AsyncExitStack()
        self._generator = pieces if isinstance(pieces, AsyncIterator) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""
        async with self._held:
            if self._generator is None:
                await super().__call__(scope, receive, send)
                return
            async with aclosing(self._generator):
                await super().__call__(scope, receive, send)
