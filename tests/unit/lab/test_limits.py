"""What is too large, too deep or grows without end is refused before it has cost much, with its place."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from dilaton.lab.errors import LabError
from dilaton.lab.importers._attributed import PARTS_MAX
from dilaton.lab.loader import PROBLEMS_MAX, loads
from dilaton.lab.text import yaml_nodes
from dilaton.lab.topology import parse_topology
from tests.conftest import ROOT, environment

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
LONG = "x" * 1_000_000

HOSTILE = {
    "lines": ("-\n" * 300_000, "lab.yaml:100001:1: not a lab: 300000 lines; 100000 are the most"),
    "characters": ("#" * 5_000_000, "lab.yaml:1:1: not a lab: 5000000 characters; 1048576 are the most"),
    "flow lists": ("[" * 60_000, "lab.yaml:1:51: not a lab: nested more than 50 deep"),
    "flow mappings": ("{a: " * 60_000, "lab.yaml:1:201: not a lab: nested more than 50 deep"),
    "flow lists in lines": ("[\n" * 60_000, "lab.yaml:51:1: not a lab: nested more than 50 deep"),
    "block lists": ("- " * 60_000, "lab.yaml:1:101: not a lab: nested more than 50 deep"),
    "keys of keys": ("? " * 60_000, "lab.yaml:1:101: not a lab: nested more than 50 deep"),
    "billion laughs": (LAUGHS, "not a lab: more than 50000 values, with what aliases stand for"),
    "long aliases": (f"- &a {LONG}\n" + "- *a\n" * 1000, "not a lab: more than 4194304 characters, with what"),
    "an alias of itself": ("name: &a [*a]\n", "this alias contains itself"),
}
"""Texts, and what is said of them."""


def spent_s(text: str) -> float:
    """Seconds of CPU that it takes to read a lab, good or not."""
    before = time.process_time()
    try:
        loads(text, "lab.yaml")
    except LabError as error:
        assert error.problems
    return time.process_time() - before


@pytest.fixture(scope="module")
def honest_s() -> float:
    """Seconds of CPU that a lab of five hundred nodes and as many links takes here, and now."""
    return spent_s(lab_of(500))


def lab_of(size: int) -> str:
    """A line of nodes, written out."""
    nodes = "".join(f"  n{n}:\n    kind: router\n" for n in range(size))
    links = "".join(
        f'  - endpoints: ["n{n}:eth0", "n{n + 1}:eth1"]\n    rate: 10Mbit\n    delay: 5ms\n' for n in range(size - 1)
    )
    return f"name: line\nnodes:\n{nodes}links:\n{links}"


@pytest.mark.parametrize(("text", "said"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_lab_is_refused_with_its_place_for_less_than_an_honest_one(
    text: str, said: str, honest_s: float
) -> None:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    assert any(said in str(problem) for problem in caught.value.problems), caught.value
    assert spent_s(text) < 4 * honest_s


def test_a_lab_of_thousands_of_nodes_is_read() -> None:
    lab = loads(lab_of(3000), "lab.yaml")
    assert (len(lab.nodes), len(lab.links)) == (3000, 2999)


def test_values_on_one_line_are_counted_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "VALUES_MAX", 100)
    with pytest.raises(LabError, match=r"lab.yaml:1:200: not a lab: more than 100 values"):
        loads("[" + "1," * 1000, "lab.yaml")


NODES = "name: x\nnodes: {" + ", ".join(f"n{n}: {{}}" for n in range(1000)) + "}\n"

WRONG = {
    "links": NODES + "links:\n" + "".join(f"  - m{n} -- m{n + 1}\n" for n in range(1000)),
    "fields": "name: x\nnodes:\n" + "".join(f"  n{n}: {{foo{n}: 1}}\n" for n in range(1000)),
    "processes": NODES + "run:\n" + "".join(f"  - {{on: m{n}, exec: x}}\n" for n in range(1000)),
}
"""Labs with mistakes in each line."""


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_of_very_many_mistakes_the_first_are_told_and_that_there_are_more(text: str, honest_s: float) -> None:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    assert len(caught.value.problems) == PROBLEMS_MAX + 1
    assert "there are more mistakes than these" in str(caught.value.problems[-1])
    assert spent_s(text) < 30 * honest_s


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">'
ENTITIES = '<!DOCTYPE l [<!ENTITY a "xx">' + "".join(f'<!ENTITY a{n} "{"&a;" * 10}">' for n in range(9)) + "]>"

FILES = {
    ("graphml", "entities"): (f"{ENTITIES}{GRAPHML}", "it defines entities"),
    ("graphml", "depth"): (GRAPHML + "<a>" * 300_000, "not GraphML"),
    ("graphml", "nodes"): (GRAPHML + '<node id="a"/>' * (PARTS_MAX + 1), "50001 nodes and edges; 50000 are the most"),
    ("xml", "entities"): (f"{ENTITIES}<topology/>", "it defines entities"),
    ("xml", "files"): ('<!DOCTYPE l [<!ENTITY a SYSTEM "/etc/passwd">]><topology name="&a;"/>', "it defines entities"),
    ("xml", "depth"): ("<topology>" + "<a>" * 300_000, "nested more than 100 deep"),
    ("xml", "nodes"): (f"<topology>{'<node/>' * (PARTS_MAX + 1)}</topology>", "50001 nodes and edges"),
    ("gml", "depth"): ("graph [ " * 60_000, "not GML: nested too deeply"),
    ("gml", "nodes"): ("graph [ " + "node [ id 1 ] " * (PARTS_MAX + 1) + "]", "50001 nodes and edges"),
    ("gml", "text"): ('graph [ a "' + LONG, "not GML"),
    ("json", "depth"): ("[" * 60_000, "not JSON: nested too deeply"),
    ("json", "nodes"): (f'{{"nodes": [{"1, " * PARTS_MAX}1], "edges": []}}', "50001 nodes and edges"),
    ("json", "no lists"): ('{"nodes": 5, "edges": 3}', "it needs lists of nodes and edges"),
    ("json", "a number"): ("9" * 100_000, "not JSON"),
    ("containerlab", "depth"): ("[" * 60_000, ":1:51: nested more than 50 deep"),
    ("containerlab", "lines"): ("-\n" * 300_000, "300000 lines"),
    ("containerlab", "laughs"): (LAUGHS, "more than 50000 values"),
    ("containerlab", "itself"): ("topology: {nodes: &a {x: *a}}\n", "nodes.x"),
    ("shadow", "depth"): (f"network: {{graph: {{type: gml, inline: '{'graph [ ' * 5000}'}}}}\n", "nested too deeply"),
    ("kathara", "lines"): ("n[0]=A\n" * 300_000, "300000 lines"),
}


@pytest.mark.parametrize(
    ("kind", "text", "said"), [(kind, *rest) for (kind, _), rest in FILES.items()], ids=map(" ".join, FILES)
)
def test_a_hostile_topology_is_refused(kind: str, text: str, said: str, tmp_path: Path, honest_s: float) -> None:
    path = tmp_path / "topology"
    path.write_text(text)
    before = time.process_time()
    with pytest.raises(ValueError, match=r"(?s).") as caught:
        parse_topology({kind: str(path)}, 1, tmp_path)
    assert said in str(caught.value)
    assert time.process_time() - before < 10 * honest_s


@pytest.mark.parametrize("program", ["x = bytearray(1 << 40)\n", "while True: print('x' * 1_000_000)\n"])
def test_a_mininet_file_gets_only_so_much_memory_and_may_say_only_so_much(program: str, tmp_path: Path) -> None:
    path = tmp_path / "topology.py"
    path.write_text(program)
    with pytest.raises(ValueError, match=r"topology.py: (MemoryError|OSError: .*File too large)"):
        parse_topology({"mininet": str(path)}, 1, tmp_path)


def test_too_little_memory_is_told_in_a_line_with_the_status_of_a_machine_that_lacks_something(
    tmp_path: Path,
) -> None:
    code = (
        "import sys\nfrom dilaton.cli import main, verbs\n"
        "def exhaust(*_, **__): raise MemoryError\n"
        "main.assembled = lambda only: exhaust\nmain.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert done.stderr.startswith("dilaton: memory: ")
