"""On the event drive, where nothing preempts a program, one that spins does not stop the run."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

from tests.conftest import PATIENCE_HOST_S, PYTHON, RunLab, started

WAITS_FOR_ITS_THREAD = """
import threading, time
seen = []
threading.Thread(target=lambda: (time.sleep(0.02), seen.append(1))).start()
while not seen:
    pass
"""


def lab(code: str) -> str:
    """A lab in which this Python code runs."""
    argv = json.dumps([str(PYTHON), "-c", code])
    return f"name: spins\ntime: {{drive: event}}\nnodes: {{a: {{}}}}\nrun: [{{on: a, name: it, exec: {argv}}}]"


def test_time_moves_on_and_the_program_is_named(run_lab: RunLab) -> None:
    outcome = run_lab(lab(WAITS_FOR_ITS_THREAD))
    assert outcome.status == 0
    named = [event for event in outcome.events if event["kind"] == "spinning"]
    assert [(event["node"], event["program"].split()[0]) for event in named] == [("a", str(PYTHON))]
    reasons = [reason["what"] for reason in outcome.record["verdict"]["reasons"]]
    assert any("without entering the kernel" in reason for reason in reasons)
    assert outcome.record["verdict"]["level"] == "suspect"


def test_a_run_that_spins_for_ever_ends_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(lab("while True: pass"))
    arguments = ("run", tmp_path / "lab.yaml", "--out", tmp_path / "run")
    events = tmp_path / "run/events.jsonl"
    with started(*arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        while not (events.exists() and "spinning" in events.read_text()):
            assert run.poll() is None
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        terminal, _ = run.communicate()
    assert run.returncode == 130, terminal
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert (record["state"], record["processes"][0]["outcome"]) == ("aborted", "signalled")


def test_a_run_that_does_not_hear_that_it_is_to_end_ends_within_seconds_though_it_gets_on(tmp_path: Path) -> None:
    """A program that polls keeps the kernel from resting, where it would hear of that, and other programs come and go."""
    polls = "import select, time\nwhile time.monotonic() < 1000: select.select([], [], [], 0)"
    run = [{"on": "a", "name": "polls", "exec": [str(PYTHON), "-c", polls]}]
    run += [{"on": "a", "name": f"p{n}", "exec": "true", "start": f"{20 * n}ms"} for n in range(1, 500)]
    path, events = tmp_path / "lab.yaml", tmp_path / "run/events.jsonl"
    path.write_text(json.dumps({"name": "deaf", "time": {"drive": "event"}, "nodes": {"a": {}}, "run": run}))
    with started("run", path, "--out", tmp_path / "run", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as dilaton:
        while not (events.exists() and "p3" in events.read_text()):
            assert dilaton.poll() is None
            time.sleep(0.1)
        dilaton.send_signal(signal.SIGTERM)
        terminal, _ = dilaton.communicate(timeout=PATIENCE_HOST_S)
    assert dilaton.returncode == 130, terminal
    record = json.loads((tmp_path / "run/run.json").read_text())
    happened = [json.loads(line) for line in events.read_text().splitlines()]
    assert (record["state"], len(happened) < 1000) == ("aborted", True)
    # The agent, which is deaf too, does not say when it was.
    assert record["time"]["virtual_s"] >= happened[-1]["t_ns"] / 1e9 > 0
