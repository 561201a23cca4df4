"""A server is killed, at any moment: what was asked for is there, runs go on and are found again, and none begins twice."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from dilaton.run.control.answers import SHOW
from dilaton.run.control.requests import Client as Control
from dilaton.server.database.tables import RunRow, Table
from tests.unit.server.runs.server_process import process
from tests.unit.server.serving import ENDLESS, run_row, served, use_stub


def test_what_was_asked_for_outlives_servers_that_are_killed_and_no_run_begins_twice(tmp_path: Path) -> None:
    short: list[str] = []
    with process(tmp_path) as first:
        endless = first.client.launch(first.client.keep(ENDLESS))
        first.client.wait(endless, "running")
        with Control(tmp_path / "runs" / endless / "run") as control:
            pid = control.request(SHOW)["pid"]
        lab = first.client.keep()
        # Killed with one that is being launched, and others that wait.
        short += [first.client.launch(lab) for _ in range(4)]
        first.kill()
    with process(tmp_path) as second:
        short.append(second.client.launch(lab))
        second.kill()
    with process(tmp_path) as third:
        for run in short:
            assert third.client.wait(run, "finished", "failed", "refused")["state"] == "finished"
        listed = third.client.api("GET", "/runs")
        assert sorted(one["run"] for one in listed) == sorted([endless, *short])
        for run in short:
            journal = third.client.ask("GET", f"/api/v1/runs/{run}/journal").body.decode()
            assert journal.count("clock released") == 1, journal
        assert third.client.api("GET", f"/runs/{endless}")["state"] == "running"
        with Control(tmp_path / "runs" / endless / "run") as control:
            assert control.request(SHOW)["pid"] == pid, "the same process"
        third.client.api("POST", f"/runs/{endless}/stop")
        assert third.client.wait(endless, "aborted", "failed")["state"] == "aborted"
        assert len(third.client.api("GET", "/audit?action=run.launch")) == 6


def test_of_runs_that_were_going_on_it_is_known_what_became_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server finds them that was away: one of which nothing began, one that was refused, one that was killed."""
    use_stub(monkeypatch)
    with served(tmp_path) as server:
        with server.state.store.writing() as session:
            for identity in ("a" * 16, "b" * 16, "c" * 16):
                session.add(run_row(identity, "starting"))
        (drawing := server.state.keeper.drawing("a" * 16)).parent.mkdir(parents=True)
        drawing.write_text("what was drawn when it was asked for")
        journal = server.state.keeper.journal("b" * 16)
        journal.parent.mkdir(parents=True)
        journal.write_text("bwrap: not \0 on\x1b this machine\n")
        record = server.state.keeper.run_dir("c" * 16) / "run.json"
        record.parent.mkdir(parents=True)
        record.write_text('{"state": "running"}')
        found = server.state.keeper.found()
        assert found == ["b" * 16, "c" * 16]
        for identity in found:
            server.state.keeper.conclude(identity, "")
        refused, failed = (server.client().api("GET", f"/runs/{identity}") for identity in found)
        assert (refused["state"], refused["reason"]) == ("refused", "bwrap: not \ufffd on\ufffd this machine")
        assert failed["state"] == "failed" and "run.json" in failed["reason"]
        assert server.client().wait("a" * 16, "finished", "failed", "refused")["state"] == "finished"
        assert drawing.is_file()


def test_what_is_asked_for_while_a_server_looks_what_goes_on_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_stub(monkeypatch)
    with served(tmp_path) as server:
        keeper, store = server.state.keeper, server.state.store
        server.client().wait(server.client().launch(server.client().keep()), "finished")
        for known, is_there in (("a" * 16, True), ("b" * 16, False)):
            looking = Thread(target=keeper.found)
            with store.writing() as session:
                if is_there:
                    session.add(run_row(known, "requested"))
                    session.flush()
                keeper.directory(known).mkdir()
                looking.start()
                looking.join(1)  # as far as it comes while somebody writes
            looking.join()
            assert keeper.directory(known).exists() == is_there


def test_the_steps_from_older_tables_lead_to_those_of_today(tmp_path: Path) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with served(tmp_path):
        engine = create_engine(f"sqlite:///{tmp_path / 'server.sqlite'}")
        with engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), Table.metadata) == []
        with Session(engine) as session:
            assert session.get(RunRow, 1) is None
        engine.dispose()
