"""Files of other programs become labs at a server, which reads them in workers alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dilaton.server.labs.importing import on_canvas
from tests.conftest import ROOT
from tests.unit.server.serving import Client, Served, served

FIXTURES = ROOT / "tests" / "unit" / "importers" / "fixtures"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as found:
        yield found


def take(client: Client, name: str, text: str, status: int = 200, **also: str) -> Any:
    return client.api("POST", "/import", {"name": name, "text": text, **also}, status)


@pytest.mark.parametrize(
    "file", [path for path in sorted(FIXTURES.rglob("*.*")) if path.suffix != ".startup"], ids=lambda path: path.name
)
def test_each_format_becomes_a_lab_without_mistakes(file: Any, server: Served) -> None:
    owner = server.client()
    found = take(owner, file.name, file.read_text(), topo="pair")
    assert found["kind"] != "lab"
    made = owner.api("POST", "/labs", {"name": file.stem, "text": found["text"]})
    owner.api("PUT", f"/labs/{made['lab']}/layout", {"positions": found["positions"]}, 204)
    assert owner.api("POST", "/check", {"text": found["text"], "is_drawn": True})["drawing"]["nodes"]


def test_places_of_a_file_are_on_the_canvas_with_north_above() -> None:
    places = on_canvas({"north": (10.0, 60.0), "south": (10.0, 50.0), "east": (20.0, 55.0)})
    assert places["north"][1] < places["east"][1] < places["south"][1] and places["east"][0] > places["north"][0]
    assert on_canvas({"a": (1.0, 1.0), "b": (1.0, 1.0)}) == on_canvas({"a": (1.0, 1.0)}) == {}


def test_a_layout_keeps_where_on_earth_nodes_are_and_one_of_an_older_server_is_read(server: Served) -> None:
    owner = server.client()
    nodes = [(0, "Oslo", 10.7, 59.9), (1, "Wien", 16.4, 48.2)]
    listed = "".join(f'node [ id {n} label "{name}" Longitude {x} Latitude {y} ]' for n, name, x, y in nodes)
    found = take(owner, "europe.gml", f"graph [ {listed} edge [ source 0 target 1 ] ]")
    assert found["places"] == {"oslo": [10.7, 59.9], "wien": [16.4, 48.2]}
    lab = owner.keep()
    layout = {"positions": {"a": [1, 2]}, "places": {"a": [10.7, 59.9]}}
    owner.api("PUT", f"/labs/{lab}/layout", layout, 204)
    assert owner.api("GET", f"/labs/{lab}/layout") == layout
    owner.api("PUT", f"/labs/{lab}/layout", {"positions": {}, "places": {"a": [0, 91]}}, 422)
    (server.settings.layouts / f"{lab}.json").write_text('{"positions": [3, 4]}')
    assert owner.api("GET", f"/labs/{lab}/layout") == {"positions": {"positions": [3, 4]}, "places": {}}


ENTITIES = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
BOMB = f"""<!DOCTYPE x [<!ENTITY a0 "{"x" * 100}">{ENTITIES}]><topology><node name="&a8;"/></topology>"""

HOSTILE = {
    "entities": ("x.xml", BOMB, "x.xml:1"),
    "a file of the machine": (
        "x.graphml",
        '<!DOCTYPE g [<!ENTITY e SYSTEM "file:///etc/passwd">]><graphml>&e;</graphml>',
        "x.graphml:1",
    ),
    "no text": ("x.gml", "\x00\ufffd\x1b[2J", "x.gml: not GML"),
    "another format": ("x.graphml", "graph [ node [ id 0 ] ]", "x.graphml:1:1: not GraphML"),
    "deep JSON": ("x.json", "[" * 100_000, "x.json: not JSON"),
    "deep GML": ("x.gml", "graph [ " + "a [ " * 50_000, "x.gml: not GML"),
    "too many nodes": ("x.gml", "graph [ " + "".join(f"node [ id {n} ]" for n in range(50_001)), "50001 nodes"),
    "a name that would be a path": ("x.xml", '<topology><node name="../../a"/></topology>', "../../a"),
    "a program that multiplies": ("x.py", "import os\nos.fork()", "x.py: PermissionError"),
    "a program with threads": ("x.py", "import threading\nthreading.Thread().start()", "x.py: RuntimeError"),
    "a program of programs": ("x.py", "import subprocess\nsubprocess.run(['true'])", "x.py: PermissionError"),
    "a graph elsewhere": (
        "x.yaml",
        "network: {graph: {type: gml, file: {path: /etc/hostname}}}\nhosts: {}",
        "not GML",
    ),
}


@pytest.mark.parametrize(("name", "text", "said"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_told_of_and_harm_nobody(name: str, text: str, said: str, server: Served) -> None:
    owner = server.client()
    refused = take(owner, name, text, 422)
    assert said in refused["detail"] and str(server.settings.directory) not in refused["detail"]
    assert owner.api("GET", "/session")


@pytest.mark.parametrize("name", ["", "..", "a/b.gml", "a\x00.gml", "x" * 256, "\x1b[2J.gml"])
def test_a_file_is_in_no_directory(name: str, server: Served) -> None:
    assert take(server.client(), name, "graph [ ]", 422)["problems"][0]["field"] == "name"


def test_a_program_sees_neither_the_server_nor_the_network(server: Served) -> None:
    seen = f"""
import os, socket
from mininet.topo import Topo
def reaches():
    try:
        socket.create_connection(("127.0.0.1", {server.settings.port}), 2)
    except OSError:
        return False
    return True
class Sees(Topo):
    def build(self):
        found = [os.path.exists({str(server.settings.database)!r}), reaches(), os.access("/usr", os.W_OK)]
        self.addLink(self.addHost("h1"), self.addHost("h2"), bw=1000 if any(found) else 10)
topos = {{"sees": Sees}}
"""
    found = take(server.client(), "sees.py", seen)
    assert "rate: 10Mbit" in found["text"], found


def test_who_may_write_no_labs_imports_none(server: Served) -> None:
    owner = server.client()
    owner.api("POST", "/people", {"name": "reader"})
    owner.api("PUT", "/people/reader", {"is_active": True, "grants": [{"path": "/home/reader", "role": "reader"}]})
    assert take(server.client("reader"), "x.gml", "graph [ ]", 403)["permission"] == "Lab.Write"
