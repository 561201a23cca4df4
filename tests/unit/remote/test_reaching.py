"""Nodes of a server's runs are reached from elsewhere: shells, files, packets, links and faults, and results compared."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from dilaton.cli.errors import BadInputError
from dilaton.remote.asking import ServerError
from dilaton.remote.server import Server
from dilaton.remote.sessions import reached
from dilaton.run.control.session_client import captured, session
from dilaton.server.access.callers import make_person
from dilaton.server.runs import bounds
from tests.conftest import PATIENCE_HOST_S
from tests.stub_lines import FLOOD
from tests.unit.remote.test_remote import dilaton
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub


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
    run = me.launch(me.keep(ENDLESS.replace("tiny", "endless")), stays=True)
    me.wait(run, "running")
    yield run
    me.api("POST", f"/runs/{run}/stop")
    me.wait(run, "aborted", "finished")


@pytest.fixture
def there(server: Served, monkeypatch: pytest.MonkeyPatch) -> Server:
    asked = {"label": "this machine", "scopes": ["Lab.*", "Run.*"], "days": 1}
    token = str(server.client().api("POST", "/tokens", asked)["secret"])
    monkeypatch.setenv("DILATON_TOKEN", token)
    return Server(server.settings.origin, token)


def wait_for_none(server: Served) -> None:
    """Waits until no program in a node is counted any more."""

    async def none() -> None:
        while server.state.sessions.count:
            await asyncio.sleep(0.02)

    asyncio.run(asyncio.wait_for(none(), PATIENCE_HOST_S))


def closed_by(connection: ClientConnection) -> int:
    """The code by which the server closes a connection, whatever it still says before."""
    try:
        while True:
            connection.recv(PATIENCE_HOST_S)
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        return closed.rcvd.code


def test_a_program_in_a_node_has_the_streams_of_who_has_started_it(there: Server, run: str, server: Served) -> None:
    async def talk() -> tuple[int, bytes]:
        async with session(reached(there.run(run)), "a", ["repeats"]) as begun:
            (stdin, ours), (out, stdout) = os.pipe(), os.pipe()
            with open(os.devnull, "wb") as nothing, open(out, "rb") as said:
                begun.attach(stdin, stdout, nothing.fileno())
                os.write(ours, b"flood")
                data = b""
                while not data.endswith(FLOOD[-8:]):
                    data += await asyncio.to_thread(os.read, said.fileno(), 1 << 16)
                os.write(ours, b"exit")
                ending = await begun.wait()
                for file in (stdin, ours, stdout):
                    os.close(file)
            return ending.status, data

    status, data = asyncio.run(talk())
    assert status == 3 and FLOOD in data
    wait_for_none(server)


def test_what_a_run_refuses_is_told_in_its_words(there: Server, run: str, server: Served) -> None:
    with pytest.raises(ServerError, match="no such node; there are a, b"):
        asyncio.run(captured(reached(there.run(run)), "nowhere", ["true"]))
    with pytest.raises(ServerError, match="there is none that you may see"):
        asyncio.run(captured(reached(there.run("0" * 16)), "a", ["true"]))
    wait_for_none(server)


def test_a_session_is_only_for_whom_may_have_it_and_only_so_many(
    there: Server, run: str, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "OF_PERSON_MAX", 0)
    with pytest.raises(ServerError, match="at most 0") as refused:
        asyncio.run(captured(reached(there.run(run)), "a", ["true"]))
    assert refused.value.kind == "urn:dilaton:limit"
    ann = server.client("ann").api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})
    with pytest.raises(ServerError):
        asyncio.run(captured(reached(Server(server.settings.origin, ann["secret"]).run(run)), "a", ["true"]))


@pytest.mark.parametrize("first", ["{}", '{"node": "a", "argv": []}', b"bytes", "[" * 1000])
def test_what_asks_for_no_program_ends_the_connection(first: str | bytes, run: str, server: Served) -> None:
    url = f"ws://{server.settings.host}:{server.settings.port}/api/v1/runs/{run}/sessions"
    me = server.client()
    with connect(url, additional_headers=me.headers, proxy=None) as connection:
        connection.send(first)
        assert closed_by(connection) == 4002


@pytest.mark.parametrize("asked", [{"port": 0}, {"port": 65_536}, {"port": 80, "argv": ["sh"]}])
def test_what_is_no_port_is_connected_to_nothing(asked: dict[str, object], run: str, server: Served) -> None:
    url = f"ws://{server.settings.host}:{server.settings.port}/api/v1/runs/{run}/sessions"
    with connect(url, additional_headers=server.client().headers, proxy=None) as connection:
        connection.send(json.dumps({"node": "a"} | asked))
        assert closed_by(connection) == 4002


def test_a_port_of_a_node_is_for_whom_may_have_programs_there(run: str, server: Served) -> None:
    boss, folder = server.client(), server.client().api("GET", f"/runs/{run}")["folder"]
    origin = server.settings.origin

    async def connected(secret: str, to: str, node: str) -> None:
        async with reached(Server(origin, secret).run(to)).port(node, 80) as line:
            line.close()

    def token(person: str, *scopes: str) -> str:
        asked = {"label": "x", "scopes": scopes, "days": 1}
        return str(server.client(person).api("POST", "/tokens", asked)["secret"])

    ann = token("ann", "*")
    for role, status in ((None, 404), ("reader", 403)):
        grants = [{"path": folder, "role": role}] if role else []
        boss.api("PUT", "/people/ann", {"is_active": True, "grants": grants})
        with pytest.raises(ServerError) as refused:
            asyncio.run(connected(ann, run, "a"))
        assert refused.value.status == status
    with pytest.raises(ServerError) as narrow:
        asyncio.run(connected(token("owner", "Run.Read", "Run.Files"), run, "a"))
    assert narrow.value.status == 403
    boss.api("PUT", "/people/ann", {"is_active": True, "grants": [{"path": folder, "role": "operator"}]})
    asyncio.run(connected(ann, run, "a"))
    for to, node, why in ((run, "127.0.0.1", "no such node"), ("../" + run, "a", "."), ("0" * 16, "a", "none that")):
        with pytest.raises(ServerError, match=why):
            asyncio.run(connected(ann, to, node))
    wait_for_none(server)


def test_what_is_no_frame_ends_the_session_and_nothing_else(run: str, server: Served) -> None:
    url = f"ws://{server.settings.host}:{server.settings.port}/api/v1/runs/{run}/sessions"
    me = server.client()
    with connect(url, additional_headers=me.headers, proxy=None) as connection:
        connection.send(json.dumps({"node": "a", "argv": ["sh"]}))
        assert connection.recv(PATIENCE_HOST_S) == "{}"
        connection.send(b"\xff" * 1000)
        assert closed_by(connection) == 1000
    wait_for_none(server)
    assert me.api("GET", f"/runs/{run}")["state"] == "running"


def test_who_loses_the_permission_loses_the_session(run: str, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.server.api.runs.terminals.ALLOWED_HOST_S", 0.05)
    boss, folder = server.client(), server.client().api("GET", f"/runs/{run}")["folder"]
    boss.api("PUT", "/people/ann", {"is_active": True, "grants": [{"path": folder, "role": "operator"}]})
    url = f"ws://{server.settings.host}:{server.settings.port}/api/v1/runs/{run}/sessions"
    with connect(url, additional_headers=server.client("ann").headers, proxy=None) as connection:
        connection.send(json.dumps({"node": "a", "argv": ["sh"]}))
        assert connection.recv(PATIENCE_HOST_S) == "{}"
        boss.api("PUT", "/people/ann", {"is_active": True, "grants": [{"path": folder, "role": "reader"}]})
        assert closed_by(connection) == 4001


def test_a_capture_names_what_there_is(run: str, server: Served, there: Server) -> None:
    me = server.client()
    for query, status, why in (
        ("place=a:eth9", 422, "no such interface"),
        ("place=nowhere", 422, "no such node"),
        ("place=a&filter=not+a+filter", 422, "not a filter"),
        ("place=a&filter=host+example.org", 422, "names of nodes mean nothing here"),
        ("place=a&snaplen=0", 422, "snaplen"),
        ("", 422, "place"),
    ):
        answer = me.ask("GET", f"/api/v1/runs/{run}/capture?{query}")
        assert answer.status == status and why in answer.json["detail"], answer
    with pytest.raises(ServerError, match="no such node"), there.run(run).capture("nowhere"):
        pass


def test_a_plan_that_a_guest_has_written_over_captures_nothing(run: str, server: Served) -> None:
    plan = server.state.keeper.run_dir(run) / "plan.json"
    before = plan.read_bytes()
    try:
        for written in (b"{", b'{"nodes": 1}', b"\xff" * 100):
            plan.write_bytes(written)
            answer = server.client().ask("GET", f"/api/v1/runs/{run}/capture?place=a")
            assert answer.status in (409, 422) and "plan" in answer.json["detail"], answer
        plan.unlink()
        plan.symlink_to("/etc/passwd")
        assert server.client().ask("GET", f"/api/v1/runs/{run}/capture?place=a").status == 409
    finally:
        plan.unlink()
        plan.write_bytes(before)


def test_what_a_capture_writes_comes_while_it_goes_on(
    run: str, there: Server, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine without a kernel every program says `ready` and repeats what it reads.
    with there.run(run).capture("a", "tcp", count=3) as packets:
        assert packets.read(5) == b"ready"
        assert server.state.captures.count == 1
    assert "run.console" in [one["action"] for one in server.client().api("GET", "/audit")]


def test_the_command_line_steers_and_reads_a_run_there(
    run: str,
    server: Served,
    there: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dilaton(server, "link", "endless") == 0
    assert "a:eth0--b:eth0" in capfd.readouterr().out
    assert dilaton(server, "fault", run, "list") == 0
    assert "no faults" in capfd.readouterr().out
    with pytest.raises(BadInputError, match="no such"):
        dilaton(server, "link", run, "a--nowhere", "down")
    with pytest.raises(BadInputError, match="one of them is NODE:PATH"):
        dilaton(server, "cp", run, "here", "there")
    with pytest.raises(BadInputError, match="no such node"):
        dilaton(server, "shell", run, "nowhere", "true")
    assert dilaton(server, "logs", run) == 0


def test_results_there_are_reported_and_compared_here(
    server: Served, there: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (there.launch(LAB) for _ in range(2))
    assert (first.wait(), second.wait()) == ("finished", "finished")
    assert not dilaton(server, "report", first.identity)
    page = Path(capfd.readouterr().out.strip())
    assert page.name == "report.html" and page.is_file()
    # The lab measures nothing, so that there is nothing to compare; what counts is that both are read.
    assert dilaton(server, "compare", first.identity, second.identity) == 2
    with pytest.raises(BadInputError, match="given twice"):
        dilaton(server, "compare", first.identity, first.identity)
    with pytest.raises(BadInputError, match="no run, and no lab"):
        dilaton(server, "report", "nowhere")


def test_outputs_there_are_followed_until_the_run_ends(
    server: Served, there: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    going = there.launch(ENDLESS)
    while going.show()["state"] != "running":
        time.sleep(0.05)
    output = server.state.keeper.run_dir(going.identity) / "nodes" / "a" / "endless.stdout"
    output.parent.mkdir(parents=True, exist_ok=True)
    written = [b"first\nhal", b"f\nlast without an end"]

    def sleep(_: float) -> None:
        if written:
            with output.open("ab") as file:
                file.write(written.pop(0))
        else:
            going.stop()
            going.wait()

    monkeypatch.setattr("dilaton.cli.runs.reaching.time", SimpleNamespace(sleep=sleep))
    assert dilaton(server, "logs", going.identity, "a/endless", "-f") == 0
    said = capfd.readouterr().out
    assert said == "==> a/endless.stdout <==\nfirst\nhalf\nlast without an end\n"
