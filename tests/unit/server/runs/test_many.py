"""A class at once: everybody keeps a lab, has it run and listens, and each gets what is theirs, all of it and once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dilaton.server.access.callers import make_person
from dilaton.server.runs.life import FINAL
from tests.unit.server.serving import Served, served, use_stub

PEOPLE = [f"student{n}" for n in range(12)]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server"), at_once=3) as found:
        use_stub(monkeypatch)
        with found.state.store.writing() as session:
            for name in PEOPLE:
                make_person(session, name)
        yield found


def worked(server: Served, name: str) -> tuple[str, str, list[dict[str, Any]]]:
    """What one of them does: their lab, their run, and all that they were told until it was over."""
    client = server.client(name)
    told: list[dict[str, Any]] = []
    with client.stream("/events?after=0") as events:
        lab = client.keep()
        run = client.launch(lab, key=name)
        assert client.launch(lab, key=name) == run
        for _, kind, data in events:
            told += [data | {"kind": kind}] if kind in ("lab", "run") else []
            if data.get("run") == run and data["state"] in FINAL:
                return lab, run, told
    raise AssertionError("the stream has ended")


def test_a_class_at_once_loses_nothing_and_nobody_is_told_of_anothers(server: Served) -> None:
    with ThreadPoolExecutor(len(PEOPLE)) as together:
        done = dict(zip(PEOPLE, together.map(lambda name: worked(server, name), PEOPLE), strict=True))
    for name, (lab, run, told) in done.items():
        assert {one.get("lab") for one in told if one["kind"] == "lab"} == {lab}, name
        assert {one.get("run") for one in told if one["kind"] == "run"} == {run}, name
        states = [one["state"] for one in told if one["kind"] == "run"]
        assert states[0] == "queued" and states[-1] == "finished" and len(states) == len(set(states)), states
    everything = server.client().api("GET", "/runs")
    assert sorted(run["run"] for run in everything) == sorted(run for _, run, _ in done.values())
    assert {run["state"] for run in everything} == {"finished"}
    launched = [entry for entry in server.client().api("GET", "/audit") if entry["action"] == "run.launch"]
    assert sorted(entry["person"] for entry in launched) == sorted(PEOPLE)
