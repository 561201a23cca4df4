"""A database keeps every committed transaction over crashes if it syncs to a disk with a volatile cache, and else does not.

`benches/crashes.py` does the same with fifty crashes.
"""

from __future__ import annotations

import pytest

from tests.conftest import PYTHON, ROOT, Outcome, RunLab
from tests.sqlite_store import losses

STORE = ROOT / "tests" / "sqlite_store.py"

DISK = "{fixed: {read_latency: 200us, write_latency: 2ms}, size: 64MB, mount: /srv, cache: torn}"

LAB = f"""
name: database
time: {{drive: event}}
nodes: {{synced: {{disk: {DISK}}}, unsynced: {{disk: {DISK}}}}}
links: [{{endpoints: [synced, unsynced], delay: 1ms}}]
run:
  - {{on: synced, name: synced, background: true, exec: [{PYTHON}, {STORE}, FULL]}}
  - {{on: unsynced, name: unsynced, background: true, exec: [{PYTHON}, {STORE}, "OFF"]}}
stop_after: 3s
faults:
  - {{name: random, random: {{every: uniform 200ms..600ms, for: 50ms, of: [{{crash: "*"}}]}}}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that the tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def test_what_was_committed_and_synced_survives_each_crash(outcome: Outcome) -> None:
    text = outcome.stdout("synced", "synced")
    assert len(losses(text)) >= 5
    assert "broken" not in text
    # One more may be there, of which nobody was told before the crash.
    assert set(losses(text)) <= {0, -1}, losses(text)
    assert text.count("committed") > 100


def test_what_was_not_synced_is_lost(outcome: Outcome) -> None:
    assert max(losses(outcome.stdout("unsynced", "unsynced"))) > 0
