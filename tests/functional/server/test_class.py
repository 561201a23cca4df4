"""Four people at once, each with real guests, as `benches/server_class.py --kernel` has thirty and says how long it takes."""

from __future__ import annotations

from pathlib import Path

from tests.functional.server.people import together
from tests.unit.server.runs.server_process import process

PEOPLE, WORK_HOST_S = 4, 3.0


def test_everybody_gets_what_is_theirs_all_of_it_and_once(tmp_path: Path) -> None:
    with process(tmp_path, "--at-once", PEOPLE, "--kernel") as server:
        seen = together(server, PEOPLE, WORK_HOST_S)
    assert len(seen.echoes) >= PEOPLE and len(seen.calls["stop"]) == PEOPLE
