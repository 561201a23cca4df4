"""A node that has its kernel to itself boots with another kernel, and nobody else's time is touched by that."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import dilaton
from dilaton.measure.packets.table import read_packets
from tests.conftest import Outcome, RunLab
from tests.functional.time.test_repeatable import left

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

HELLO = (
    "cat /proc/sys/kernel/random/boot_id; cut -d. -f1 /proc/uptime; date +%H; echo $(ip -br addr show lo | wc -w) addresses;"
    " ip addr add 10.9.9.9/32 dev lo; ls /run/memory; touch /run/memory; sleep 9"
)
"""What shows a machine that has booted: its identity and age, and what nobody but its kernel and memory knew."""

LAB = f"""
name: own
time: {{drive: event}}
guests: per-node
nodes: {{a: {{}}, b: {{}}, c: {{}}}}
links:
  - {{endpoints: [a, b], rate: 100Mbit, delay: 5ms}}
  - {{endpoints: [a, c], rate: 100Mbit, delay: 5ms}}
measure: {{interfaces: 500ms, capture: [{{interface: "b:eth0", filter: icmp}}]}}
run:
  - {{on: a, name: near, exec: ping -D -i 0.05 -c 40 b, expect_exit: any}}
  - {{on: c, name: other, exec: ping -D -i 0.03 -c 70 a}}
  - {{on: b, name: hello, background: true, exec: [sh, -c, "{HELLO}"]}}
  - {{on: b, name: late, start: 900ms, exec: "true"}}
  - {{on: c, name: afterwards, exec: "true", after: dark.end}}
