"""What a server keeps for labs, and sweeps of its runs, from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.cli.errors import BadInputError, FailedError
from dilaton.lab.errors import LabError
from dilaton.service.errors import RequestError
from tests.images import needs_programs
from tests.unit.images.registry import serving
from tests.unit.remote.test_remote import dilaton
from tests.unit.server.serving import LAB, Served, served, use_stub

WIDE = LAB.replace("[a -- b]", "[{endpoints: [a, b], delay: 5ms}]")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server, and a directory here with a lab and a token for it."""
    with served(tmp_path / "server", at_once=4) as found:
        use_stub(monkeypatch)
        token = found.client().api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        monkeypatch.setenv("DILATON_TOKEN", token)
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        (here / "lab.yaml").write_text(WIDE)
        yield found


def test_a_sweep_runs_there_and_what_it_leaves_is_here_and_is_asked_for_once(
    server: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("sweep", "lab.yaml", "--set", "links.0.delay=1ms,2ms", "--repeat", "2")
    assert dilaton(server, *words) == 0
    said = capsys.readouterr().out
    assert "4 runs at" in said and "4/4 links.0.delay=2ms #1: well" in said
    swept = Path("sweeps/tiny")
    rows = (swept / "sweep.csv").read_text().splitlines()
    assert len(rows) == 5 and (swept / "report.html").is_file()
    delays = [
        json.loads((swept / f"links.0.delay={value}" / "0" / "plan.json").read_text())["nodes"]
        for value in ("1ms", "2ms")
    ]
    assert delays[0] != delays[1]
    (swept / "links.0.delay=1ms" / "1" / "run.json").unlink()
    assert dilaton(server, *words) == 0
    assert len(server.client().api("GET", "/sweeps")) == 1, "the same command goes on with the same sweep"
    assert (swept / "links.0.delay=1ms" / "1" / "run.json").is_file()
    with pytest.raises(RequestError, match="another lab or other fields"):
        dilaton(server, "sweep", "lab.yaml", "--set", "links.0.rate=1Mbit,2Mbit")
    with pytest.raises(BadInputError, match="--jobs"):
        dilaton(server, *words, "-j", "2")
    with pytest.raises(LabError, match=r"lab\.yaml: with links.0.delay=fast: fast: a delay"):
        dilaton(server, "sweep", "lab.yaml", "--set", "links.0.delay=1ms,fast", "--out", "other")


def test_templates_there_are_saved_listed_begun_with_and_removed(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine").mkdir()
    Path("mine/lab.yaml").write_text(WIDE)
    Path("mine/template.yaml").write_text("title: Two hosts\nparameters: {delay: {fields: links.0.delay}}\n")
    assert not dilaton(server, "template", "save", "mine", "pair")
    assert not dilaton(server, "template", "save", "mine", "pair"), "in place of the one of that name"
    capsys.readouterr()
    assert not dilaton(server, "template", "list")
    assert "Two hosts" in (listed := capsys.readouterr().out) and "delay" in listed
    assert not dilaton(server, "template", "show", "pair")
    assert json.loads(capsys.readouterr().out)["parameters"][0]["default"] == "5ms"
    assert not dilaton(server, "template", "new", "pair", "begun", "--set", "delay=9ms")
    assert Path("begun/lab.yaml").read_text() == WIDE.replace("5ms", "9ms").replace("tiny", "begun")
    assert [lab["name"] for lab in server.client().api("GET", "/labs")] == ["begun"]
    with pytest.raises(BadInputError, match="exists already"):
        dilaton(server, "template", "new", "pair", "begun")
    with pytest.raises(BadInputError, match="links"):
        dilaton(server, "template", "new", "pair", "other", "--set", "delay=fast")
    assert not Path("other").exists()
    with pytest.raises(BadInputError, match="names no single template: none"):
        dilaton(server, "template", "show", "nowhere")
    assert not dilaton(server, "template", "remove", "pair")
    assert server.client().api("GET", "/templates") == []


def test_runs_and_sweeps_there_are_spread_over_machines_of_the_server(
    server: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("lab.yaml").write_text(f"guests: 2\n{WIDE}")
    assert dilaton(server, "run", "lab.yaml", "--out", "run", "--machines", "2") == 0
    assert dilaton(server, "sweep", "lab.yaml", "--repeat", "2", "--machines", "2") == 0
    assert "2/2 #1: well" in capsys.readouterr().out
    client = server.client()
    assert [client.api("GET", f"/runs/{run['run']}/lab")["machines"] for run in client.api("GET", "/runs")] == [2] * 3
    with pytest.raises(BadInputError, match="3: the lab has 2 guests"):
        dilaton(server, "sweep", "lab.yaml", "--repeat", "2", "--machines", "3", "--out", "other")
    with pytest.raises(BadInputError, match="--onto"):
        dilaton(server, "sweep", "lab.yaml", "--repeat", "2", "--onto", "ws1")


@needs_programs
def test_images_there_are_pulled_listed_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with (
        serving(tmp_path / "registry") as registry,
        served(tmp_path / "server", registries=(f"http://{registry.name}",)) as server,
    ):
        token = server.client().api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
        monkeypatch.setenv("DILATON_TOKEN", token)
        name = f"{registry.name}/some/box:1"
        assert not dilaton(server, "image", "pull", name)
        assert capsys.readouterr().out.strip() == name
        assert not dilaton(server, "image", "list")
        assert registry.digest[7:19] in capsys.readouterr().out
        assert not dilaton(server, "image", "inspect", name)
        assert json.loads(capsys.readouterr().out)["digest"] == registry.digest
        with pytest.raises(BadInputError, match="these registries alone"):
            dilaton(server, "image", "pull", "quay.io/x")
        registry.cuts.update(registry.layers)
        assert not dilaton(server, "image", "remove", name)
        with pytest.raises(FailedError, match="failed"):
            dilaton(server, "image", "pull", name)
        with pytest.raises(BadInputError, match="image gc: only list, inspect, pull, remove ask a server"):
            dilaton(server, "image", "gc")
