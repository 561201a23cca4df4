"""A lab with the files beside it as one text."""

from __future__ import annotations

import pytest

from dilaton.host.files import EXAMPLES
from dilaton.lab.loader import loads
from dilaton.templates.single import single

LAB = """\
name: x
nodes: {a: , b: }
files: . # what is beside it
run:
  - {on: a, exec: sh say.sh} # not read.sh
  - {on: b, exec: "true"}
"""


@pytest.mark.parametrize("said", ["echo 1\n", "  echo 1", "\n\techo 1\n\n  \n", "", "a: 'b' # é\n  \\ {{x}}\n"])
def test_each_node_has_the_files_that_the_lab_names_as_they_are(said: str) -> None:
    text = single(LAB, {"say.sh": said, "read.sh": "no"})
    assert text is not None
    lab = loads(text, "/nowhere/lab.yaml")
    for node in lab.nodes.values():
        assert {place: given.entries[0].contents for place, given in node.files.items()} == {"/say.sh": said.encode()}
    assert lab.files == () and [process.cwd for process in lab.run] == ["/", "/"]


def test_a_lab_that_names_no_file_stays_as_it_is() -> None:
    alone = LAB.replace("sh say.sh", "sh -c :")
    assert single(alone, {"say.sh": "x"}) == alone


@pytest.mark.parametrize(
    "lab", ["topology: {gml: net.gml}\n", "files: .\ndefaults: {}\nrun: [{on: a, exec: sh net.gml}]\n"]
)
def test_a_lab_that_needs_a_file_in_another_way_is_none(lab: str) -> None:
    assert single(lab, {"net.gml": "graph []\n"}) is None


def test_programs_of_an_example_find_what_they_found_beside_it() -> None:
    directory = EXAMPLES / "failover-redis"
    beside = {path.name: path.read_text() for path in directory.iterdir() if path.suffix in (".py", ".sh")}
    text = single((directory / "lab.yaml").read_text(), beside)
    assert text is not None
    before, after = loads((directory / "lab.yaml").read_text(), str(directory / "lab.yaml")), loads(text, "lab.yaml")
    assert [process.argv for process in after.run] == [process.argv for process in before.run]
    assert {f"/{name}" for name in beside} == after.nodes["client"].files.keys() == after.nodes["r1"].files.keys()
