"""What others try: pages of strangers, names that point here, paths that lead out, labs that take too much, false lines."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.server.access.callers import make_person
from dilaton.server.runs.files import listed, opened
from dilaton.server.settings import BODY_BYTES_MAX, Settings
from tests.conftest import ROOT
from tests.unit.server.serving import LAB, Served, run_row, served

IDENTITY = "0123456789abcdef"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        with found.state.store.writing() as session:
            make_person(session, "ann")
            session.add(run_row(IDENTITY, "finished", "ann"))
        run_dir = found.state.keeper.run_dir(IDENTITY)
        (run_dir / "nodes" / "a").mkdir(parents=True)
        (run_dir / "nodes" / "a" / "x.stdout").write_text("words")
        (run_dir / "link").symlink_to("/etc/passwd")
        (run_dir / "out").symlink_to("/etc")
        (run_dir / "report.html").symlink_to("/etc/passwd")
        os.mkfifo(run_dir / "pipe")
        yield found


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://elsewhere.example", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "", "Sec-Fetch-Site": "same-origin"}, 201),
    ],
)
def test_a_page_of_a_stranger_changes_nothing(headers: dict[str, str], status: int, server: Served) -> None:
    asked = {"name": "x", "text": LAB}
    assert server.client("ann").ask("POST", "/api/v1/labs", asked, **headers).status == status


def test_forms_and_scripts_that_need_not_ask_first_are_not_understood(server: Served) -> None:
    body = b'{"name": "x", "text": "y"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert server.client("ann").ask("POST", "/api/v1/labs", body, **{"Content-Type": kind}).status == 422


def test_a_name_that_was_pointed_here_is_not_served(server: Served) -> None:
    for host in ("elsewhere.example", f"elsewhere.example:{server.settings.port}", "127.0.0.1", ""):
        assert server.client("ann").ask("GET", "/api/v1/labs", Host=host).status == 421, host
    assert server.client("ann").ask("GET", "/api/v1/labs", Host=f"localhost:{server.settings.port}").status == 200


def test_a_request_that_is_too_large_is_refused_whether_it_says_so_or_not(server: Served) -> None:
    client = server.client("ann")
    before = client.api("GET", "/labs?count=1")
    said = {"Content-Length": str(BODY_BYTES_MAX + 1)}
    assert client.ask("POST", "/api/v1/labs", b" ", **said).status == 413
    connection = http.client.HTTPConnection(server.settings.host, server.settings.port, timeout=60)
    pieces = iter([b" " * (1 << 20)] * ((BODY_BYTES_MAX >> 20) + 1))
    kind = {"Content-Type": "application/json"}
    try:
        connection.request("POST", "/api/v1/labs", pieces, client.headers | kind, encode_chunked=True)
        assert connection.getresponse().status == 413
    except ConnectionError:
        pass  # the server has answered and gone before all of it was sent
    finally:
        connection.close()
    assert client.api("GET", "/labs?count=1") == before


@pytest.mark.parametrize(
    "path",
    [
        "link",
        "out/passwd",
        "pipe",
        "nodes",
        "../../server.sqlite",
        "..%2f..%2fserver.sqlite",
        "%2e%2e/journal.txt",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "nodes//a/x.stdout",
        "nodes/./a/x.stdout",
        "nodes%00/a/x.stdout",
        "x" * 5000,
    ],
)
def test_no_path_leads_out_of_a_run_or_into_a_link_or_a_pipe(path: str, server: Served) -> None:
    assert server.client("ann").ask("GET", f"/api/v1/runs/{IDENTITY}/files/{path}").status == 404


def test_what_a_run_has_left_is_plain_files_alone(server: Served) -> None:
    ann = server.client("ann")
    assert ann.api("GET", f"/runs/{IDENTITY}/files") == [{"path": "nodes/a/x.stdout", "size_bytes": 5}]
    fetched = ann.ask("GET", f"/api/v1/runs/{IDENTITY}/files/nodes/a/x.stdout")
    assert fetched.body == b"words" and fetched.headers["x-content-type-options"] == "nosniff"
    assert ann.ask("GET", f"/api/v1/runs/{IDENTITY}/report").status == 404


def test_a_name_that_is_no_text_is_not_listed_and_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).touch()
    (tmp_path / 'a"\r\nSet-Cookie: x').touch()
    assert listed(tmp_path) == [('a"\r\nSet-Cookie: x', 0)]
    opened(tmp_path, 'a"\r\nSet-Cookie: x').close()


def test_a_name_of_a_file_says_nothing_else_in_a_header(server: Served) -> None:
    name = 'a"; filename=b.html'
    (server.state.keeper.run_dir(IDENTITY) / "nodes" / "b").mkdir()
    (server.state.keeper.run_dir(IDENTITY) / "nodes" / "b" / name).touch()
    asked = "/api/v1/runs/" + IDENTITY + "/files/nodes/b/a%22;%20filename=b.html"
    fetched = server.client("ann").ask("GET", asked)
    assert fetched.status == 200
    plain, encoded = "a___filename_b.html", "a%22%3B%20filename%3Db.html"
    assert fetched.headers["content-disposition"] == f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"
    assert server.client("ann").ask("GET", f"{asked}%0d%0aSet-Cookie:%20x=1").status == 404
    (server.state.keeper.run_dir(IDENTITY) / "nodes" / "b" / name).unlink()
    (server.state.keeper.run_dir(IDENTITY) / "nodes" / "b").rmdir()


def test_a_lab_that_grows_without_end_is_refused_and_the_server_goes_on(server: Served) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for one, before in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"{one}: &{one} [{', '.join([f'*{before}'] * 9)}]\n"
    refused = server.client("ann").api("POST", "/check", {"text": bomb}, status=422)
    assert refused["type"] == "urn:dilaton:lab"
    assert server.stranger().ask("GET", "/healthz").status == 200


def test_a_lab_sees_no_file_of_the_machine_that_its_writer_may_not_name(server: Served, tmp_path: Path) -> None:
    graph = 'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ] edge [ source 0 target 1 ] ]\n'
    (Path(server.settings.directory) / "mine.gml").write_text(graph)
    beside = Path(__file__).resolve().parents[3] / "target" / f"{os.getpid()}.gml"
    beside.parent.mkdir(exist_ok=True)
    beside.write_text(graph)
    try:
        lab = f"name: x\ntopology: {{file: {beside}, delay: 1ms}}\n"
        assert server.client().api("POST", "/check", {"text": lab})["name"] == "x"
        refused = server.client("ann").api("POST", "/check", {"text": lab}, status=422)
        assert "cannot be read" in refused["problems"][0]["message"]
    finally:
        beside.unlink()
    for person in ("owner", "ann"):
        text = f"name: x\ntopology: {{file: {server.settings.directory}/mine.gml, delay: 1ms}}\n"
        refused = server.client(person).api("POST", "/check", {"text": text}, status=422)
        assert "cannot be read" in refused["problems"][0]["message"], "nobody's lab sees the server's own data"


def test_no_name_makes_a_line_of_its_own_in_what_is_written_down(server: Served) -> None:
    ann = server.client("ann")
    assert ann.api("POST", "/labs", {"name": "x\nroot deleted everything", "text": ""}, status=422)
    text = "# \n2026 root deleted everything\x1b[2J"
    lab = ann.api("POST", "/labs", {"name": "plain", "text": text})["lab"]
    entry = server.client().api("GET", "/audit?action=lab.make&count=1")[0]
    assert entry["path"] == f"/home/ann/labs/{lab}" and entry["data"] == {"version": 1, "name": "plain"}


def test_answers_tell_browsers_to_execute_nothing_of_others(server: Served) -> None:
    for path in ("/", "/login", "/healthz", "/page/none.js", "/api/v1/labs", "/nowhere"):
        headers = server.stranger().ask("GET", path).headers
        assert "script-src 'self'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    shown = server.stranger().ask("GET", '/login?once="><script>alert(1)</script>'.replace(" ", "%20")).body
    assert b"<script>" not in shown


def test_the_page_has_no_script_or_style_in_itself(server: Served) -> None:
    for path in ("/", "/login"):
        page = server.stranger().ask("GET", path).body.decode()
        assert page.count("<script") == len(re.findall('<script type="module" [a-z ]*src="/page/', page))
        assert "<style" not in page
        assert not [word for word in (" onclick", " onload", " style=", "javascript:") if word in page]


def test_what_the_page_is_told_never_becomes_markup() -> None:
    sources = [path for path in (ROOT / "web" / "src").rglob("*") if path.suffix in (".svelte", ".ts")]
    assert len(sources) > 20
    ways = (
        "{@html",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        ' style="',
    )
    assert not [(path.name, way) for path in sources for way in ways if way in path.read_text()]


@pytest.mark.parametrize("name", ["..%2Fsetup", ".npmrc", "index", "index.html%00.js", "a%2Fb.js", "x" * 300 + ".js"])
def test_parts_of_the_page_are_files_of_the_page_alone(server: Served, name: str) -> None:
    assert server.stranger().ask("GET", f"/page/{name}").status == 404


def test_over_tls_the_cookie_travels_over_nothing_else() -> None:
    plain, secure = Settings(Path("x")), Settings(Path("x"), url="https://lab.example/")
    assert not plain.is_secure and secure.is_secure
    assert secure.origins == {"https://lab.example"} and secure.hosts == {"lab.example"}
    assert plain.hosts == {"127.0.0.1:8642", "localhost:8642", "[::1]:8642"}
