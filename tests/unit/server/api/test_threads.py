"""A call of the API takes one thread, once: where runs want all cores, each turn more is one that everybody waits for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from tests.unit.server.serving import run_row, served

RUN = "0123456789abcdef"


def test_a_call_takes_a_thread_for_the_database_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    really = anyio.to_thread.run_sync

    async def run_sync(function: Callable[..., Any], *values: Any, **named: Any) -> Any:
        taken.append(function)
        return await really(function, *values, **named)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
    with served(tmp_path) as server:
        with server.state.store.writing() as session:
            session.add(run_row(RUN, "finished"))
        me = server.client()
        lab = me.keep()
        me.api("GET", "/session")  # who one is, is looked up once
        asked = {"/session": 1, "/labs": 1, "/runs?count=50": 1, f"/runs/{RUN}": 1, "/saved": 0, f"/labs/{lab}": 2}
        for path, most in asked.items():
            taken.clear()
            me.api("GET", path)
            assert len(taken) <= most, (path, taken)
        taken.clear()
        me.api("GET", "/audit?count=many", status=422)
        assert len(taken) == 0, "what is refused at once"
