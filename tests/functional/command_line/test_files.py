"""Nodes see the files beside a lab where they are, and cannot change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunLab, dilaton

LAB = """
name: files
nodes: {a: , b: }
links: [{endpoints: [a, b], delay: 1ms}]
files: .
run:
  - {on: a, name: load, exec: sh ./part/load.sh data.txt}
  - {on: b, name: elsewhere, exec: pwd, cwd: /usr}
  - {on: b, name: direct, exec: ./part/direct}
"""


def test_a_lab_with_its_scripts_runs_wherever_it_is(run_lab: RunLab, tmp_path: Path) -> None:
    home = tmp_path / "home of the lab"
    (home / "part").mkdir(parents=True)
    (home / "lab.yaml").write_text(LAB)
    (home / "data.txt").write_text("data\n")
    (home / "part" / "load.sh").write_text("pwd; cat $1; echo mine > $1; cat $1\n")
    (home / "part" / "direct").write_text("#!/bin/sh\ncat data.txt\n")
    (home / "part" / "direct").chmod(0o755)
    outcome = run_lab(home / "lab.yaml")
    assert outcome.status == 0
    assert outcome.stdout("a", "load") == f"{home}\ndata\nmine\n"
    assert outcome.stdout("b", "elsewhere") == "/usr\n"
    assert outcome.stdout("b", "direct") == "data\n", "what another node writes there is not seen"
    assert (home / "data.txt").read_text() == "data\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ("none", "none: not a directory (looked at "),
        ("lab.yaml", "lab.yaml: not a directory (looked at "),
        ("/run", "/run: nodes have a /run of their own; name a directory in it"),
        ("{a: b}", "must be a directory or a list of them, such as . for that of the lab"),
    ],
)
def test_files_that_cannot_be_are_told_with_their_line(tmp_path: Path, files: str, said: str) -> None:
    (tmp_path / "lab.yaml").write_text(f"name: files\nnodes: {{a: }}\nfiles: {files}\n")
    done = dilaton("check", tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path / 'lab.yaml'}:3:" in done.stderr and said in done.stderr


def test_what_is_set_counts_also_for_what_other_programs_are_given(tmp_path: Path) -> None:
    (tmp_path / "line.yaml").write_text("name: line\ntopology: {generate: line, nodes: 3}\n")
    for verb, out in (("graph", "line.svg"), ("export", "line.graphml")):
        done = dilaton(verb, "line.yaml", "--set", "topology.nodes=5", "-o", out, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"{out}: 5 nodes, 4 links\n"), done.stderr
    assert (tmp_path / "line.graphml").read_text().count("<node ") == 5
