"""Files that a lab gives its nodes are there when its programs start, with their owners; so are whole configurations."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import run_in

LAB = """
name: files
seed: 3
time: {drive: event}
nodes:
  a:
    files:
      /usr/local/bin/greet: greet
      /tmp/deep/blob: {from: blob, mode: 0640, owner: "nobody:4242"}
      /srv/www: {from: www, owner: "4242:17"}
      /etc/peer: {text: "{{nodes.b.address}}", template: true}
  b: {}
links: [a -- b]
run:
  - {on: a, exec: greet}
  - {on: a, name: look, exec: "stat -c '%a %u:%g %n' /tmp/deep/blob /srv/www /srv/www/empty /srv/www/page"}
  - {on: a, name: blob, exec: od -An -tx1 /tmp/deep/blob}
  - {on: a, name: ping, exec: "sh -c 'ping -c 1 $(cat /etc/peer)'"}
  - {on: b, name: none, exec: "sh -c 'test ! -e /srv/www && test ! -e /usr/local/bin/greet'"}
"""


def test_files_are_there_with_their_owners_and_permissions(tmp_path: Path) -> None:
    (tmp_path / "www/empty").mkdir(parents=True)
    (tmp_path / "www/page").write_text("page\n")
    (tmp_path / "blob").write_bytes(b"\x00\xff")
    (tmp_path / "greet").write_text("#!/bin/sh\necho hello from $(hostname)\n")
    (tmp_path / "greet").chmod(0o755)
    outcome = run_in(tmp_path, LAB)
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("a", "greet") == "hello from a\n"
    assert outcome.stdout("a", "blob").split() == ["00", "ff"]
    assert outcome.stdout("a", "look").splitlines() == [
        "640 65534:4242 /tmp/deep/blob",
        "755 4242:17 /srv/www",
        "755 4242:17 /srv/www/empty",
        "644 4242:17 /srv/www/page",
    ]


def test_a_file_that_cannot_be_written_ends_the_run_with_its_name(tmp_path: Path) -> None:
    text = "name: x\nnodes: {a: {files: {/etc/x: {text: x, owner: missing-user}}}}\n"
    outcome = run_in(tmp_path, text)
    assert outcome.status != 0
    assert "node a: owner of /etc/x: user missing-user: not in the node's /etc/passwd" in outcome.terminal


ROUTERS = """
name: whole-configurations
time: {tdf: 10}
nodes:
  h: {}
  r1: {kind: router, startup: {frr: frr.conf}}
  r2: {kind: router, startup: {bird: bird.conf}}
  k: {}
links: [h -- r1:eth0, r1:eth1 -- r2:eth0, r2:eth1 -- k]
run:
  - {on: h, name: ping, exec: ping -c 3 k, start: 60s}
expect: [ping.loss == 0%]
"""

FRR = """
interface eth1
 ip ospf network point-to-point
router ospf
 redistribute connected
 network 10.0.0.0/8 area 0
"""

BIRD = """
log stderr all;
router id 2.2.2.2;
protocol device { }
protocol direct { ipv4; }
protocol kernel { ipv4 { export where source != RTS_DEVICE; }; }
protocol ospf v2 {
  ipv4 { import all; export all; };
  area 0 { interface "eth0" { type ptp; }; interface "eth1" { stub; }; };
}
"""


def test_frr_and_bird_start_with_whole_configurations_and_agree(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text(FRR)
    (tmp_path / "bird.conf").write_text(BIRD)
    outcome = run_in(tmp_path, ROUTERS)
    assert outcome.status == 0, outcome.terminal
