"""Templates: labs that others start from, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dilaton.lab import load
from dilaton.lab.errors import LabError
from dilaton.service import templates
from dilaton.templates.store import TemplateError, Templates
from tests.conftest import ROOT, dilaton, environment
from tests.images import killed_at, layer, layout, needs_programs

LAB = """# A lab of two.
name: two
time: {tdf: 5} # of this host
nodes: {a: {files: {/data: data.txt}}, b: {}}
links:
  - {endpoints: a -- b, rate: 10Mbit, delay: "5ms"}
  - {endpoints: a -- b, rate: 10Mbit}
"""
DESCRIPTION = """title: Two hosts
parameters:
  rate: {fields: [links.0.rate, links.1.rate], about: of both links}
  delay: {fields: links.0.delay}
"""


@pytest.fixture
def store(tmp_path: Path) -> Templates:
    return Templates(tmp_path / "templates")


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A directory with a lab, what it needs, and what a run has left."""
    directory = tmp_path / "two"
    for name, text in {
        "lab.yaml": LAB,
        "template.yaml": DESCRIPTION,
        "data.txt": "x",
        "runs/1": "",
        ".git/x": "",
    }.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    (directory / "run.sh").write_text("true")
    (directory / "run.sh").chmod(0o755)
    (directory / "link").symlink_to("data.txt")
    return directory


def test_a_lab_starts_from_a_template_with_what_was_chosen_and_all_else_as_it_was(
    store: Templates, lab: Path, tmp_path: Path
) -> None:
    digest = templates.save(store, lab, "pair")
    assert store.names() == {"pair": digest}
    shown = templates.show(store, "pair")
    assert (shown.title, shown.digest) == ("Two hosts", digest)
    assert shown.parameters == {"rate": ("10Mbit", "of both links"), "delay": ("5ms", "")}
    assert set(shown.files) == {"lab.yaml", "template.yaml", "data.txt", "run.sh", "link"}
    target = tmp_path / "made"
    templates.new(store, "pair", target, {"rate": "1Gbit", "delay": "7ms", "time.tdf": "9"})
    expected = (
        LAB.replace("10Mbit", "1Gbit").replace('"5ms"', "7ms").replace("tdf: 5", "tdf: 9").replace("two\n", "made\n", 1)
    )
    assert (target / "lab.yaml").read_text() == expected
    assert load(target / "lab.yaml").name == "made"
    assert os.access(target / "run.sh", os.X_OK) and not os.access(target / "data.txt", os.X_OK)
    assert os.readlink(target / "link") == "data.txt"
    assert not list(tmp_path.glob(".dilaton-*"))


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"rate": "fast"}, r"pair/lab.yaml:6:31: links\[0\].rate: .*fast"),
        ({"speed": "1Gbit"}, "--set speed: speed: the lab has no such field.*; its parameters: rate, delay"),
        ({"nodes": "x"}, "--set nodes: nodes: a list or mapping"),
        ({"links.7.rate": "x"}, "no such field"),
        ({"delay": "{"}, "not a word that can stand there"),
        ({"rate": "1Gbit, mtu: 9000"}, "links.0.rate: 1Gbit, mtu: 9000: not a word that can stand there"),
    ],
)
def test_what_cannot_be_chosen_is_told_and_nothing_is_written(
    store: Templates, lab: Path, tmp_path: Path, chosen: dict[str, str], words: str
) -> None:
    templates.save(store, lab, "pair")
    before = sorted(tmp_path.iterdir())
    with pytest.raises((ValueError, LabError), match=words):
        templates.new(store, "pair", tmp_path / "made", chosen)
    assert sorted(tmp_path.iterdir()) == before


def test_directories_on_the_way_come_with_the_lab_or_not_at_all(store: Templates, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such field"):
        templates.new(store, "dumbbell", tmp_path / "some/where/made", {"no.field": "1"})
    assert not (tmp_path / "some").exists() and not list(tmp_path.glob(".dilaton-*"))
    templates.new(store, "dumbbell", tmp_path / "some/where/made", {})
    assert load(tmp_path / "some/where/made/lab.yaml").name == "made"


class Overtaken(Templates):
    """Whoever reads waits for another who changes what the name leads to."""

    def __init__(self, directory: Path, change: Callable[[], object]) -> None:
        super().__init__(directory)
        self._change = change

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self._change()
        with super()._locked(how):
            yield


def test_what_is_read_is_what_the_name_leads_to_by_then(store: Templates, lab: Path) -> None:
    templates.save(store, lab, "pair")
    (lab / "data.txt").write_text("new")
    with Overtaken(store.directory, lambda: templates.save(store, lab, "pair")).reading("pair") as tree:
        assert tree is not None and (tree / "data.txt").read_text() == "new"
    with Overtaken(store.directory, lambda: store.remove("pair")).reading("pair") as tree:
        assert tree is None


@needs_programs
def test_a_file_is_saved_with_what_the_lock_beside_it_says_of_its_images(tmp_path: Path) -> None:
    variables = environment() | {"XDG_DATA_HOME": str(tmp_path)}
    lab = tmp_path / "lab"
    lab.mkdir()
    for name, image in {"lab": "box", "other": "crate"}.items():
        (lab / f"{name}.yaml").write_text(f"name: {name}\nnodes: {{a: {{image: {image}}}}}\n")
    digests = []
    for contents in ("old", "new"):
        source = layout(tmp_path / "layout", [layer(("a", contents.encode()))], {"Cmd": ["/a"]})
        for name in ("box", "crate", contents):
            done = dilaton("image", "import", source, name, env=variables)
            assert done.returncode == 0, done.stderr
        digests.append(done.stdout.split()[-1])
        for name in ("lab", "other") if contents == "old" else ():
            assert dilaton("lock", lab / f"{name}.yaml", env=variables).returncode == 0
    assert dilaton("template", "save", lab / "lab.yaml", "one", env=variables).returncode == 0
    shown = json.loads(dilaton("template", "show", "one", env=variables).stdout)
    assert shown["images"] == {"docker.io/library/box:latest": digests[0]}


def test_what_is_there_is_never_written_over(store: Templates, lab: Path) -> None:
    templates.save(store, lab, "pair")
    with pytest.raises(TemplateError, match="exists already"):
        templates.new(store, "pair", lab, {})


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("lab.yaml", "name: two\nnodes: {a: 3}\n", "lab.yaml:2"),
        (
            "template.yaml",
            "parameters: {x: {fields: links.9.rate}}",
            r"parameters.x: links.9.rate: the lab has no such",
        ),
        ("template.yaml", "parameter: {}", "template.yaml: parameter"),
        ("data.txt", None, "data.txt"),
    ],
)
def test_what_is_no_template_is_not_saved(store: Templates, lab: Path, file: str, text: str | None, words: str) -> None:
    digest = templates.save(store, lab, "pair")
    (lab / "link").unlink()
    (lab / file).unlink() if text is None else (lab / file).write_text(text)
    with pytest.raises((ValueError, LabError), match=words):
        templates.save(store, lab, "pair")
    assert store.names() == {"pair": digest}
    assert not list(store.directory.glob("staging/*"))


