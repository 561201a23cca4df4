"""A server is asked from Python and by the command line: what it does there, and that it is not believed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dilaton.cli import main as cli
from dilaton.cli.errors import BadInputError
from dilaton.lab.errors import LabError
from dilaton.remote.asking import ServerError
from dilaton.remote.server import FINAL, RemoteRun, Server
from dilaton.run.loading import load
from dilaton.server.runs import life
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server")) as found:
        use_stub(monkeypatch)
        yield found


@pytest.fixture(scope="module")
def token(server: Served) -> str:
    asked = {"label": "this machine", "scopes": ["Lab.*", "Run.*"], "days": 1}
    return str(server.client().api("POST", "/tokens", asked)["secret"])


def dilaton(server: Served, *words: str) -> int:
    """Does what a command line says; returns the exit status."""
    status: int = cli.app(["--server", server.settings.origin, *words], prog_name="dilaton", standalone_mode=False)
    return status


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> Path:
    """The present directory, with a lab that is over at once, and one that is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DILATON_TOKEN", token)
    (tmp_path / "lab.yaml").write_text(LAB)
    (tmp_path / "endless.yaml").write_text(ENDLESS.replace("tiny", "endless"))
    return tmp_path


def test_a_run_is_over_here_in_the_states_in_which_it_is_over_there() -> None:
    assert set(FINAL) == life.FINAL


def test_a_run_is_launched_watched_fetched_and_removed(server: Served, token: str, tmp_path: Path) -> None:
    there = Server(server.settings.origin, token)
    run = there.launch(LAB, overrides={"settings": ["seed=7"]})
    states = list(run.states())
    assert states[-1] == "finished" and len(states) == len(set(states))
    run.fetch(tmp_path / "run")
    left = load(tmp_path / "run")
    assert (left.record.state, left.record.seed) == ("finished", 7)
    kept = server.state.keeper.run_dir(run.identity)
    for file in kept.rglob("*"):
        if file.is_file():
            assert (tmp_path / "run" / file.relative_to(kept)).read_bytes() == file.read_bytes()
    assert there.launch(LAB).wait() == "finished"
    names = [lab["name"] for lab in there.ask("GET", "/labs")]
    assert names == ["tiny"], "the same text is no other lab"
    run.remove()
    with pytest.raises(ServerError, match="there is none") as refused:
        run.show()
    assert refused.value.status == 404


