"""Memory of guests: TCP has what its buffers may take, and what the kernel did for want of memory is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Outcome, RunLab

BUFFER_BYTES = 256 << 20
LARGE = {f"net.ipv4.tcp_{side}mem": f"4096 1048576 {BUFFER_BYTES}" for side in "rw"}

TRANSFER: dict[str, Any] = {
    "name": "transfer",
    "nodes": {name: {"guest": name, "sysctls": LARGE} for name in "ab"},
    "links": [{"endpoints": "a -- b", "delay": "10ms", "offload": True}],
    "run": [
        {"on": "b", "name": "sink", "exec": "iperf3 -s -1", "ready": {"tcp": 5201}},
        {"on": "a", "name": "send", "exec": "iperf3 -c b -n 400M -J", "after": "sink"},
    ],
}

SEND = """
import socket
with socket.create_connection(("b", 9)) as sender:
    sender.sendall(bytes(50_000_000))
"""
RECEIVE_LATE = """
import socket, time
with socket.create_server(("", 9)) as server:
    receiver, _ = server.accept()
    receiver.setsockopt(socket.SOL_SOCKET, 33, 100_000_000)  # SO_RCVBUFFORCE: a window for all that comes
    time.sleep(5)
    while receiver.recv(1 << 20):
        pass
"""

HOARD = "python3 -c 'import ctypes; ctypes.CDLL(None).mlockall(3); hoard = [bytearray(1_000_000) for _ in range(200)]'"
"""Locked: else a kernel may do nothing but drop and read again the pages of Python itself, as Linux does."""

MAPPINGS_MAX = int(Path("/proc/sys/vm/max_map_count").read_text())
BACKWARDS = f"""
import mmap
size = {MAPPINGS_MAX + 1000} * 4096
room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(size - 4096, -1, -4096):
    room[at] = 1
"""
"""Memory is handed out upwards, so each of these pages is a mapping of its own on the host."""


def shortages(outcome: Outcome) -> dict[tuple[str, str], int]:
    """How often which memory was short, by node and memory."""
    short = [event for event in outcome.events if event["kind"] == "memory-short"]
    return {(event["node"], event["memory"]): event["times"] for event in short}


def test_a_program_may_ask_for_more_memory_than_its_guest_has_and_touch_little_of_it(run_lab: RunLab) -> None:
    asks = "import mmap; room = mmap.mmap(-1, 4 << 30); room[1 << 30] = 1; print('it began')"
    lab = {
        "name": "asks",
        "nodes": {"a": {"guest": "small"}},
        "run": [{"on": "a", "name": "asks", "exec": ["python3", "-c", asks]}],
    }
    outcome = run_lab(json.dumps(lab | {"guests": {"small": {"memory": "128MiB"}}}))
    assert outcome.stdout("a", "asks") == "it began\n"
    assert not shortages(outcome)


def test_tcp_fills_large_buffers_without_being_short_of_memory(run_lab: RunLab) -> None:
    outcome = run_lab(json.dumps(TRANSFER))
    # One goes again where the host has a core for itself for longer than the flow waits for an acknowledgement.
    assert outcome.process("send")["result"]["retransmits"] <= 5
    assert not shortages(outcome)
    assert all(guest["memory_bytes"] > 3 * BUFFER_BYTES for guest in outcome.record["guests"])


def test_that_tcp_was_short_of_memory_is_told_and_spoils_the_verdict(run_lab: RunLab) -> None:
    small = {name: {"memory": "128MiB"} for name in "ab"}
    processes = [
        {"on": "b", "name": "sink", "exec": ["python3", "-c", RECEIVE_LATE], "ready": {"tcp": "9"}},
        {"on": "a", "name": "send", "exec": ["python3", "-c", SEND], "after": "sink"},
    ]
    outcome = run_lab(json.dumps(TRANSFER | {"guests": small, "run": processes}))
    assert outcome.status == 0
    assert shortages(outcome).keys() == {("b", "tcp")}
    whats = [reason["what"] for reason in outcome.record["verdict"]["reasons"]]
    assert any("was short of memory" in what for what in whats)


def test_programs_that_the_kernel_ends_for_want_of_memory_are_told(run_lab: RunLab) -> None:
    lab = {
        "name": "hoard",
        "guests": {"x": {"memory": "64MiB"}},
        "nodes": {"a": {"guest": "x"}, "b": {"guest": "y", "memory": "32MiB"}},
        # The shell outlives what it runs.
        "run": [{"on": node, "name": node, "exec": ["sh", "-c", f"{HOARD}; true"]} for node in "ab"],
    }
    outcome = run_lab(json.dumps(lab))
    assert outcome.status == 0
    assert shortages(outcome) == {("a", "guest"): 1, ("b", "node"): 1}
    whats = (reason["what"] for reason in outcome.record["verdict"]["reasons"])
    assert sorted(what for what in whats if "kernel ended" in what) == [
        "the kernel ended a program in a, since its guest's memory was full",
        "the kernel ended a program in b, since its memory: was full",
    ]


@pytest.mark.skipif(
    MAPPINGS_MAX > 100_000, reason="here a process may have more mappings than a guest has pages to spare"
)
def test_that_the_host_maps_no_more_memory_of_a_program_is_told_with_what_helps(run_lab: RunLab) -> None:
    processes = [{"on": "a", "name": "backwards", "exec": ["sh", "-c", f"python3 -I -S -c '{BACKWARDS}'; true"]}]
    outcome = run_lab(json.dumps({"name": "backwards", "nodes": {"a": {}}, "run": processes}))
    assert outcome.status == 0
    assert not shortages(outcome)
    (reason,) = (reason for reason in outcome.record["verdict"]["reasons"] if "mappings" in reason["what"])
    assert (reason["level"], reason["value"]) == ("suspect", 1)
    assert "vm.max_map_count" in reason["advice"]


@pytest.mark.parametrize(
    ("drive", "memory", "names", "files"),
    [("work", "512MiB", 65536, 32768), ("work", "4GiB", 131072, 65536), ("event", "4GiB", 524288, 262144)],
)
def test_tables_of_names_and_files_grow_no_further_than_for_a_guest_of_1_gib_but_where_runs_repeat(
    run_lab: RunLab, drive: str, memory: str, names: int, files: int
) -> None:
    """The host pays for all of them: the kernel writes them while it boots."""
    lab = {
        "name": "tables",
        "time": {"drive": drive},
        "nodes": {"a": {"guest": "g"}},
        "guests": {"g": {"memory": memory}},
        "run": [{"on": "a", "name": "read", "exec": "dmesg"}],
    }
    outcome = run_lab(json.dumps(lab))
    said = outcome.stdout("a", "read")
    assert f"Dentry cache hash table entries: {names} " in said
    assert f"Inode-cache hash table entries: {files} " in said
