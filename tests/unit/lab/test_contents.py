"""`files:` and `startup:` of nodes: what is read with the lab, what becomes of it in the plan, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import LabError, load
from dilaton.lab.beside import contents
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Node, OwnFile

LAB = "name: x\nnodes:\n  a: {%s}\n  b: {}\nlinks: [{endpoints: a:eth0 -- b:eth7}]\n"


def nodes(directory: Path, text: str) -> dict[str, Node]:
    lab = directory / "lab.yaml"
    lab.write_text(text)
    return {node.name: node for node in compile_plan(load(lab)).nodes}


def files(directory: Path, written: str) -> dict[str, OwnFile]:
    return {file.path: file for file in nodes(directory, LAB % f"files: {written}")["a"].files}


def refusal(directory: Path, text: str) -> str:
    with pytest.raises(LabError) as caught:
        nodes(directory, text)
    return str(caught.value)


def test_a_file_is_written_in_the_lab_or_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o700)
    (tmp_path / "blob").write_bytes(b"\xff\x00")
    found = files(
        tmp_path,
        '{/etc/motd: {text: "hello\\n", owner: "web:0", mode: 4750}, /usr/local//bin/tool: tool, /srv/../blob: {from: blob}}',
    )
    assert found["/etc/motd"] == OwnFile(path="/etc/motd", text="hello\n", mode=0o4750, owner="web:0")
    assert found["/usr/local/bin/tool"] == OwnFile(path="/usr/local/bin/tool", text="#!/bin/sh\n", mode=0o755)
    assert found["/blob"] == OwnFile(path="/blob", hex="ff00")


def test_a_directory_comes_with_all_that_is_in_it_also_what_is_empty(tmp_path: Path) -> None:
    (tmp_path / "www/empty").mkdir(parents=True)
    (tmp_path / "www/index.html").write_text("page")
    found = files(tmp_path, "{/srv: {from: www, owner: web, mode: 0600}}")
    assert {path: (file.text, file.mode, file.owner) for path, file in found.items()} == {
        "/srv": (None, 0o755, "web"),
        "/srv/empty": (None, 0o755, "web"),
        "/srv/index.html": ("page", 0o600, "web"),
    }


def test_a_template_knows_the_names_and_addresses_of_the_lab(tmp_path: Path) -> None:
    text = (
        "{{lab.name}} {{node.name}} {{node.interfaces.eth0.prefixes[0]}} {{nodes.b.address}} "
        "{% for name in nodes %}{{name}}{% endfor %} {{node.address6}}."
    )
    (tmp_path / "t").write_text(text + "\n")
    lab = "name: x\ndefaults: {files: {/t: {from: t, template: true}, /plain: t}}\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\n"
    found = nodes(tmp_path, lab)
    a, b = ({file.path: file.text for file in found[name].files} for name in ("a", "b"))
    assert a["/t"] == "x a 10.0.0.0/31 10.0.0.1 ab .\n"
    assert b["/t"] == "x b 10.0.0.1/31 10.0.0.1 ab .\n" and b["/plain"] == text + "\n"


def test_nodes_inherit_files_one_by_one(tmp_path: Path) -> None:
    lab = (
        "name: x\ndefaults: {files: {/one: {text: '1'}, /two: {text: '2'}}}\nnodes: {a: {files: {/two: {text: own}}}}\n"
    )
    assert {file.path: file.text for file in nodes(tmp_path, lab)["a"].files} == {"/one": "1", "/two": "own"}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{etc/motd: {text: x}}", "etc/motd: must be an absolute path in the node"),
        ("{/proc/../sys/x: {text: x}}", "/sys/x: the node's own"),
        ("{/: {text: x}}", "/: the node's own"),
        ("{/a: none}", "none: cannot be read: No such file or directory (looked at"),
        ("{/a: {}}", "needs either text, or from"),
        ("{/a: {text: x, from: y}}", "needs either text, or from"),
        ("{/a: {txt: x}}", "txt: no such field; did you mean text?"),
        ("{/a: {text: x, mode: rwx}}", "mode: rwx: must be octal digits"),
        ("{/a: {text: x, mode: '0999'}}", "mode: 0999: must be octal digits"),
        ("{/a: {text: x, owner: 'a b'}}", "owner: 'a b': must be a user or user:group"),
        ("{/a: {text: '{% if %}', template: true}}", "template: line 1: "),
        ("{/a: {text: x, template: perhaps}}", "perhaps: must be true or false"),
        ("{/a: links}", "links/to: a symbolic link"),
        ("{/a: large}", "a file of a lab has at most 1MiB"),
    ],
)
def test_a_mistake_in_files_is_told_with_its_place(tmp_path: Path, written: str, message: str) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links/to").symlink_to("/etc/passwd")
    (tmp_path / "large").write_bytes(b"x" * (contents.BYTES_MAX + 1))
    told = refusal(tmp_path, LAB % f"files: {written}")
    assert told.startswith(f"{tmp_path}/lab.yaml:3:") and message in told


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{nodes.c.address}}", "/a: the template cannot be filled: 'dict object' has no attribute 'c'"),
        ("{{node.__class__.__mro__}}", "/a: the template cannot be filled: access to attribute '__class__'"),
        ("{{1 / 0}}", "/a: the template cannot be filled: division by zero"),
    ],
)
def test_a_template_that_cannot_be_filled_is_told_with_its_node(tmp_path: Path, template: str, message: str) -> None:
    told = refusal(tmp_path, LAB % f"files: {{/a: {{text: '{template}', template: true}}}}")
    assert f"nodes.a.files: {message}" in told


def test_files_that_are_too_large_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.plan.network.contents.TREE_BYTES_MAX", 10)
    assert files(tmp_path, "{/a: {text: '12345'}, /b: {text: '67890'}}")
    assert "nodes.a.files: with these the files of all nodes" in refusal(
        tmp_path, LAB % "files: {/a: {text: '12345'}, /b: {text: '678901'}}"
    )


ROUTER = "name: x\nrouting: ospf\nnodes: {a: {kind: router, startup: %s}, b: {}}\nlinks: [a -- b]\n"

FRR = """hostname a
! router bgp 1 is not here
interface eth0
 ip ospf area 0
 ip ospf bfd