def test_the_command_line_runs_a_lab_there_and_shows_what_it_left(
    server: Served, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dilaton(server, "run", "lab.yaml", "--out", "mine") == 0
    said = capsys.readouterr()
    assert "finished" in said.err and "outputs and record: mine" in said.out
    assert load("mine").record.lab == "tiny"
    with pytest.raises(BadInputError, match="is there already"):
        dilaton(server, "run", "lab.yaml", "--out", "mine")
    assert dilaton(server, "run", "lab.yaml", "--junit", "checks.xml") == 0
    assert (here / "checks.xml").is_file() and len(list((here / "runs").iterdir())) == 1


def test_mistakes_of_a_lab_have_the_place_in_the_file_here(server: Served, here: Path) -> None:
    (here / "lab.yaml").write_text(LAB.replace("a -- b", "a -- c"))
    with pytest.raises(LabError, match=r"^lab\.yaml:3:\d+: "):
        dilaton(server, "run", "lab.yaml")


def test_a_lab_that_stays_is_seen_steered_and_ended(
    server: Served, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dilaton(server, "up", "-d", "endless.yaml") == 0
    run = capsys.readouterr().out.strip()
    assert dilaton(server, "ps") == 0
    assert run in (shown := capsys.readouterr().out) and "endless" in shown
    assert dilaton(server, "clock", run, "hold") == 0
    assert "held at TDF" in capsys.readouterr().out
    assert dilaton(server, "clock", "endless") == 0
    with pytest.raises(BadInputError, match="until wants a value"):
        dilaton(server, "clock", run, "until")
    assert dilaton(server, "down", "endless") == 0
    with pytest.raises(BadInputError, match="names no single run"):
        dilaton(server, "down", "endless")
    assert dilaton(server, "ps", "--all") == 0
    assert run in capsys.readouterr().out


def test_what_a_server_does_not_do_is_refused(server: Served, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, why in (
        (("check", "lab.yaml"), r"only run, up, ps, down, stop, clock"),
        (("up", "lab.yaml"), "--detach"),
        (("run", "lab.yaml", "--no-jail"), "not at a server"),
    ):
        with pytest.raises(BadInputError, match=why):
            dilaton(server, *words)
    monkeypatch.setenv("DILATON_TOKEN", "dilaton_wrong")
    with pytest.raises(BadInputError, match="no such token"):
        dilaton(server, "ps")


@pytest.mark.parametrize(
    ("url", "token", "why"),
    [
        ("http://lab.example.org", "x", "https:// alone"),
        ("ftp://localhost", "x", "not the URL"),
        ("http://localhost:99999", "x", "not the URL"),
        ("https://lab.example.org/elsewhere", "x", "not the URL"),
        ("https://lab.example.org", "", "wants a token"),
        ("https://lab.example.org", "x\r\nCookie: y", "wants a token"),
    ],
)
def test_a_token_goes_nowhere_in_plain_text_and_makes_no_header(url: str, token: str, why: str) -> None:
    with pytest.raises(ServerError, match=why):
        Server(url, token)


class Liar(BaseHTTPRequestHandler):
    """A server that answers what it is told to."""

    answers: ClassVar[dict[str, tuple[int, Any]]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status, said = self.answers.get(self.path.removeprefix("/api/v1/runs/x"), (200, b"contents"))
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def liar() -> Iterator[RemoteRun]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as serving:
        threading.Thread(target=serving.serve_forever).start()
        try:
            yield Server(f"http://127.0.0.1:{serving.server_port}", "x").run("x")
        finally:
            serving.shutdown()


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../out", "a//b", "./a", "", "a\0b", ".."])
def test_no_name_of_a_file_leads_out_of_the_directory(liar: RemoteRun, path: str, tmp_path: Path) -> None:
    Liar.answers = {"/files": (200, [{"path": "run.json", "size_bytes": 1}, {"path": path, "size_bytes": 1}])}
    with pytest.raises(ServerError, match="not a name of a file"):
        liar.fetch(tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists(), "the record comes last"
    assert {file.name for file in tmp_path.rglob("*")} <= {"run"}


def test_answers_that_are_none_are_told(liar: RemoteRun) -> None:
    for answer in ((200, b"<html>"), (500, b"<html>"), (500, {"detail": 1}), (302, b"")):
        Liar.answers, Liar.asked = {"": answer}, []
        with pytest.raises(ServerError, match="is it a server of Dilaton"):
            liar.show()
        assert len(Liar.asked) == 1, "nobody is sent elsewhere with the token"


def test_a_run_whose_answer_was_lost_is_asked_for_again_by_its_key(
    server: Served, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, lost, ask = Server(server.settings.origin, token), [], Server.ask

    def losing(self: Server, method: str, path: str, body: Any = None) -> Any:
        answer = ask(self, method, path, body)
        if path.endswith("/runs") and len(lost) < 2:
            lost.append(answer["run"])
            raise ServerError("the connection is lost")
        return answer

    monkeypatch.setattr("dilaton.remote.server.AGAIN_HOST_S", 0.01)
    monkeypatch.setattr(Server, "ask", losing)
    run = there.launch(LAB)
    assert lost == [run.identity] * 2
    assert run.wait() == "finished"


def test_states_go_on_where_a_connection_was_lost(liar: RemoteRun, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b'id: 7\nevent: run\ndata: {"run": "x", "state": "%s"}\n\n'
    asked = []

    class Losing(Liar):
        def do_GET(self) -> None:
            last = self.headers.get("Last-Event-ID")
            asked.append(last)
            body = lines % (b"running" if last is None else b"finished")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + (5 if last is None else 0)))
            self.end_headers()
            self.wfile.write(body)

    monkeypatch.setattr("dilaton.remote.server.AGAIN_HOST_S", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), Losing) as serving:
        threading.Thread(target=serving.serve_forever).start()
        run = Server(f"http://127.0.0.1:{serving.server_port}", "x").run("x")
        assert list(run.states()) == ["running", "finished"]
        serving.shutdown()
    assert asked == [None, "7"]
