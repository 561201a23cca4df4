"""A server whose database is one of PostgreSQL: the same, and nothing lost or doubled when it is gone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE_HOST_S
from tests.postgresql import Cluster, cluster
from tests.unit.server.serving import ENDLESS, LAB, Client, Served, served, use_stub


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def server(postgresql: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch, served(directory, postgresql=postgresql.url) as found:
        use_stub(patch)
        yield found


def test_labs_versions_people_and_runs_are_kept_there(server: Served, tmp_path: Path) -> None:
    me = server.client()
    assert not server.settings.database.exists()
    lab = me.keep()
    me.api("PUT", f"/labs/{lab}", {"base": 1, "text": LAB.replace("first", "second")})
    assert [one["version"] for one in me.api("GET", f"/labs/{lab}/versions")] == [1, 2]
    with me.stream("/events?after=0") as events:
        assert next(kind for _, kind, data in events if data.get("lab") == lab) == "lab"
    run = me.launch(lab)
    assert me.wait(run, "finished", "failed", "aborted", "refused")["state"] == "finished"
    assert me.api("PUT", "/password", {"password": "correct horse"}) is None
    assert me.api("DELETE", f"/runs/{run}") is None
    assert me.ask("GET", "/api/v1/audit?person=%00").status == 422, "what no database takes is refused in words"


def test_a_database_that_is_stopped_and_started_under_load_loses_and_doubles_nothing(
    server: Served, postgresql: Cluster
) -> None:
    me = server.client()
    lab = me.keep(ENDLESS)
    endless = me.launch(me.keep(ENDLESS), stays=True)
    me.wait(endless, "running")
    stop, told, sent = threading.Event(), [], []

    def ask() -> None:
        while not stop.is_set():
            name = f"lab {len(sent)}"
            sent.append(name)
            answer = me.ask("POST", "/api/v1/labs", {"name": name, "text": LAB})
            told.append((name, answer.status))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(2):
            behind = len(told)
            wait_for(lambda behind=behind: len(told) > behind + 5)
            postgresql.stop()
            wait_for(lambda: bool(told) and told[-1][1] == 503)
            postgresql.start()
            wait_for(lambda: told[-1][1] == 201)
    finally:
        stop.set()
        asking.join()
    kept = [one["name"] for one in all_labs(me) if one["name"].startswith("lab ")]
    assert len(kept) == len(set(kept)), "none is doubled"
    assert {name for name, status in told if status == 201} <= set(kept), "none is lost"
    assert {status for _, status in told} <= {201, 503}
    # The run went on, is heard of again, and others begin.
    assert me.api("GET", f"/runs/{endless}")["state"] == "running"
    me.api("POST", f"/runs/{endless}/stop")
    assert me.wait(endless, "finished", "aborted", "failed")["state"] != "failed"
    me.api("PUT", f"/labs/{lab}", {"base": 1, "text": LAB})
    assert me.wait(me.launch(lab), "finished", "failed", "refused", "aborted")["state"] == "finished"


def all_labs(client: Client) -> list[dict[str, str]]:
    """All labs, page by page."""
    found: list[dict[str, str]] = []
    while more := client.api("GET", f"/labs?skip_to={found[-1]['lab'] if found else ''}"):
        found += more
    return found


def wait_for(what: object) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    assert callable(what)
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)