router ospf
 redistribute connected
route-map x permit 10
"""


def test_frr_starts_with_a_configuration_and_the_daemons_that_this_takes(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text(FRR)
    lab = tmp_path / "lab.yaml"
    lab.write_text(ROUTER % "{frr: frr.conf}")
    plan = compile_plan(load(lab))
    assert [process.name for process in plan.processes] == ["a-zebra", "a-staticd", "a-ospfd", "a-bfdd", "a-vtysh"]
    assert {file.path: file.text for file in plan.nodes[0].files}["/etc/dilaton/frr/frr.conf"] == FRR
    assert plan.nodes[0].routes == []


def test_bird_starts_with_a_configuration_whatever_the_routing_is(tmp_path: Path) -> None:
    (tmp_path / "bird.conf").write_text("router id 1.2.3.4;\n")
    lab = tmp_path / "lab.yaml"
    lab.write_text((ROUTER % "{bird: bird.conf}").replace("ospf", "shortest-path"))
    plan = compile_plan(load(lab))
    assert [process.name for process in plan.processes] == ["a-bird"]
    assert [file.text for file in plan.nodes[0].files] == ["router id 1.2.3.4;\n"]


@pytest.mark.parametrize(
    ("lab", "message"),
    [
        (ROUTER % "{}", "nodes.a.startup: needs the path of one configuration"),
        (ROUTER % "{bird: .}", "nodes.a.startup: bird: a directory"),
        (ROUTER % "{frr: none}", "none: cannot be read"),
        (ROUTER % "{frr: frr.conf}, config: frr.conf", "nodes.a: startup: is all that its daemons do"),
        ((ROUTER % "{frr: frr.conf}").replace("kind: router, ", ""), "nodes.a.startup: a is no router"),
        (ROUTER % "{frr: frr}", "nodes.a.startup.frr: no file daemons in this directory"),
    ],
)
def test_a_mistake_in_startup_is_told(tmp_path: Path, lab: str, message: str) -> None:
    (tmp_path / "frr.conf").write_text(FRR)
    (tmp_path / "frr").mkdir()
    assert message in refusal(tmp_path, lab)
