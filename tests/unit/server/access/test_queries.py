"""How often the database is asked: who is calling is remembered as long as that is so, and events are read once for all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from dilaton.server.access.callers import make_person
from tests.unit.server.serving import Client, Served, served

LISTENERS = 12

TRIES = 5
"""After a commit the queue is looked at as well, which may be in one of these."""

OF_CALLER = ("people", "grants", "sessions", "tokens")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        with found.state.store.writing() as session:
            make_person(session, "ann")
        yield found


@contextlib.contextmanager
def asked(server: Served) -> Iterator[list[str]]:
    """The statements that the database gets meanwhile, but those that begin and end transactions."""
    found: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            found.append(statement)

    event.listen(server.state.store.engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(server.state.store.engine, "before_cursor_execute", note)


def test_of_a_caller_who_is_known_nothing_is_asked_again(server: Served) -> None:
    me = server.client()
    token = me.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
    program = Client(server.settings, {"Authorization": f"Bearer {token}"})
    lab = me.keep()
    for client in (me, program):
        client.api("GET", f"/labs/{lab}")
        tried = []
        for _ in range(TRIES):
            with asked(server) as statements:
                client.api("GET", f"/labs/{lab}")
                client.api("GET", "/runs")
            assert [one for one in statements if any(f"FROM {table}" in one for table in OF_CALLER)] == []
            tried.append(statements)
        assert len(least := min(tried, key=len)) <= 4, least


def test_what_somebody_may_do_and_who_is_let_in_changes_with_the_answer(server: Served) -> None:
    me, ann = server.client(), server.client("ann")
    lab = me.keep()
    for _ in range(3):
        ann.api("GET", f"/labs/{lab}", status=404)
        me.api("PUT", f"/labs/{lab}/shares/ann", {"role": "reader"})
        ann.api("GET", f"/labs/{lab}", status=200)
        me.api("DELETE", f"/labs/{lab}/shares/ann")
    token = ann.api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})
    program = Client(server.settings, {"Authorization": f"Bearer {token['secret']}"})
    program.api("GET", "/session", status=200)
    ann.api("DELETE", f"/tokens/{token['token']}")
    program.api("GET", "/session", status=401)
    other = server.client("ann")
    other.api("GET", "/session", status=200)
    other.api("DELETE", "/session")
    other.api("GET", "/session", status=401)
    ann.api("GET", "/session", status=200)
    me.api("PUT", "/people/ann", {"is_active": False, "grants": []})
    ann.api("GET", "/session", status=401)


def test_an_event_is_read_once_however_many_listen(server: Served) -> None:
    me = server.client()
    begun, ready = threading.Barrier(LISTENERS + 1), threading.Barrier(LISTENERS + 1)

    def listen(_: int) -> list[str]:
        told: list[str] = []
        with me.stream("/events") as events:
            next(events)
            begun.wait()
            # Who has been told one thing has asked all that somebody asks who begins to listen.
            assert next(events)[1] == "lab"
            ready.wait()
            for _number, kind, _data in events:
                told.append(kind)
                if len(told) == 3:
                    return told
        raise AssertionError("the stream has ended")

    with ThreadPoolExecutor(LISTENERS) as together, asked(server) as statements:
        listening = [together.submit(listen, number) for number in range(LISTENERS)]
        begun.wait()
        me.api("POST", "/labs", {"name": "heard", "text": "name: x"})
        ready.wait()
        before = len(statements)
        for name in ("first", "second", "last"):
            me.api("POST", "/labs", {"name": name, "text": "name: x"})
        told = [one.result() for one in listening]
    assert told == [["lab"] * 3] * LISTENERS, "everybody is told all, once, in its order"
    read = [one for one in statements[before:] if "FROM events" in one]
    assert len(read) <= LISTENERS, f"{len(read)} times for three events and {LISTENERS} listeners: {read[:3]}"
