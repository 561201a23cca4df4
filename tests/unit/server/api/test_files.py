"""Files of runs over the API: none stays open for somebody who is gone."""

from __future__ import annotations

import gc
import http.client
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.serving import Served, run_row, served

IDENTITY = "0" * 12
MANY_BYTES = 64 << 20
"""More than fits into what is between server and client."""

PATIENCE_HOST_S = 30.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        with found.state.store.writing() as session:
            session.add(run_row(IDENTITY, "finished"))
        yield found


def are_open(file: Path) -> int:
    """How often this process has a file open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(link) == str(file)
        except FileNotFoundError:
            continue
    return found


def test_a_file_is_closed_when_who_fetches_it_goes_away(server: Served) -> None:
    file = server.state.keeper.run_dir(IDENTITY) / "large.bin"
    file.parent.mkdir(parents=True)
    with file.open("wb") as made:
        made.truncate(MANY_BYTES)
    client = server.client()
    gc.disable()
    try:
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", server.settings.port)
            connection.request("GET", f"/api/v1/runs/{IDENTITY}/files/large.bin", headers=client.headers)
            answer = connection.getresponse()
            assert (answer.status, len(answer.read(1000))) == (200, 1000)
            assert are_open(file) == 1
            answer.close()
            connection.close()
            end = time.monotonic() + PATIENCE_HOST_S
            while are_open(file) and time.monotonic() < end:
                time.sleep(0.01)
            assert are_open(file) == 0
    finally:
        gc.enable()
