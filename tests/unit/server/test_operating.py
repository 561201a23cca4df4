"""Operating a server: figures for Prometheus, attempts that were refused, and nothing that grows without bounds."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event, func, select

from dilaton.server import logs
from dilaton.server.access.callers import make_person
from dilaton.server.access.refusals import AGAIN_MS, Refusals
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import AuditRow, EventRow, GrantRow
from dilaton.server.database.tidying import DAY_MS, Keep, tidy
from tests.unit.server.serving import Client, Served, run_row, served, use_stub


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        with found.state.store.writing() as session:
            make_person(session, "ann")
        yield found


def test_prometheus_is_told_how_the_server_is_doing(server: Served) -> None:
    boss = server.client()
    boss.keep()
    server.stranger().ask("NONSENSE", "/healthz")
    token = boss.api("POST", "/tokens", {"label": "prometheus", "scopes": ["Server.Read"], "days": 1})["secret"]
    answer = Client(server.settings, {"Authorization": f"Bearer {token}"}).ask("GET", "/metrics")
    assert answer.status == 200
    told = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }
    assert told["dilaton_server_people",] == 2 and told["dilaton_server_labs",] >= 1
    assert told["dilaton_server_requests_total", "POST", "201"] >= 2
    assert told["dilaton_server_requests_total", "other", "405"] == 1
    assert 10 << 20 < told["dilaton_server_memory_bytes",] < 4 << 30
    assert server.client("ann").ask("GET", "/metrics").status == 403


def test_the_machine_is_shown_with_what_runs_on_it_and_whose_to_who_may_see_that(server: Served) -> None:
    with server.state.store.writing() as session:
        make_person(session, "watcher")
        session.add(GrantRow(person="watcher", path="/", role="auditor", denies=False, propagates=False))
        needs = {"cores": 2, "memory_bytes": 1 << 30}
        session.add(run_row("0" * 16, "running", name="going", needs=needs))
        session.add(run_row("1" * 16, "finished", name="over"))
    shown = server.client().api("GET", "/machine")
    assert 0 < shown["cores"] <= (os.cpu_count() or 1) and 0 < shown["available_bytes"] < shown["memory_bytes"]
    assert 0 < shown["disk_free_bytes"] <= shown["disk_bytes"] and shown["places"] == server.settings.at_once
    (run,) = shown["runs"]
    assert (run["name"], run["person"], run["needs"]["cores"]) == ("going", "owner", 2)
    (hidden,) = server.client("watcher").api("GET", "/machine")["runs"]
    assert (hidden["run"], hidden["name"], hidden["person"], hidden["needs"]) == (None, "", "", run["needs"])
    assert server.client("ann").api("GET", "/machine", status=403)["permission"] == "Server.Read"


def test_an_attempt_that_was_refused_is_in_the_audit_log_and_many_of_one_kind_once(server: Served) -> None:
    ann = server.client("ann")
    for _ in range(3):
        ann.api("GET", "/people", status=403)
    entries = server.client().api("GET", "/audit?action=refused&person=ann")
    found = [entry for entry in entries if entry["data"]["permission"] == "Person.Read"]
    assert [entry["path"] for entry in found] == ["/"]
    refusals = Refusals()
    assert [refusals.is_new("a", "p", "/", at) for at in (0, 1, AGAIN_MS - 1, AGAIN_MS)] == [True, False, False, True]


def test_a_log_of_json_has_each_request_in_a_line_that_nobody_else_writes(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logs.REQUESTS.level)
    try:
        logs.use_json()
        server.stranger().ask("GET", "/x%0a%7b%22level%22:1%7d%1b?once=secret")
        logging.getLogger("dilaton.server").error("two\nlines %s", "\x1b")
        try:
            raise ValueError("no\nline")
        except ValueError:
            logging.getLogger("dilaton.server").exception("wrong")
    finally:
        root.handlers, root.level = before[0], before[1]
        logs.REQUESTS.setLevel(before[2])
    said = capsys.readouterr().err
    lines = [json.loads(line) for line in said.splitlines()]
    assert len(lines) == 3 and "secret" not in said and "\x1b" not in said
    request, error, wrong = lines
    assert (request["method"], request["path"], request["status"]) == ("GET", '/x\n{"level":1}\x1b', 404)
    assert (error["level"], error["message"]) == ("error", "two\nlines \x1b") and error["at"].endswith("+00:00")
    assert wrong["error"].endswith("ValueError: no\nline")
    server.stranger().ask("GET", "/healthz")
    assert capsys.readouterr().err == "", "a log of text has no requests"


def test_events_and_audit_have_bounds_and_who_comes_too_late_is_told(server: Served) -> None:
    store = server.state.store
    with store.writing() as session:
        for number in range(50):
            tell(session, "Lab.Read", "/home/owner", "lab", number=number)
            note(session, "owner", "test", "/", number=number)
    tidy(store, Keep(events=20, audit=30), now_ms())
    with store.reading() as session:
        for table, most in ((EventRow, 20), (AuditRow, 30)):
            assert session.scalar(select(func.count()).select_from(table)) == most
    with server.client().stream("/events", last="3") as events:
        assert [kind for _, kind, _ in (next(events), next(events))] == ["ready", "lost"]
        assert next(events)[2]["number"] == 30, "what is kept is told from its beginning"


def test_runs_that_are_over_go_when_their_time_has_come_and_no_others(server: Served) -> None:
    now = 100 * DAY_MS
    with server.state.store.writing() as session:
        for identity, state, ended_ms in (("old", "finished", 1), ("new", "finished", now), ("long", "running", None)):
            session.add(run_row(identity, state, created_ms=1, ended_ms=ended_ms))
    assert tidy(server.state.store, Keep(), now) == []
    assert tidy(server.state.store, Keep(run_days=30), now) == ["old"]
    assert tidy(server.state.store, Keep(run_days=30), now) == []
    boss = server.client()
    assert boss.api("GET", "/runs/old", status=404) and boss.api("GET", "/runs/new") and boss.api("GET", "/runs/long")
    assert boss.api("GET", "/audit?action=run.expire&count=1")[0]["data"] == {"name": "tiny"}


def test_a_page_of_a_long_catalogue_reads_a_page_and_no_texts_of_labs(server: Served) -> None:
    """Host time is measured by benches/server_catalogue.py."""
    reads: list[str] = []
    with server.state.store.writing() as session:
        session.add_all(
            run_row(f"many{number}", "finished", created_ms=number, ended_ms=now_ms()) for number in range(1000)
        )
    event.listen(server.state.store.engine, "before_cursor_execute", lambda *said: reads.append(said[2]))
    boss = server.client()
    reads.clear()
    assert len(boss.api("GET", "/runs?count=50")) == 50
    # The keeper of the queue reads the same table whenever it is woken.
    pages = [read for read in reads if "FROM runs" in read and "LIMIT" in read]
    assert len(pages) == 1 and "runs.text" not in pages[0] and "runs.number" in pages[0]


def test_a_copy_of_the_database_is_a_server_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/server.md says: copied while the server goes on, and put where another begins, without the runs' directories."""
    use_stub(monkeypatch)
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    with served(tmp_path / "server") as server:
        me = server.client()
        lab = me.keep()
        run = me.launch(lab)
        state = me.wait(run, "finished")["state"]
        with sqlite3.connect(server.settings.database) as database, sqlite3.connect(copy / "server.sqlite") as to:
            database.backup(to)
        me.keep()
    with served(copy) as server:
        me = server.client()
        assert [one["lab"] for one in me.api("GET", "/labs")] == [lab]
        assert me.api("GET", f"/runs/{run}")["state"] == state
        assert me.ask("GET", f"/api/v1/runs/{run}/record").status == 404


def test_a_database_that_knows_no_run_takes_none_away(tmp_path: Path) -> None:
    """Whoever has a server begin with another database keeps what runs have left."""
    left = tmp_path / "runs" / "0123456789abcdef"
    left.mkdir(parents=True)
    with served(tmp_path):
        assert left.is_dir()
    assert left.is_dir()
