"""What goes wrong inside a run is said first, in the record and on the terminal, with the right exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import RunLab
from tests.terminal import TypedAt

ONE_PROCESS = """
name: fault
time: {{tdf: 1}}
nodes: {{a: {{}}}}
run:
  - {{on: a, name: it, {fields}}}
"""


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("exec: [sh, -c, 'kill -SEGV $$']", "signal 11"),
        ("exec: [sh, -c, 'exit 3']", "status 3"),
        ("exec: sleep 1, ready: {tcp: 99, timeout: 500ms}", "not ready: it did not listen on TCP port 99 within 0.5 s"),
        ("exec: sleep 100, timeout: 1s", "longer than its timeout of 1 s"),
        ("exec: sleep 1, ready: {output: '^up$', timeout: 500ms}", 'no line of its output matched "^up$" within 0.5 s'),
        ("exec: sleep 0.1, ready: {tcp: 99}", "ended before it was ready"),
        ("exec: cat, stdin: /no/such/file", "/no/such/file"),
        ("exec: sleep 1, user: nobody-at-all, start: 1ms", "nobody-at-all"),
        ("exec: sleep 1, cwd: /no/such/directory", "/no/such/directory"),
    ],
)
def test_a_failing_process_fails_the_run_and_is_named(run_lab: RunLab, fields: str, reason: str) -> None:
    outcome = run_lab(ONE_PROCESS.format(fields=fields))
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert "it" in outcome.record["reason"].split()
    assert reason in outcome.record["reason"]
    assert reason in outcome.terminal


@pytest.mark.parametrize(
    ("program", "reason"),
    [("/no/such/program", "No such file or directory"), ("/etc/passwd", "/etc/passwd: Permission denied")],
)
def test_a_program_that_another_one_could_have_made_and_did_not_fails_the_run(
    run_lab: RunLab, program: str, reason: str
) -> None:
    # Of others it is told before they run.
    outcome = run_lab(
        ONE_PROCESS.format(fields=f"exec: {program}, after: maker") + "  - {on: a, name: maker, exec: 'true'}\n"
    )
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert reason in outcome.record["reason"]
    assert outcome.process("it")["outcome"] == "start-failed"


def test_what_waits_for_a_failed_process_is_skipped(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: skipped
nodes: {a: {}}
run:
  - {on: a, name: first, exec: "false"}
  - {on: a, name: second, exec: "true", after: first}
  - {on: a, name: third, exec: "true", after: second}
"""
    )
    assert outcome.status == 1
    assert "first" in outcome.record["reason"]
    assert [outcome.process(name)["outcome"] for name in ("second", "third")] == ["skipped", "skipped"]


def test_a_guest_that_panics_fails_the_run_and_says_where_its_log_is(run_lab: RunLab) -> None:
    outcome = run_lab(ONE_PROCESS.format(fields="exec: [sh, -c, 'echo c > /proc/sysrq-trigger; sleep 10']"))
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert "guest0" in outcome.record["reason"]
    assert "Kernel panic - not syncing: sysrq triggered crash" in outcome.record["reason"]
    assert "panic" in (outcome.path / "guest" / "guest0.log").read_text()
    assert str(outcome.path / "guest") in outcome.terminal


def test_a_run_that_fails_at_a_terminal_says_so_in_words_alone(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(ONE_PROCESS.format(fields="exec: [sh, -c, 'sleep 1; echo c > /proc/sysrq-trigger; sleep 10']"))
    with TypedAt("run", path, "--out", tmp_path / "run") as run:
        run.expect("started")
        assert "Traceback" not in run.expect("kernel console")
        assert run.wait() == 1


@pytest.mark.parametrize(("key", "value"), [("net.ipv4.no_such_thing", "1"), ("net.ipv4.ip_forward", "perhaps")])
def test_a_sysctl_that_the_kernel_refuses_fails_the_run_and_names_the_node(
    run_lab: RunLab, key: str, value: str
) -> None:
    outcome = run_lab(f"name: fault\nnodes: {{a: {{sysctls: {{{key}: {value}}}}}}}\n")
    assert outcome.status == 1
    assert outcome.record["state"] == "failed"
    assert "node a" in outcome.record["reason"]
    assert key.replace(".", "/") in outcome.record["reason"]


def test_a_guest_without_memory_kills_the_greedy_process_and_the_run_goes_on(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: greedy
guests: {x: {memory: 128MiB}}
nodes: {a: {guest: x}}
run:
  - {on: a, name: greedy, exec: tail /dev/zero}
  - {on: a, name: modest, exec: sleep 0.1}
"""
    )
    assert outcome.status == 1
    assert outcome.record["reason"] == "process greedy on a was killed by signal 9, expected status 0"
    assert outcome.process("modest")["exit"] == 0
    assert [event["memory"] for event in outcome.events if event["kind"] == "memory-short"] == ["guest"]


def test_a_failed_check_is_exit_status_1_though_the_run_finished(run_lab: RunLab) -> None:
    outcome = run_lab(
        """
name: unmet
time: {drive: event}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 5ms}]
run: [{on: a, name: ping, exec: ping -c 2 -i 0.1 b}]
expect: [ping.rtt.avg < 1ms, ping.loss == 0%]
"""
    )
    assert outcome.status == 1
    assert outcome.record["state"] == "finished"
    assert [check["passed"] for check in outcome.record["checks"]] == [False, True]
    assert outcome.record["checks"][0]["value"] == pytest.approx(0.010, rel=0.05), "without what programs take"


def test_a_run_directory_with_something_in_it_is_refused_and_left_alone(run_lab: RunLab, tmp_path: Path) -> None:
    keep = tmp_path / "0-run" / "thesis.tex"
    keep.parent.mkdir()
    keep.write_text("years of work")
    lab = tmp_path / "lab.yaml"
    lab.write_text(ONE_PROCESS.format(fields="exec: 'true'"))
    outcome = run_lab(lab, "--out", str(keep.parent))
    assert outcome.status == 2
    assert "not empty" in outcome.terminal
    assert [path.name for path in keep.parent.iterdir()] == ["thesis.tex"]
