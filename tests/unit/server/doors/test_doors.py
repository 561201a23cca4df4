"""Pages of nodes behind doors: each a host of its own, for one person's browser, from which nothing of the server's is
reached. The node is a server of this machine here; with a kernel it is in `tests/functional/server/test_forward.py`."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from dilaton.server.access.callers import Caller, cookie, make_person
from dilaton.server.access.rules import Access
from dilaton.server.api.runs import terminals
from dilaton.server.database.tables import GrantRow, Person
from dilaton.server.doors import doorway
from dilaton.server.doors.carrying import BROKEN, ClosedError, from_node, to_node
from dilaton.server.doors.doors import LASTS_HOST_S, OF_PERSON_MAX, TICKET_HOST_S, Doors
from dilaton.server.problems import Problem
from dilaton.server.settings import Settings, SettingsError
from tests.unit.server.serving import LAB, Answer, Client, Served, run_row, served

IDENTITY = "0123456789abcdef"

LARGE = bytes(range(256)) * 20_000


class Node(http.server.BaseHTTPRequestHandler):
    """A page that says what it was asked, or is large, or breaks off."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answers."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        said = {"path": self.path, "method": self.command, "headers": dict(self.headers), "body": len(body)}
        answer = LARGE if self.path == "/large" else json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "own=1; Domain=localhost; Path=/")
        self.send_header("Clear-Site-Data", '"cookies"')
        self.send_header("Content-Length", str(len(answer) + (self.path == "/broken")))
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = True

    do_POST = do_PUT = do_GET

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def node() -> Iterator[int]:
    """The port of a node's page."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found.server_port
        found.shutdown()


@pytest.fixture(scope="module")
def talking() -> Iterator[int]:
    """The port of a node's WebSocket, which says what it hears."""

    def talk(connection: ServerConnection) -> None:
        connection.send(json.dumps(dict(connection.request.headers.raw_items()) if connection.request else {}))
        for message in connection:
            connection.send(message)

    with serve(talk, "127.0.0.1", 0, subprotocols=["talk"]) as found:  # type: ignore[list-item]
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found.socket.getsockname()[1]
        found.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    @contextlib.asynccontextmanager
    async def connected(_: Path, name: str, port: int) -> AsyncIterator[socket.socket]:
        line = socket.socket()
        line.setblocking(False)
        with line:
            try:
                await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", port))
                yield line
            except BROKEN as error:
                raise ClosedError(f"{name}:{port}: {error}") from error

    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server")) as found:
        monkeypatch.setattr(doorway, "connected", connected)
        monkeypatch.setattr(terminals, "ALLOWED_HOST_S", 0.2)
        with found.state.store.writing() as session:
            make_person(session, "ann")
            # Nobody follows it, as its process is not there.
            session.add(run_row(IDENTITY, "running", "ann"))
        yield found


def opened(server: Served, port: int) -> tuple[Client, Any]:
    """A browser that has come in by a door, as a page of it, and the door."""
    door = server.client("ann").api("POST", f"/runs/{IDENTITY}/doors", {"node": "a", "port": port})
    origin = door["url"].rstrip("/")
    browser = Client(server.settings, {"Host": origin.partition("//")[2]})
    let_in = browser.ask("GET", door["link"].removeprefix(origin))
    assert (let_in.status, let_in.headers["location"]) == (303, "/"), let_in
    return Client(server.settings, browser.headers | {"Cookie": let_in.headers["set-cookie"].partition(";")[0]}), door


def said(answer: Answer) -> Any:
    assert answer.status == 200, answer
    return answer.json


def test_a_page_is_asked_and_answers_as_it_is(server: Served, node: int) -> None:
    browser, door = opened(server, node)
    heard = said(browser.ask("GET", "/a%2Fb/../c?x=%20&y"))
    assert (heard["path"], heard["headers"]["host"]) == ("/a%2Fb/../c?x=%20&y", browser.headers["Host"])
    assert "cookie" not in heard["headers"], "the door's own is none of the node's"
    heard = said(browser.ask("POST", "/", LARGE, Cookie=f"b=2; {browser.headers['Cookie']}; c=3"))
    assert (heard["method"], heard["body"], heard["headers"]["cookie"]) == ("POST", len(LARGE), "b=2; c=3")
    large = browser.ask("GET", "/large")
    assert large.body == LARGE and large.headers["set-cookie"] == "own=1; Path=/", "a cookie is of this host alone"
    assert "clear-site-data" not in large.headers and "content-security-policy" not in large.headers
    assert [one["door"] for one in server.client("ann").api("GET", f"/runs/{IDENTITY}/doors")] == [door["door"]]
    server.client("ann").api("DELETE", f"/runs/{IDENTITY}/doors/{door['door']}")
    assert browser.ask("GET", "/").status == 404


