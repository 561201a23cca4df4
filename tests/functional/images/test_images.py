"""Nodes with images: their trees are as the image has them, shared below and each node's own above."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.conftest import Outcome, dilaton, environment, run_in
from tests.images import OWN, busybox, layer, layout, needs_programs

pytestmark = needs_programs

CONFIG = {
    "Entrypoint": ["/bin/httpd", "-f"],
    "Cmd": ["-p", "80", "-h", "/srv"],
    "Env": ["GREETING=from the image", "PATH=/bin"],
    "WorkingDir": "/data",
    "User": "web",
}

LAB = """
name: images
seed: 3
time: {drive: event}
nodes:
  web: {image: box}
  other: {image: box, files: {/data/given: {text: "a file of the lab", owner: web}, /lib/x: {text: ""}}}
  plain: {}
links: [{endpoints: plain -- web, delay: 2ms}, {endpoints: web -- other, delay: 2ms}]
run:
  - {on: other, name: get, exec: wget -q -O - http://web/page, start: 1s}
  - {on: other, name: look, exec: sh -c 'pwd; id -u; echo $GREETING; ls -n own zero given; ls /bin/busybox /usr/lib/x /lib/modules /usr/bin; true'}
  - {on: other, name: root, user: "0", cwd: /, exec: sh -c 'echo changed > data/own; echo new > data/new; cat data/own; cat etc/hostname; id -g', after: look}
  - {on: other, name: group, user: "web:0", exec: id -g}
  - {on: other, name: later, user: root, exec: cat own, env: {GREETING: ours}, after: root}
  - {on: plain, name: here, exec: "sh -c 'test -e /data/own || echo no image; command -v python3'"}
"""


@pytest.fixture(scope="module")
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's data, with an image in the store."""
    directory = tmp_path_factory.mktemp("data")
    page = layer(("srv/page", b"a page of the image\n"))
    source = layout(directory / "oci", [busybox(), page], CONFIG)
    variables = environment() | {"XDG_DATA_HOME": str(directory)}
    assert dilaton("image", "import", source, "box", env=variables).returncode == 0
    return directory


@pytest.fixture
def with_images(data_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(data_home))


@functools.cache
def ran(directory: Path) -> Outcome:
    """The run that all tests look at."""
    return run_in(directory, LAB)


@pytest.fixture
def outcome(with_images: None, tmp_path_factory: pytest.TempPathFactory, data_home: Path) -> Outcome:
    directory = data_home / "runs"
    directory.mkdir(exist_ok=True)
    return ran(directory)


def test_an_image_without_an_entry_starts_what_it_is_for_until_the_run_ends(outcome: Outcome) -> None:
    assert outcome.status == 0
    assert outcome.stdout("other", "get") == "a page of the image\n"
    server = outcome.process("web")
    assert (server["node"], server["argv"]) == ("web", [*CONFIG["Entrypoint"], *CONFIG["Cmd"]])
    assert server["stopped"] and server["expected"]


def test_programs_of_the_lab_start_as_the_image_says_unless_they_say_otherwise(outcome: Outcome) -> None:
    where, who, greeting, *_ = outcome.stdout("other", "look").splitlines()
    assert (where, who, greeting) == ("/data", str(OWN), "from the image")
    assert outcome.stdout("other", "group") == "0\n"


def test_owners_and_devices_are_those_of_the_image_and_nothing_of_the_machine_is_seen(outcome: Outcome) -> None:
    lines = outcome.stdout("other", "look").splitlines()[3:]
    own = next(line for line in lines if line.endswith(" own")).split()
    zero = next(line for line in lines if line.endswith(" zero")).split()
    assert (own[0], own[2], own[3]) == ("-rw-r-----", str(OWN), str(OWN))
    assert (zero[0], zero[4], zero[5]) == ("crw-rw-rw-", "1,", "5")
    given = next(line for line in lines if line.endswith(" given")).split()
    assert (given[0], given[2], given[4]) == ("-rw-r--r--", str(OWN), str(len("a file of the lab")))
    assert {"/bin/busybox", "/usr/lib/x"} <= {*lines}
    assert "/usr/bin: No such file" in (outcome.path / "nodes/other/look.stderr").read_text()
    assert outcome.stdout("plain", "here").splitlines()[0] == "no image"


def test_what_a_node_writes_is_its_own(outcome: Outcome) -> None:
    assert outcome.stdout("other", "root") == "changed\nother\n0\n"
    assert outcome.stdout("other", "later") == "changed\n"


def test_the_record_says_by_digest_which_images_were_used(outcome: Outcome) -> None:
    (image,) = outcome.record["images"]
    assert (image["name"], image["nodes"]) == ("box", ["web", "other"])
    assert image["digest"].startswith("sha256:") and len(image["digest"]) == 71


def test_an_image_that_is_not_in_the_store_is_told_with_its_place(with_images: None, tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(
        "name: x\nnodes:\n  a: {image: quay.io/frrouting/frr:10.1}\n  b: {image: box:2}\n  c: {image: A B}\n"
    )
    told = dilaton("check", lab, env=environment()).stderr
    assert "lab.yaml:3:14: nodes.a.image: quay.io/frrouting/frr:10.1: not in the store of images" in told
    assert "dilaton image pull quay.io/frrouting/frr:10.1" in told
    assert "there are box;" in told
    assert "A B: not the name of an image" in told


def test_a_topology_of_containerlab_keeps_images_that_are_in_the_store(with_images: None, tmp_path: Path) -> None:
    topology = tmp_path / "net.clab.yml"
    text = "name: n\ntopology:\n  nodes: {a: {kind: linux, image: IMAGE}, s: {kind: bridge}}\n"
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: x\ntopology: {containerlab: net.clab.yml}\n")
    topology.write_text(text.replace("IMAGE", "box"))
    planned = dilaton("plan", lab, env=environment())
    assert planned.returncode == 0
    assert '"kind": "stored"' in planned.stdout and '"argv": [' in planned.stdout
    topology.write_text(text.replace("IMAGE", "frr:10"))
    told = dilaton("check", lab, env=environment())
    assert told.returncode == 2
    assert "dilaton image pull frr:10" in told.stderr and "ignore: [image]" in told.stderr


def test_a_locked_name_goes_on_to_mean_the_same_image(with_images: None, data_home: Path, tmp_path: Path) -> None:
    lab, lock = tmp_path / "lab.yaml", tmp_path / "dilaton.lock"
    lab.write_text("name: x\nnodes: {a: {image: 'moving:1'}, b: {}}\n")

    def bring(greeting: str) -> str:
        source = layout(tmp_path / "oci", [busybox()], {"Cmd": ["/bin/sleep", greeting]})
        brought = dilaton("image", "import", source, "moving:1", env=environment())
        return brought.stdout.split()[1]

    first = bring("1")
    archive = tmp_path / "first.tar"
    assert dilaton("image", "export", "moving:1", f"oci-archive:{archive}", env=environment()).returncode == 0
    assert f"moving:1 {first}\n" in dilaton("lock", lab, env=environment()).stdout
    written = lock.read_text()
    second = bring("2")
    # The name is another image's now, and the one that is meant has none: it is asked for, not replaced.
    told = dilaton("check", lab, env=environment())
    assert told.returncode == 2 and first != second
    assert f"nodes.a.image: moving:1: {lock} says that it is {first}, which is not in the store" in told.stderr
    assert f"dilaton image pull docker.io/library/moving@{first}" in told.stderr
    assert dilaton("image", "import", f"oci-archive:{archive}", "kept", env=environment()).stdout.split()[1] == first
    planned = dilaton("plan", lab, env=environment()).stdout
    assert first in planned and second not in planned and '"name": "moving:1"' in planned
    # What is locked stays; without the file the lab means what the store has.
    assert dilaton("lock", lab, env=environment()).returncode == 0 and lock.read_text() == written
    lock.write_text("{}")
    assert f"{lock}: not as dilaton lock writes it" in dilaton("check", lab, env=environment()).stderr
    lock.unlink()
    assert second in dilaton("plan", lab, env=environment()).stdout


def test_a_lab_without_images_has_nothing_to_lock(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: x\nnodes: {a: {}}\n")
    told = dilaton("lock", lab, env=environment())
    assert told.returncode == 2 and "no node has an image that could change" in told.stderr
    assert not (tmp_path / "dilaton.lock").exists()