changes: [{{at: 600ms, link: a--b, delay: 15ms}}]
faults:
  - {{name: slow, at: 700ms, for: 900ms, link: a--b, delay: 20ms}}
  - {{name: dark, at: 827ms, for: 500ms, crash: b}}
  - {{at: 1327ms, clock: {{node: b, jump: +1h}}}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def test_it_boots_with_another_kernel_whose_memory_is_empty(outcome: Outcome) -> None:
    (first, *begin), (second, *again) = (text.split("\n") for text in boots(outcome.stdout("b", "hello")))
    assert first != second
    # The date jumps at the instant of the boot.
    assert (begin, again) == (["11", "00", "4 addresses"], ["11", "01", "4 addresses"])
    assert "/run/memory" not in outcome.stdout("b", "hello")


def boots(printed: str) -> list[str]:
    """What a node has printed, from each boot on."""
    lines = printed.splitlines()
    count = len(lines) // 2
    return ["\n".join(lines[:count]), "\n".join(lines[count:])]


def test_both_kernels_are_on_its_console_and_nothing_of_the_handover_is_left(outcome: Outcome) -> None:
    said = (outcome.path / "guest" / "b.log").read_text()
    assert len(re.findall("reboot: (?:System halted|Power down)", said)) == 2, "as Linux 6 and 7 say it"
    assert sorted(os.listdir(outcome.path / "guest")) == ["a.log", "b.log", "c.log"]


def test_begin_and_end_are_at_their_instants_and_what_waits_for_them_too(outcome: Outcome) -> None:
    seen = [(event["kind"], round(event["t_ns"] / 1e6)) for event in outcome.events if event.get("fault") == "dark"]
    assert seen == [("began", 827), ("undone", 1327)]
    started = [event for event in outcome.events if event["kind"] == "started" and event["node"] == "b"]
    assert [event["process"] for event in started] == ["hello", "hello", "late"]
    # What starts at an instant takes a kernel some steps of its clock.
    assert [event["t_ns"] / 1e9 for event in started] == pytest.approx([0, 1.327, 1.327], abs=2e-4)
    # Guests hear of each other by way of the first.
    assert 1.347 <= outcome.instant_s("started", "afterwards") < 1.348


UNPLUG = (
    "mac=$(ip neigh show 10.0.0.0 | cut -d' ' -f5); sleep 0.827; ip link set eth0 down; sleep 0.5;"
    " ip link set eth0 up; ip neigh replace 10.0.0.0 lladdr $mac dev eth0"
)


def test_others_cannot_tell_it_from_a_node_that_was_unplugged(outcome: Outcome, run_lab: RunLab) -> None:
    process = f'  - {{on: b, name: unplug, background: true, exec: [sh, -c, "{UNPLUG}"]}}\n'
    lab = LAB.replace("crash: b", "clock: {node: b, jump: +1s}").replace("changes:", f"{process}changes:")
    unplugged = run_lab(lab)
    assert unplugged.status == 0, unplugged.terminal
    for node, name in (("a", "near"), ("c", "other")):
        seen, expected = answers(outcome, node, name), answers(unplugged, node, name)
        assert [answer for _, answer in seen] == [answer for _, answer in expected]
        # With another plan in their memory kernels take some nanoseconds more or less, and by these it goes whether a ping whose
        # wait ends at a tick of its kernel is sent then or 3 us later: five are, between a change of the link and the next.
        assert [at_s for at_s, _ in seen] == pytest.approx([at_s for at_s, _ in expected], abs=2e-5)


def answers(outcome: Outcome, node: str, name: str) -> list[tuple[float, str]]:
    """When the pings of a node were answered, and what was said of each answer."""
    lines = [line for line in outcome.stdout(node, name).splitlines() if "icmp_seq=" in line]
    return [(float(line[1:18]) - DATE_S, line.split("]")[1]) for line in lines]


def test_what_lasts_lasts_over_the_boot_and_what_is_undone_later_is_undone(outcome: Outcome) -> None:
    times = [
        (float(line.split("icmp_seq=")[1].split()[0]), float(line.split("time=")[1].split()[0]))
        for line in outcome.stdout("a", "near").splitlines()
        if "time=" in line
    ]
    # There and back: 5 ms, then 15 by the change, 20 under the fault.
    assert {round(ms) for number, ms in times if number <= 12} == {10}
    assert {round(ms) for number, ms in times if 26 <= number <= 30} == {40}
    assert {round(ms) for number, ms in times if number >= 34} == {30}


def test_samples_and_captures_go_on_where_the_kernel_before_has_ended(outcome: Outcome) -> None:
    lines = (outcome.path / "measure" / "b" / "interfaces.csv").read_text().splitlines()
    assert sum(line.startswith("t_ns") for line in lines) == 1
    instants = [int(line.split(",")[0]) for line in lines[1:] if ",eth0," in line]
    assert instants == [number * 500_000_000 for number in range(len(instants))]
    with next((outcome.path / "captures").glob("b*.pcapng")).open("rb") as stream:
        packets = read_packets(stream)
    table_s = packets.table["t_s"]
    assert table_s.is_monotonic_increasing
    assert not table_s.between(0.828, 1.326).any()
    assert (table_s < 0.828).any() and (table_s > 1.326).any()
    assert packets.interfaces[0].received == len(packets.table)


def test_runs_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_it_is_the_same_over_two_machines(outcome: Outcome, run_lab: RunLab) -> None:
    apart = run_lab(LAB, "--machines", "2")
    assert apart.status == 0, apart.terminal
    assert left(apart) == left(outcome)


def test_on_the_work_drive_it_is_stopped_started_and_booted_again(run_lab: RunLab) -> None:
    lab = """
name: order
time: {tdf: 5}
guests: per-node
nodes: {a: {}, b: {disk: {fixed: {read_latency: 100us, write_latency: 100us}, size: 256MB}}}
links: [{endpoints: [a, b], delay: 5ms}]
run:
  - on: b
    name: hello
    background: true
    exec: [sh, -c, "cat /proc/sys/kernel/random/boot_id; cat /var/tmp/log; echo x >> /var/tmp/log; sleep 9"]
  - {on: a, name: ping, exec: ping -i 0.1 -c 30 b, expect_exit: any}
faults: [{at: 500ms, stop: b}, {at: 1s, start: b}, {at: 2s, reboot: b}]
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    *_, first, second, log, third, log_1, log_2 = outcome.stdout("b", "hello").split()
    # What was not synced is kept where a node is shut down.
    assert (log, log_1, log_2) == ("x", "x", "x")
    assert len({first, second, third}) == 3
    began = {event["what"]: event["t_ns"] for event in outcome.events if event["kind"] == "began"}
    # What is late on a host that does much else is said by the verdict; the faults are timed by the guest.
    assert {what: round(t_ns / 1e6) for what, t_ns in began.items()} == {
        "stop b": 500,
        "start b": 1000,
        "reboot b": 2000,
    }


def test_by_hand_too_also_while_the_clock_is_held(tmp_path: Path) -> None:
    lab = {
        "name": "by-hand",
        "time": {"drive": "event"},
        "guests": "per-node",
        "nodes": {"a": {}, "b": {}},
        "links": [{"endpoints": ["a", "b"], "delay": "5ms"}],
        "run": [
            {"on": "a", "name": "ping", "exec": "ping -D -i 0.05 -c 90 b", "expect_exit": "any"},
            {"on": "b", "name": "hello", "background": True, "exec": ["sh", "-c", HELLO]},
        ],
        "stop_after": "4700ms",
    }
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        slow = run.fault({"link": "a--b", "delay": "30ms"})
        run.fault({"crash": "b", "for": "500ms"})
        run.until(2)
        slow.undo()
        off = run.fault({"stop": "b"})
        run.until(3)
        off.undo()
        assert run.fault({"pause": "b", "for": "200ms"}).name == "hand4"
        run.release()
        outcome = run.wait()
    assert outcome.record.state == "finished", outcome.record.reason
    identities = [line for line in outcome.output("hello").splitlines() if line.count("-") == 4]
    assert len(set(identities)) == len(identities) == 3
    lines = [line for line in outcome.output("ping").splitlines() if "time=" in line]
    heard = [(float(line[1:18]) - DATE_S, round(float(line.partition("time=")[2].split()[0]))) for line in lines]
    assert not any(1.04 < at_s < 1.5 or 2.02 < at_s < 3 for at_s, _ in heard)
    assert {ms for at_s, ms in heard if 1.57 < at_s < 2} == {60}
    assert {ms for at_s, ms in heard if at_s > 3} == {10}
