"""`dilaton capture`: packets of a run that goes on, in virtual time, as a lab's own captures have them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.measure.packets.table import read_packets
from dilaton.run.control.answers import CLOCK_RELEASE
from dilaton.run.control.requests import Client
from tests.conftest import PATIENCE_HOST_S, dilaton, held_run, started

# The second node has two interfaces. What ping prints between its packets costs no virtual time on the event drive.
LAB = """
name: watched
time: {drive: event}
nodes: {a: {}, b: {kind: router}, c: {}}
links:
  - {endpoints: a -- b, rate: 100Mbit, delay: 10ms}
  - {endpoints: b -- c, rate: 100Mbit, delay: 5ms}
measure: {capture: [{interface: "a:eth0", filter: icmp}]}
run:
  - {on: a, name: ping, exec: ping -i 0.25 c, background: true}
  - {on: a, name: sleep, exec: sleep 1000000}
"""


@pytest.fixture
def going(tmp_path: Path) -> Iterator[Path]:
    """The directory of a run whose clock is held at 1 s, and goes at the host's speed afterwards."""
    lab = LAB.replace("{drive: event}", "{drive: event, max_speed: 1}")
    with held_run(tmp_path, lab, "1s") as (_, out):
        yield out


def go_on(out: Path) -> None:
    with Client(out) as client:
        client.request(CLOCK_RELEASE)


def wait_for(out: Path, kind: str) -> None:
    """Until a session has begun in a node, or has ended."""
    deadline = time.monotonic() + PATIENCE_HOST_S
    while not any(json.loads(line)["kind"] == kind for line in (out / "events.jsonl").read_text().splitlines()):
        assert time.monotonic() < deadline, kind
        time.sleep(0.1)


def refused(out: Path, *arguments: str) -> str:
    done = dilaton("capture", out, *arguments, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_a_live_capture_has_the_packets_of_the_labs_own_at_the_same_instants(going: Path, tmp_path: Path) -> None:
    written = tmp_path / "live.pcapng"
    with started("capture", going, "a", "icmp", "-c", "8", "-w", written, stderr=subprocess.PIPE) as process:
        wait_for(going, "session-began")
        go_on(going)
        assert process.wait(PATIENCE_HOST_S) == 0
    dilaton("stop", going)
    with written.open("rb") as stream:
        live = read_packets(stream)
    with (going / "captures" / "a.eth0.pcapng").open("rb") as stream:
        whole = read_packets(stream)
    assert len(live.table) == 8 and live.is_whole
    (interface,) = live.interfaces
    assert (interface.name, interface.dropped) == ("a:eth0", 0)
    columns = ["t_ns", "direction", "length_bytes", "protocol"]
    expected = whole.table[whole.table.t_ns >= live.table.t_ns[0]][columns].head(8)
    # Both are on the node's interface; which of the two sockets the kernel serves first is no time on this drive.
    assert live.table[columns].astype(str).to_numpy().tolist() == expected.astype(str).to_numpy().tolist()


def test_packets_are_lines_while_they_pass_and_ctrl_c_ends_them(going: Path) -> None:
    with started("capture", going, "b:eth1", "icmp", stdout=subprocess.PIPE, text=True) as process:
        wait_for(going, "session-began")
        go_on(going)
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_HOST_S) == 0
    said = [re.fullmatch(r" +(\d+\.\d{6}) s  (in |out)  (\S+) > (\S+)  icmp, 98 bytes\n", line) for line in lines]
    assert all(said)
    # A request leaves by this interface and its answer comes there, 10 ms later.
    assert {found[2] for found in said if found} == {"in ", "out"}
    assert {found[3] for found in said if found} == {found[4] for found in said if found}


def test_a_reader_that_leaves_ends_it(going: Path) -> None:
    with started("capture", going, "a", "-w", "-", stdout=subprocess.PIPE) as process:
        wait_for(going, "session-began")
        assert process.stdout
        process.stdout.close()
        go_on(going)
        assert process.wait(PATIENCE_HOST_S) == 0
    wait_for(going, "session-ended")


def test_bad_input_is_refused(going: Path) -> None:
    assert "x: no such node; there are a, b, c" in refused(going, "x")
    assert "b: which interface? There are b:eth0, b:eth1, b:lo" in refused(going, "b")
    assert "a:eth7: no such interface; there are a:eth0, a:lo" in refused(going, "a:eth7")
    assert "hst b: not a filter as of tcpdump" in refused(going, "a", "hst", "b")
    assert "count: 0 is not above 0" in refused(going, "a", "-c", "0")
    assert "snaplen: 4 is not from 14 to 262144" in refused(going, "a", "-s", "4")
    assert "--wireshark: it shows the packets" in refused(going, "a", "--wireshark", "-w", "x")