def test_a_link_lets_in_one_browser_once(server: Served, node: int) -> None:
    browser, door = opened(server, node)
    path = "/.dilaton/enter?" + door["link"].partition("?")[2]
    stranger = Client(server.settings, {"Host": browser.headers["Host"]})
    assert stranger.ask("GET", path).status == 403, "it has been used"
    for cookies in ({}, {"Cookie": "dilaton-door=x"}, {"Cookie": 'dilaton-door="'}):
        assert stranger.ask("GET", "/", **cookies).status == 403
    assert said(browser.ask("GET", "/"))["path"] == "/"
    other, _ = opened(server, node)
    mixed = Client(server.settings, {"Host": browser.headers["Host"], "Cookie": other.headers["Cookie"]})
    assert mixed.ask("GET", "/").status == 403, "a cookie is of its door alone"


def test_nothing_of_the_servers_is_under_the_name_of_a_node(server: Served, node: int) -> None:
    browser, _ = opened(server, node)
    for path in ("/api/v1/session", "/openapi.json", "/healthz", "/login", "/page/x"):
        assert said(browser.ask("GET", path))["path"] == path, "the node answers, and nobody else"
    with_both = f"{server.client('ann').headers['Cookie']}; {browser.headers['Cookie']}"
    assert "api" in said(browser.ask("GET", "/api/v1/session", Cookie=with_both))["path"]
    cookie_of_door = browser.headers["Cookie"]
    assert Client(server.settings, {"Cookie": cookie_of_door}).ask("GET", "/api/v1/session").status == 401
    # What the node's page asks of the server's own name comes from another origin.
    origin = f"http://{browser.headers['Host']}"
    for headers in ({"Origin": origin}, {"Origin": "", "Sec-Fetch-Site": "same-site"}):
        asked = Client(server.settings, server.client("ann").headers | headers)
        assert asked.ask("POST", "/api/v1/labs", {"name": "x", "text": LAB}).status == 403
    let_in = server.client("ann").ask("GET", "/api/v1/session")
    assert "access-control-allow-origin" not in let_in.headers
    assert let_in.headers["cross-origin-resource-policy"] == "same-origin"
    assert cookie(server.settings) != doorway.cookie(server.settings)


@pytest.mark.parametrize(
    "host", ["{}.localhost", "x.localhost:{port}", "{}.localhost:{port}.", "x{}.localhost:{port}", "{}.evil:{port}", ""]
)
def test_another_name_is_nobodys(server: Served, node: int, host: str) -> None:
    browser, door = opened(server, node)
    name = host.replace("{port}", str(server.settings.port)).replace("{}", door["door"])
    assert Client(server.settings, browser.headers | {"Host": name}).ask("GET", "/").status in (400, 404, 421)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ],
)
def test_pages_of_others_ask_nothing_of_a_node(server: Served, node: int, headers: dict[str, str], status: int) -> None:
    browser, _ = opened(server, node)
    assert browser.ask("GET", "/", **headers).status == status


def test_a_node_that_does_not_answer_is_told(server: Served, node: int) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        browser, _ = opened(server, nobody.getsockname()[1])
        answer = browser.ask("GET", "/")
    assert answer.status == 502 and b"a:" in answer.body
    browser, _ = opened(server, node)
    with pytest.raises(Exception, match="IncompleteRead"):
        browser.ask("GET", "/broken")


def test_messages_go_both_ways_and_only_of_its_own_pages(server: Served, talking: int) -> None:
    browser, door = opened(server, talking)
    settings, origin = server.settings, door["url"].rstrip("/")
    url = f"ws://{browser.headers['Host']}/chat?x=1"
    line = socket.create_connection((settings.host, settings.port))
    sent = {"Cookie": f"{browser.headers['Cookie']}; own=1"}
    with connect(url, sock=line, origin=origin, additional_headers=sent, subprotocols=["talk"], proxy=None) as shown:  # type: ignore[arg-type, list-item]
        heard = json.loads(shown.recv())
        assert heard["cookie"] == "own=1" and heard["Origin"] == origin and shown.subprotocol == "talk"
        for message in ("text", b"bytes", LARGE[:100_000]):
            shown.send(message)
            assert shown.recv() == message
    for wrong in ("http://elsewhere.example", settings.origin, None):
        line = socket.create_connection((settings.host, settings.port))
        with pytest.raises(InvalidStatus), connect(url, sock=line, origin=wrong, additional_headers=sent, proxy=None):  # type: ignore[arg-type]
            pass


