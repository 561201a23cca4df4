"""Passwords: who is let in by one, how often it may be tried, what is kept of it, and how it is changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Literal

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from dilaton.server.access import passwords
from dilaton.server.access.callers import make_person
from dilaton.server.access.passwords import AT_ONCE, FREE_TRIES, NAMES_MAX, WAIT_MAX, WAIT_MS, Passwords
from dilaton.server.database.tables import PasswordRow
from tests.conftest import PATIENCE_HOST_S
from tests.unit.server.serving import Answer, Client, Served, served

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        with found.state.store.writing() as session:
            for person in ("ann", "ben", "eve"):
                make_person(session, person)
        for person in ("ann", "ben"):
            found.client(person).api("PUT", "/password", {"password": PASSWORD})
        yield found


def tried(server: Served, name: str, password: str) -> Answer:
    """What comes of a try to log in."""
    return server.stranger().ask("POST", "/api/v1/session", {"name": name, "password": password})


def of(server: Served, let_in: Answer) -> Client:
    """Who was let in."""
    cookie = let_in.headers["set-cookie"].partition(";")[0]
    return Client(server.settings, {"Cookie": cookie, "Origin": server.settings.origin})


def test_a_password_lets_its_person_in_and_of_others_nothing_is_told(server: Served) -> None:
    assert of(server, tried(server, "ann", PASSWORD)).api("GET", "/session")["name"] == "ann"
    refused = {tried(server, name, said).body for name, said in (("ann", "x"), ("eve", PASSWORD), ("no one", "x"))}
    assert len(refused) == 1 and b"let nobody in" in refused.pop()
    for asked in ({}, {"name": "ann"}, {"once": "x", "name": "ann", "password": PASSWORD}):
        assert server.stranger().ask("POST", "/api/v1/session", asked).status == 422
    entry = server.client().api("GET", "/audit?action=login.refused&count=1")[0]
    assert (entry["person"], entry["path"], entry["data"]) == ("", "/", {"address": "127.0.0.1"}), (
        "what was typed as a name is not kept"
    )


def test_who_guesses_has_to_wait_also_with_the_right_password(server: Served) -> None:
    assert [tried(server, "ben", f"guess {number}").status for number in range(FREE_TRIES)] == [401] * FREE_TRIES
    assert tried(server, "ben", PASSWORD).status == 429
    assert tried(server, "ann", PASSWORD).status == 204, "others do not wait"


def test_many_who_log_in_at_once_leave_others_a_thread_and_are_told_to_come_again(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than there are threads: all but a few are told at once, which costs them no try."""
    may_go_on = threading.Event()

    class Slow(PasswordHasher):
        def verify(self, *_: object) -> Literal[True]:
            assert may_go_on.wait(PATIENCE_HOST_S)
            return True

    monkeypatch.setattr(server.state.passwords, "_hasher", Slow())
    with ThreadPoolExecutor(50) as pool:
        try:
            asked = [pool.submit(tried, server, f"somebody{number}", "x") for number in range(50)]
            first = [
                done.result() for _, done in zip(range(50 - AT_ONCE - WAIT_MAX), as_completed(asked), strict=False)
            ]
            assert {(answer.status, answer.headers.get("retry-after")) for answer in first} == {(503, "1")}
            assert server.client("ann").api("GET", "/session")["name"] == "ann"
        finally:
            may_go_on.set()
    assert sorted(one.result().status for one in asked) == [401] * (AT_ONCE + WAIT_MAX) + [503] * len(first)
    assert sum(name.startswith("somebody") for name in server.state.passwords._mistakes) == AT_ONCE + WAIT_MAX


def test_mistakes_are_forgotten_by_and_by_and_take_no_more_memory_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Passwords()
    assert [kept.tries("a", 0) for _ in range(FREE_TRIES + 1)] == [0] * FREE_TRIES + [WAIT_MS]
    assert kept.tries("a", WAIT_MS) == 0 and kept.tries("a", WAIT_MS) == WAIT_MS
    kept.right("a")
    assert kept.tries("a", WAIT_MS) == 0
    monkeypatch.setattr(passwords, "NAMES_MAX", 3)
    for name in "abcdef":
        kept.tries(name, 0)
    assert len(kept._mistakes) == 3 < NAMES_MAX


def test_a_password_is_kept_as_a_hash_and_changed_only_by_who_knows_it(server: Served) -> None:
    ann, other = server.client("ann"), server.client("ann")
    with server.state.store.reading() as session:
        kept = session.scalars(select(PasswordRow.hash)).all()
    assert kept and all(one.startswith("$argon2id$") for one in kept)
    assert ann.api("PUT", "/password", {"password": "short"}, status=422)
    assert ann.api("PUT", "/password", {"password": "another password"}, status=403)["field"] == "old"
    ann.api("PUT", "/password", {"password": "another password", "old": PASSWORD})
    assert other.api("GET", "/session", status=401) and ann.api("GET", "/session"), "other sessions end"
    assert tried(server, "ann", PASSWORD).status == 401
    token = ann.api("POST", "/tokens", {"label": "all", "scopes": ["*"], "days": 1})["secret"]
    program = Client(server.settings, {"Authorization": f"Bearer {token}"})
    assert program.api("PUT", "/password", {"password": "a third password", "old": "another password"}, status=403)
    server.client().api("DELETE", "/people/ann/password")
    assert tried(server, "ann", "another password").status == 401
    ann.api("PUT", "/password", {"password": PASSWORD})
    server.client().api("PUT", "/people/ann", {"is_active": False, "grants": []})
    assert tried(server, "ann", PASSWORD).status == 401, "a closed account is told like any other"
