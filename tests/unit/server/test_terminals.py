"""Terminals over WebSockets: who gets one, what is shown again, who has it, what is too much."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from dilaton.server.access.callers import make_person
from dilaton.server.api.runs import terminals as api
from dilaton.server.runs import terminals
from dilaton.server.settings import MESSAGE_BYTES_MAX
from tests.conftest import PATIENCE_HOST_S
from tests.stub_lines import FLOOD
from tests.unit.server.serving import ENDLESS, HANDSHAKE, Client, Served, served, use_stub

SIZE = {"rows": 24, "columns": 80}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server")) as found:
        use_stub(monkeypatch)
        with found.state.store.writing() as session:
            make_person(session, "ann")
        yield found


@pytest.fixture(scope="module")
def run(server: Served) -> Iterator[str]:
    """A run of the owner's that goes on."""
    me = server.client()
    run = me.launch(me.keep(ENDLESS), stays=True)
    me.wait(run, "running")
    yield run
    me.api("POST", f"/runs/{run}/stop")
    me.wait(run, "aborted", "finished")


@contextlib.contextmanager
def looked_at(client: Client, run: str, terminal: str, after: int = 0, **headers: str) -> Iterator[ClientConnection]:
    """A connection to a terminal."""
    settings = client.settings
    url = f"ws://{settings.host}:{settings.port}/api/v1/runs/{run}/terminals/{terminal}?after={after}"
    with connect(
        url,
        additional_headers=client.headers | headers,
        open_timeout=PATIENCE_HOST_S,
        max_size=None,
        compression=None,
        proxy=None,
    ) as connection:
        yield connection


def said(connection: ClientConnection) -> Any:
    """The next message: bytes, or what a text says."""
    message = connection.recv(PATIENCE_HOST_S)
    return message if isinstance(message, bytes) else json.loads(message)


def read(connection: ClientConnection, wanted: bytes) -> bytes:
    """What is shown up to something."""
    shown = b""
    while wanted not in shown:
        message = said(connection)
        shown += message if isinstance(message, bytes) else b""
    return shown


def opened(client: Client, run: str) -> str:
    """A new terminal."""
    return str(client.api("POST", f"/runs/{run}/terminals", {"node": "a", **SIZE})["terminal"])


def closed(connection: ClientConnection) -> int:
    """The code by which the server closes a connection."""
    with pytest.raises(ConnectionClosed) as ended:
        deque(iter(lambda: connection.recv(PATIENCE_HOST_S), None), maxlen=0)
    assert ended.value.rcvd is not None
    return ended.value.rcvd.code


def test_what_is_typed_reaches_the_program_and_the_window_has_its_size(server: Served, run: str) -> None:
    me = server.client()
    with looked_at(me, run, opened(me, run)) as connection:
        assert said(connection) == {"from": 0}
        read(connection, b"ready\r\n")
        connection.send(b"hello")
        assert read(connection, b"hello")
        connection.send(json.dumps({"rows": 30, "columns": 100}))
        assert read(connection, b"30 x 100\r\n")
        connection.send(b"exit")
        while isinstance(message := said(connection), bytes):
            pass
        assert message == {"status": 3, "reason": ""}
        assert closed(connection) == 1000


def test_who_has_lost_the_connection_goes_on_where_they_were(server: Served, run: str) -> None:
    me = server.client()
    terminal = opened(me, run)
    with looked_at(me, run, terminal) as connection:
        had = read(connection, b"ready\r\n")
        connection.send(b"one two")
        had += read(connection, b"one two")
    with looked_at(me, run, terminal, after=len(had) - 3) as connection:
        assert said(connection) == {"from": len(had) - 3}
        assert said(connection) == b"two"
        with looked_at(me, run, terminal, after=len(had)) as newer:
            assert closed(connection) == api.TAKEN_OVER, "one connection has it, the newest"
            newer.send(b"three")
            assert read(newer, b"three")
    assert [one["terminal"] for one in me.api("GET", f"/runs/{run}/terminals")].count(terminal) == 1
    me.api("DELETE", f"/runs/{run}/terminals/{terminal}")


def test_all_that_a_program_writes_is_shown_once_however_much_it_is(server: Served, run: str) -> None:
    me = server.client()
    with looked_at(me, run, opened(me, run)) as connection:
        shown = read(connection, b"ready\r\n")
        connection.send(b"flood")
        while len(shown) < 7 + len(FLOOD):
            message = said(connection)
            assert isinstance(message, bytes), message
            shown += message
        assert shown == b"ready\r\n" + FLOOD


def test_a_program_that_nobody_looks_at_goes_on_and_the_end_of_what_it_writes_is_kept(server: Served, run: str) -> None:
    me = server.client()
    terminal = opened(me, run)
    with looked_at(me, run, terminal) as connection:
        read(connection, b"ready\r\n")
        connection.send(b"flood")
    with looked_at(me, run, terminal) as connection:
        begin = said(connection)["from"]
        shown = b""
        while not shown.endswith(FLOOD[-8:]):
            message = said(connection)
            if isinstance(message, bytes):
                shown += message
            else:
                begin, shown = message["from"], b""
        assert shown == (b"ready\r\n" + FLOOD)[begin:]