@pytest.mark.parametrize("target", ["/etc/passwd", "../templates", "../two/data.txt", ".git/x", "runs/1"])
def test_links_that_lead_out_are_refused(store: Templates, lab: Path, target: str) -> None:
    (lab / "out").symlink_to(target)
    with pytest.raises(TemplateError, match="leads out"):
        templates.save(store, lab, "pair")


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a" * 64])
def test_names_are_no_paths(store: Templates, lab: Path, name: str) -> None:
    with pytest.raises(TemplateError, match="a name has"):
        templates.save(store, lab, name)


def test_a_template_that_was_changed_by_others_is_refused(store: Templates, lab: Path, tmp_path: Path) -> None:
    digest = templates.save(store, lab, "pair")
    (store.directory / "trees" / digest / "data.txt").write_text("y")
    with pytest.raises(TemplateError, match="damaged"):
        templates.new(store, "pair", tmp_path / "made", {})


def test_the_same_files_are_kept_once_and_go_with_their_last_name(store: Templates, lab: Path) -> None:
    assert templates.save(store, lab, "one") == templates.save(store, lab, "two")
    store.remove("one")
    assert len(list(store.directory.glob("trees/*"))) == 1 and set(store.names()) == {"two"}
    store.remove("two")
    assert not list(store.directory.glob("trees/*"))
    with pytest.raises(TemplateError, match="no template that was saved"):
        store.remove("two")


def test_examples_are_templates_that_cannot_be_removed(store: Templates, tmp_path: Path) -> None:
    assert {"dumbbell", "queues", "failover-redis"} <= templates.names(store).keys()
    templates.new(store, "abilene", tmp_path / "mine", {})
    assert load(tmp_path / "mine/lab.yaml").name == "mine"
    with pytest.raises(TemplateError):
        store.remove("dumbbell")


SAVES = """
import sys
from pathlib import Path
from dilaton.service import templates
templates.save(templates.Templates(Path(sys.argv[1])), Path(sys.argv[2]), "pair")
"""


def test_a_kill_at_any_step_leaves_the_old_template_or_the_new_one(store: Templates, lab: Path, tmp_path: Path) -> None:
    old = templates.save(store, lab, "pair")
    (lab / "data.txt").write_text("new")
    other = Templates(tmp_path / "other")
    new = templates.save(other, lab, "pair")
    for count in range(1, 1000, 7):
        done = killed_at(count, store.directory, SAVES, store.directory, lab)
        digest = store.names()["pair"]
        assert digest in (old, new)
        with store.reading("pair") as tree:
            assert tree is not None
        if done.returncode == 0:
            assert digest == new
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert count > 20
    assert len(list(store.directory.glob("trees/*"))) == 1 and not list(store.directory.glob("staging/*"))


def test_the_command_line_saves_shows_and_starts(lab: Path, tmp_path: Path) -> None:
    variables = environment() | {"XDG_DATA_HOME": str(tmp_path)}
    assert dilaton("template", "save", lab, "pair", env=variables).returncode == 0
    listed = dilaton("template", "list", env=variables).stdout
    assert "Two hosts" in listed and "dumbbell" in listed
    assert '"default": "10Mbit"' in dilaton("template", "show", "pair", env=variables).stdout
    made = dilaton("template", "new", "pair", tmp_path / "made", "--set", "rate=2Mbit", env=variables)
    assert made.returncode == 0 and "dilaton run" in made.stdout
    told = dilaton("template", "new", "none", tmp_path / "x", env=variables)
    assert told.returncode == 2 and "none: no such template; dilaton template list shows all" in told.stderr
    assert dilaton("template", "remove", "pair", env=variables).returncode == 0
    assert "Two hosts" not in dilaton("template", "list", env=variables).stdout
    assert str(ROOT) not in listed
