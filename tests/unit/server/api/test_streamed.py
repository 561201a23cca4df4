"""Answers that are sent piece by piece: what they are made of goes with them, whenever who asked goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect

from dilaton.server.api.streamed import Streamed


@pytest.mark.parametrize("after", [0, 1, 3], ids=["before the first piece", "after one", "after three"])
@pytest.mark.parametrize("version", ["2.3", "2.4"], ids=["who tells of it by a message", "who tells of it by an error"])
def test_what_is_held_goes_with_an_answer_whose_asker_goes_away(after: int, version: str) -> None:
    given_up: list[str] = []
    sent: list[bytes] = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"piece"
        finally:
            given_up.append("pieces")

    async def asked() -> None:
        gone = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            is_piece = message["type"] == "http.response.body"
            if len(sent) == after and (is_piece or not after):
                gone.set()
                if version == "2.4":
                    raise OSError("gone")
                await anyio.sleep_forever()
            if is_piece:
                sent.append(message["body"])

        held = AsyncExitStack()
        held.callback(given_up.append, "held")
        # A name of its own keeps the interpreter from looking for it before this test does.
        generator = pieces()
        answer = Streamed(generator, "text/plain", held)
        scope = {"type": "http", "asgi": {"spec_version": version}}
        try:
            await answer(scope, receive, send)
        except ClientDisconnect:
            assert version == "2.4"
        assert given_up == (["pieces", "held"] if after else ["held"])
        with pytest.raises(StopAsyncIteration):
            await anext(generator)

    asyncio.run(asked())
    assert sent == [b"piece"] * after