def test_a_terminal_is_only_for_who_may_and_has_opened_it(server: Served, run: str) -> None:
    me, ann = server.client(), server.client("ann")
    terminal = opened(me, run)
    token = me.api("POST", "/tokens", {"label": "reads", "scopes": ["Run.Read"], "days": 1})["secret"]
    reader = Client(server.settings, {"Authorization": f"Bearer {token}"})
    refused: list[tuple[Client, dict[str, str], int]] = [
        (server.stranger(), {}, 401),
        (ann, {}, 404),
        (reader, {}, 403),
        (me, {"Origin": "http://elsewhere.example"}, 403),
        (me, {"Origin": "null"}, 403),
        (Client(server.settings, {"Cookie": me.headers["Cookie"]}), {}, 403),
        (me, {"Host": "elsewhere.example"}, 403),
    ]
    for client, headers, status in refused:
        path = f"/api/v1/runs/{run}/terminals/{terminal}"
        assert client.ask("GET", path, **HANDSHAKE, **headers).status == status, headers
    grants = [
        {"path": server.client().api("GET", f"/runs/{run}")["path"], "role": "operator"},
        {"path": "/home/ann", "role": "user"},
    ]
    me.api("PUT", "/people/ann", {"is_active": True, "grants": grants})
    assert ann.api("GET", f"/runs/{run}/terminals") == [], "another's terminals are nobody else's"
    with pytest.raises(InvalidStatus), looked_at(ann, run, terminal):
        pass
    assert (
        ann.api("POST", f"/runs/{run}/terminals", {"node": "c", **SIZE}, status=422)["type"]
        == "urn:dilaton:run-argument"
    )
    entry = me.api("GET", "/audit?action=run.console&count=1")[0]
    assert entry["person"] == "ann" and entry["data"] == {"node": "c", "argv": []}


def test_who_may_no_longer_is_cut_off(server: Served, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "ALLOWED_HOST_S", 0.05)
    me, ann = server.client(), server.client("ann")
    grants = [{"path": server.client().api("GET", f"/runs/{run}")["path"], "role": "operator"}]
    me.api("PUT", "/people/ann", {"is_active": True, "grants": grants})
    with looked_at(ann, run, opened(ann, run)) as connection:
        read(connection, b"ready\r\n")
        me.api("PUT", "/people/ann", {"is_active": True, "grants": [grants[0] | {"role": "reader"}]})
        assert closed(connection) == api.NOT_ALLOWED


def test_what_is_too_much_or_no_size_is_refused(server: Served, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    me = server.client()
    terminal = opened(me, run)
    for message in ("[]", '{"rows": 0, "columns": 1}', "x"):
        with looked_at(me, run, terminal) as connection:
            connection.send(message)
            assert closed(connection) == api.WRONG
    with looked_at(me, run, terminal) as connection:
        connection.send(b"x" * (MESSAGE_BYTES_MAX + 1))
        assert closed(connection) == 1009
    monkeypatch.setattr(terminals, "OF_PERSON_MAX", len(server.state.terminals.of(run, "owner")))
    assert me.api("POST", f"/runs/{run}/terminals", {"node": "a", **SIZE}, status=409)["type"] == "urn:dilaton:limit"


def test_many_at_once_are_no_more_than_may_be(server: Served, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    me = server.client()
    monkeypatch.setattr(terminals, "OF_PERSON_MAX", len(server.state.terminals.of(run, "owner")) + 2)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(me.ask, "POST", f"/api/v1/runs/{run}/terminals", {"node": "a", **SIZE}) for _ in range(8)]
    answers = [one.result() for one in asked]
    assert sorted(answer.status for answer in answers) == [201] * 2 + [409] * 6
    for answer in answers:
        if answer.status == 201:
            me.api("DELETE", f"/runs/{run}/terminals/{answer.json['terminal']}")


def test_a_terminal_that_this_machine_cannot_have_is_told(
    server: Served, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> object:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(terminals, "terminal", broken)
    answer = server.client().api("POST", f"/runs/{run}/terminals", {"node": "a", **SIZE}, status=503)
    assert "Too many open files" in answer["detail"]


def test_a_terminal_that_nobody_looks_at_ends(server: Served, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminals, "LOOK_HOST_S", 0.02)
    monkeypatch.setattr(terminals, "UNSEEN_HOST_S", 0.0)
    me = server.client()
    terminal = opened(me, run)
    for _ in range(1000):
        if terminal not in [one["terminal"] for one in me.api("GET", f"/runs/{run}/terminals")]:
            break
    else:
        raise AssertionError("it is still there")


def test_of_a_run_that_does_not_go_on_nobody_is_told_where_the_server_keeps_it(server: Served) -> None:
    me = server.client()
    over = me.launch(me.keep(ENDLESS))
    me.wait(over, "running")
    me.api("POST", f"/runs/{over}/stop")
    me.wait(over, "aborted", "finished")
    asked = (("POST", "terminals", {"node": "a", **SIZE}), ("POST", "hold", {}), ("GET", "status", None))
    for method, path, body in asked:
        answer = me.ask(method, f"/api/v1/runs/{over}/{path}", body)
        assert (answer.status, answer.json["detail"]) == (409, "no run is going on there"), path
