"""What is done by hand while a clock is held is the same to the byte on one machine and on two: links, and faults of both."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.conftest import Outcome, dilaton, outcome_of, started

LAB = """name: by-hand
time: {drive: event}
guests: per-node
placement: {c: 1}
nodes: {a: {}, b: {kind: router}, c: {}}
links:
  - {endpoints: ["a:eth0", "b:eth0"], rate: 10Mbit, delay: 2ms}
  - {endpoints: ["b:eth1", "c:eth0"], rate: 10Mbit, delay: 5ms}
run: [{on: a, name: ping, exec: ping -c 12 -i 0.05 -W 1 c, expect_exit: any}]
"""

BY_HAND = (
    ("link", "b--c", "set", "delay=15ms"),
    ("fault", "{partition: [[a], [c]], for: 100ms, name: apart}"),
    ("fault", "link=a--b", "at=350ms", "down=true", "for=100ms"),
)


def steered(directory: Path, *arguments: str) -> Outcome:
    directory.mkdir()
    lab, out = directory / "lab.yaml", directory / "run"
    lab.write_text(LAB)
    options = ("--out", out, "--hold-at", "120ms", *arguments)
    with started("run", lab, *options, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert any("clock held" in line for line in process.stderr)
        for verb, *words in BY_HAND:
            told = dilaton(verb, out, *words)
            assert told.returncode == 0, told.stderr
        assert dilaton("clock", out, "release").returncode == 0
        return outcome_of(process, out)


def test_links_and_faults_by_hand_do_the_same_on_two_machines(tmp_path: Path) -> None:
    one, two = (steered(tmp_path / number, "--machines", number) for number in ("1", "2"))
    assert one.status == two.status == 0
    assert one.stdout("a", "ping") == two.stdout("a", "ping")
    happened = [
        [{name: value for name, value in event.items() if name != "host_s"} for event in outcome.events]
        for outcome in (one, two)
    ]
    assert happened[0] == happened[1]
    lost = one.process("ping")["result"]
    assert lost["received"] < lost["sent"]
    assert 0.034 < lost["rtt"]["max"] < 0.036, "the link's new delay"
