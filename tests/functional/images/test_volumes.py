"""Nodes share directories, which begin with what the image of the first of them has there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import dilaton, environment, held_run, run_in
from tests.images import OWN, busybox, folder, layer, layout, needs_programs

SHARED = """
name: shared
time: {drive: event}
nodes:
  writer: {volumes: {/var/spool/jobs: jobs}}
  reader: {volumes: {/srv/in: jobs}}
  other: {}
links: [{endpoints: [writer, reader], delay: 1ms}, {endpoints: [reader, other], delay: 1ms}]
run:
  - {on: writer, name: write, exec: sh -c 'ls -A /var/spool/jobs; echo job > /var/spool/jobs/1; chown 7:8 /var/spool/jobs/1'}
  - {on: reader, name: read, after: [write], exec: sh -c 'cat /srv/in/1; stat -c %u:%g /srv/in/1; rm /srv/in/1'}
  - {on: writer, name: see, after: [read], exec: sh -c 'ls -A /var/spool/jobs'}
  - {on: other, name: none, after: [read], exec: sh -c 'test ! -e /srv/in'}
"""


def test_what_one_node_writes_to_a_volume_the_others_see(tmp_path: Path) -> None:
    outcome = run_in(tmp_path, SHARED)
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("writer", "write") == outcome.stdout("writer", "see") == ""
    assert outcome.stdout("reader", "read") == "job\n7:8\n"


def test_nodes_of_different_guests_do_not_share_one_and_a_disk_is_no_volume(tmp_path: Path) -> None:
    for text, why in {
        SHARED + "guests: per-node\n": "volume is memory of one guest",
        SHARED.replace("jobs: jobs}", "jobs: jobs}, guest: x").replace("in: jobs}", "in: jobs}, guest: y"): (
            "name the same on both"
        ),
        SHARED + "guests: 3\n": "falls into only 2 parts",
        SHARED.replace(
            "/srv/in: jobs}", "/srv/in: jobs}, disk: {model: nvme, size: 64MiB, mount: /srv/in}"
        ): "its disk is there",
        SHARED.replace("/srv/in: jobs", "/srv/in: .jobs"): "does not begin with a dot",
        SHARED.replace("/srv/in: jobs", "/proc/in: jobs"): "the node's own",
    }.items():
        lab = tmp_path / "lab.yaml"
        lab.write_text(text)
        refused = dilaton("check", lab)
        assert refused.returncode == 2 and why in refused.stderr + refused.stdout, refused


def test_nodes_that_share_a_volume_stay_in_one_guest_of_several(tmp_path: Path) -> None:
    outcome = run_in(tmp_path, SHARED + "guests: 2\n")
    assert outcome.status == 0, outcome.terminal
    guests = {node["name"]: node["guest"] for node in json.loads((outcome.path / "plan.json").read_text())["nodes"]}
    assert guests["writer"] == guests["reader"] != guests["other"]
    assert outcome.stdout("reader", "read") == "job\n7:8\n"


IMAGED = """
name: imaged
time: {drive: event}
nodes: {a: {image: box, volumes: {/data: kept}}, b: {image: box, volumes: {/mnt/of/a: kept}}, c: {image: box}}
links: [a -- b, b -- c]
run:
  - {on: a, name: first, user: root, exec: sh -c 'ls /data; stat -c %a:%u /data; cat /data/own; echo more > /data/more'}
  - {on: b, name: second, user: root, after: [first], exec: sh -c 'ls /mnt/of/a; echo changed > /mnt/of/a/own; ls /data'}
  - {on: c, name: third, user: root, after: [second], exec: sh -c 'cat /data/own; ls -d /var/lib/own /run/lock'}
  - {on: a, name: last, user: root, after: [second], exec: sh -c 'cat /data/own'}
  - {on: a, exec: sleep 2}
"""


@needs_programs
def test_a_volume_begins_with_what_the_image_of_its_first_node_has_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    config = {"Env": ["PATH=/bin"], "Volumes": {"/var/lib/own": {}, "/run/lock": {}, "/proc/x": {}, "relative": {}}}
    layers = [busybox(), layer(folder("data", mode=0o750, uid=OWN))]
    assert (
        dilaton("image", "import", layout(tmp_path / "oci", layers, config), "box", env=environment()).returncode == 0
    )
    lab = tmp_path / "lab"
    lab.mkdir()
    outcome = run_in(tmp_path, IMAGED)
    assert outcome.status == 0, outcome.terminal
    began = outcome.stdout("a", "first").splitlines()
    assert began == ["capable", "own", "zero", f"750:{OWN}", "mine"]
    assert outcome.stdout("b", "second").split() == ["capable", "more", "own", "zero", "capable", "own", "zero"]
    assert outcome.stdout("c", "third").splitlines() == ["mine", "/run/lock", "/var/lib/own"]
    assert outcome.stdout("a", "last") == "changed\n"


LOOK = """cd /mnt/of/a
ls -A
cat own given etc/hostname hard soft
stat -c %a:%u:%g . etc etc/hostname
stat -c %h own
ls /data
"""
CHANGE = """cd /mnt/of/a
rm zero
mkdir -m 2751 etc
echo mine > etc/hostname
chown 7:8 etc/hostname
echo changed > own
echo changed > given
ln own hard
ln -s own soft
chmod 1705 .
chown 9 .
"""
SAVED = f"""
name: saved
time: {{drive: event}}
nodes:
  a: {{volumes: {{/empty: empty, /data: kept}}, image: box}}
  b:
    image: box
    volumes: {{/mnt/of/a: kept}}
    files:
      /mnt/of/a/given: {{text: first}}
      /bin/look: {{text: {json.dumps(LOOK)}}}
      /bin/change: {{text: {json.dumps(CHANGE)}}}
links: [a -- b]
run:
  - {{on: b, name: look, user: root, exec: sh /bin/look}}
  - {{on: b, name: change, user: root, after: [look], exec: sh /bin/change}}
  - {{on: a, name: other, user: root, exec: sh -c 'ls /empty; echo more > /empty/more'}}
  - {{on: a, after: [change], exec: sleep 2}}
"""


@needs_programs
def test_a_saved_lab_goes_on_with_what_its_volumes_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    layers = [busybox(), layer(folder("data", mode=0o750, uid=OWN))]
    source = layout(tmp_path / "oci", layers, {"Env": ["PATH=/bin"]})
    assert dilaton("image", "import", source, "box", env=environment()).returncode == 0
    lab = tmp_path / "lab"
    lab.mkdir()
    with held_run(lab, SAVED, "1s") as (_, out):
        saved = dilaton("save", out, "kept", env=environment())
        assert saved.returncode == 0 and "not saved" not in saved.stderr, saved.stderr
    outcome = run_in(tmp_path, Path("kept"))
    assert outcome.stdout("b", "look").splitlines() == [
        *("capable", "etc", "given", "hard", "own", "soft"),
        *("changed", "changed", "mine", "changed", "changed"),
        *("1705:9:0", "2751:0:0", "644:7:8", "2"),
        # The image is as it was.
        *("capable", "own", "zero"),
    ]
    assert outcome.stdout("a", "other") == "more\n"
