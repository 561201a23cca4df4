"""The states of a run and of its processes, for whoever reads them without loading the models of a record."""

from __future__ import annotations

from typing import Literal

State = Literal["prepare", "boot", "ready", "running", "collecting", "finished", "failed", "aborted"]
"""The states of a run, in their order; it ends in one of the last three."""

FINAL_STATES: frozenset[State] = frozenset({"finished", "failed", "aborted"})

ProcessOutcome = Literal["not-started", "running", "exited", "signalled", "start-failed", "skipped"]
"""What became of a process; `running` in the record of a run that has ended: it ended with its guest."""
