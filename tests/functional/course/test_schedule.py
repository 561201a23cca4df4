"""The schedule runs inside the guest, at virtual instants: at a high TDF the host's latencies vanish from it."""

from __future__ import annotations

import pytest

from tests.conftest import PYTHON, Outcome, RunLab

TDF = 1000
LATE_S_MAX = 0.002
"""Virtual seconds that a fork and exec, or a signal and its death, may take: TDF times as long on the host."""

LAB = f"""
name: schedule
time: {{tdf: {TDF}}}
nodes: {{a: {{}}, b: {{}}}}
run:
  - {{on: a, name: at-zero, exec: sleep 0.05}}
  - {{on: b, name: at-forty, exec: "true", start: 40ms}}
  - {{on: b, name: at-sixty, exec: sleep 0.03, start: 60ms}}
  - {{on: b, name: after-end, exec: "true", after: at-zero}}
  - {{on: b, name: after-both, exec: "true", after: [at-zero, at-sixty]}}
  - {{on: b, name: after-and-start, exec: "true", after: at-zero, start: 70ms}}
  - {{on: a, name: delayed, exec: sleep 10, background: true, ready: {{delay: 30ms}}}}
  - {{on: b, name: after-delay, exec: "true", after: delayed}}
  - {{on: a, name: service, exec: sleep 10, background: true}}
  - {{on: b, name: after-service, exec: "true", after: service}}
  - on: a
    name: speaker
    background: true
    exec: sh -c 'echo warming up; sleep 0.045; echo now ready, at last >&2; exec sleep 10'
    ready: {{output: "^now [r]eady"}}
  - {{on: b, name: after-speaker, exec: "true", after: speaker}}
  - {{on: a, name: stopped, exec: sleep 10, stop: 80ms}}
  - on: a
    name: polite
    stop: 80ms
    exec: [sh, -c, "trap 'echo goodbye; exit 5' TERM; while :; do sleep 0.001; done"]
  - on: a
    name: group
    stop: 80ms
    exec: sh -c 'sleep 10 & wait'
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0
    return outcome


@pytest.mark.parametrize(
    ("process", "due_s"),
    [("at-zero", 0.0), ("at-forty", 0.040), ("at-sixty", 0.060), ("after-and-start", 0.070), ("service", 0.0)],
)
def test_a_start_happens_at_its_instant(outcome: Outcome, process: str, due_s: float) -> None:
    assert due_s <= outcome.instant_s("started", process) <= due_s + LATE_S_MAX


@pytest.mark.parametrize(
    ("process", "kind", "other"),
    [
        ("after-end", "exited", "at-zero"),
        ("after-both", "exited", "at-sixty"),
        ("after-delay", "ready", "delayed"),
        ("after-service", "started", "service"),
        ("after-speaker", "ready", "speaker"),
    ],
)
def test_what_waits_starts_as_soon_as_what_it_waits_for_has_come(
    outcome: Outcome, process: str, kind: str, other: str
) -> None:
    came_s = outcome.instant_s(kind, other)
    assert came_s <= outcome.instant_s("started", process) <= came_s + LATE_S_MAX


def test_readiness_comes_when_it_should(outcome: Outcome) -> None:
    delayed_s = outcome.instant_s("ready", "delayed") - outcome.instant_s("started", "delayed")
    assert 0.030 <= delayed_s <= 0.030 + LATE_S_MAX
    # Outputs are looked at every 10 ms of virtual time.
    spoke_s = outcome.instant_s("ready", "speaker") - outcome.instant_s("started", "speaker")
    assert 0.045 <= spoke_s <= 0.045 + 0.010 + 2 * LATE_S_MAX


def test_a_stop_terminates_the_whole_group_at_its_instant_and_counts_as_success(outcome: Outcome) -> None:
    for name in ("stopped", "group"):
        process = outcome.process(name)
        assert 0.080 <= process["end_s"] <= 0.080 + LATE_S_MAX
        assert (process["signal"], process["expected"]) == (15, True)
    assert outcome.stdout("a", "polite") == "goodbye\n"
    assert (outcome.process("polite")["exit"], outcome.process("polite")["expected"]) == (5, True)


def test_the_run_ends_with_its_last_foreground_process_and_stops_the_background(outcome: Outcome) -> None:
    last_s = max(outcome.process(name)["end_s"] for name in ("polite", "stopped", "group", "after-both"))
    for name in ("service", "delayed", "speaker"):
        process = outcome.process(name)
        assert last_s <= process["end_s"] <= last_s + LATE_S_MAX
        assert (process["signal"], process["expected"]) == (15, True)
    assert last_s <= outcome.record["time"]["virtual_s"] <= last_s + 2 * LATE_S_MAX


def test_stop_after_ends_everything_and_the_stubborn_are_killed_after_the_grace(run_lab: RunLab) -> None:
    outcome = run_lab(
        f"""
name: stop-after
time: {{tdf: {TDF}}}
nodes: {{a: {{}}}}
run:
  - {{on: a, name: willing, exec: sleep 100}}
  - {{on: a, name: stubborn, exec: [sh, -c, "trap '' TERM; while :; do sleep 0.1; done"]}}
  - {{on: a, name: never, exec: "true", after: stubborn}}
stop_after: 500ms
"""
    )
    assert outcome.status == 0
    assert outcome.record["state"] == "finished"
    assert outcome.process("willing")["end_s"] == pytest.approx(0.5, abs=LATE_S_MAX)
    stubborn = outcome.process("stubborn")
    assert stubborn["end_s"] == pytest.approx(1.5, abs=2 * LATE_S_MAX)
    assert (stubborn["signal"], stubborn["expected"]) == (9, True)
    assert outcome.process("never")["outcome"] == "not-started"


def test_a_listening_server_is_ready_before_its_client_starts(run_lab: RunLab) -> None:
    outcome = run_lab(
        f"""
name: ready-tcp
nodes: {{a: {{}}, b: {{}}}}
links: [a -- b]
run:
  - {{on: a, name: fetch, exec: [bash, -c, "exec 3<>/dev/tcp/b/8000"], after: web}}
  - on: b
    name: web
    exec: sh -c 'sleep 0.3; exec {PYTHON} -m http.server 8000'
    ready: {{tcp: 8000, timeout: 20s}}
    background: true
"""
    )
    assert outcome.status == 0
    assert 0.3 < outcome.instant_s("ready", "web") <= outcome.instant_s("started", "fetch")


def test_waiting_for_many_servers_leaves_the_cpu_to_them(run_lab: RunLab) -> None:
    """On a CPU so slow that one look at all of them takes longer than is between two looks elsewhere."""
    ports = range(9000, 9020)
    waiting = [
        f"  - {{on: a, name: p{port}, exec: sleep 1000, background: true, ready: {{tcp: {port}, timeout: 3000s}}}}"
        for port in ports
    ]
    listen = (
        f"import socket, time; held = [socket.create_server(('', port)) for port in {list(ports)}]; time.sleep(1000)"
    )
    outcome = run_lab(
        f"""
name: waiting
time: {{tdf: 1/20}}
nodes: {{a: {{}}}}
run:
  - {{on: a, name: all, exec: [{PYTHON}, -c, "{listen}"], background: true}}
  - {{on: a, name: end, exec: "true", after: [{", ".join(f"p{port}" for port in ports)}]}}
"""
        + "\n".join(waiting)
    )
    assert outcome.status == 0