def test_who_may_no_longer_is_cut_off(server: Served, talking: int) -> None:
    browser, door = opened(server, talking)
    url, line = f"ws://{browser.headers['Host']}/", socket.create_connection(("127.0.0.1", server.settings.port))
    origin, sent = door["url"].rstrip("/"), {"Cookie": browser.headers["Cookie"]}
    with connect(url, sock=line, origin=origin, additional_headers=sent, subprotocols=["talk"], proxy=None) as shown:  # type: ignore[arg-type, list-item]
        shown.recv()
        with server.state.store.writing() as session:
            session.get_one(Person, "ann").is_active = False
        with contextlib.suppress(Exception):
            while shown.recv(10):
                pass
        assert shown.close_code is not None
    assert browser.ask("GET", "/").status in (403, 404)
    with server.state.store.writing() as session:
        session.get_one(Person, "ann").is_active = True


def test_only_who_may_have_terminals_opens_a_door_and_sees_their_own(server: Served, node: int) -> None:
    with server.state.store.writing() as session:
        make_person(session, "eve")
        make_person(session, "ben")
        session.add(GrantRow(person="ben", path="/home/ann", role="reader", denies=False, propagates=True))
    _, door = opened(server, node)
    asked = {"node": "a", "port": node}
    server.client("eve").api("POST", f"/runs/{IDENTITY}/doors", asked, 404)
    server.client("ben").api("POST", f"/runs/{IDENTITY}/doors", asked, 403)
    assert server.client().api("GET", f"/runs/{IDENTITY}/doors") == []
    server.client().api("DELETE", f"/runs/{IDENTITY}/doors/{door['door']}", status=404)


def test_tickets_and_doors_have_an_end() -> None:
    doors, who = Doors(), Caller("ann", Access())
    door, ticket = doors.make(who, "r", "/r", "a", 80, 0.0)
    assert door.enter(ticket, TICKET_HOST_S + 1) is None and door.enter("x", 1.0) is None
    assert (said := door.enter(ticket, TICKET_HOST_S)) and door.knows(said) and not door.knows("")
    assert door.enter(ticket, 1.0) is None
    assert doors.find(door.label, LASTS_HOST_S - 1) is door and doors.find(door.label, LASTS_HOST_S + 1) is None
    for _ in range(OF_PERSON_MAX - 1):
        doors.make(who, "r", "/r", "a", 80, 0.0)
    with pytest.raises(Problem, match="doors of yours"):
        doors.make(who, "r", "/r", "a", 80, 1.0)
    doors.make(who, "r", "/r", "a", 80, LASTS_HOST_S + 1)
    unused, _ = Doors().make(who, "r", "/r", "a", 80, 0.0)
    assert not unused.knows(""), "who has not come yet has no cookie"


def test_headers_about_one_connection_or_another_host_go_no_further() -> None:
    asked = [(b"connection", b"close, X-Own"), (b"x-own", b"1"), (b"te", b"trailers"), (b"accept", b"*/*")]
    assert to_node(asked, b"door") == [(b"accept", b"*/*"), (b"connection", b"close")]
    told = [(b"alt-svc", b"x"), (b"set-cookie", b"a=b; DOMAIN = x.org; Secure"), (b"server", b"y")]
    assert from_node(told) == [(b"set-cookie", b"a=b; Secure"), (b"server", b"y")]


def test_a_server_of_others_takes_a_domain_that_is_not_its_own(tmp_path: Path) -> None:
    far = Settings(tmp_path, host="0.0.0.0", url="https://lab.example.org", proxies=("10.0.0.1",))
    assert far.domain == "" and far.label_of("x.localhost:8642") is None
    wide = Settings(tmp_path, url="https://lab.example.org", proxies=("::1",), proxy_domain="labs.example.org")
    wide.check()
    assert wide.label_of("x.labs.example.org") == "x" and wide.origin_of("x") == "https://x.labs.example.org"
    assert wide.label_of("lab.example.org") is wide.label_of("labs.example.org") is None
    assert wide.label_of("x.y.labs.example.org") is None
    for domain in ("example.org", "lab.example.org"):
        with pytest.raises(SettingsError, match="the server itself is"):
            Settings(tmp_path, url="https://lab.example.org", proxy_domain=domain).check()
    with pytest.raises(SettingsError, match="proxy_domain: takes a url of https"):
        Settings(tmp_path, proxy_domain="labs.example.org").check()
