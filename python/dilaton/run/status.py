"""What a run that goes on is doing, for those who watch it: `dilaton top` and Prometheus.

The process of the run tells of its clock and its programs through the control socket; samples of interfaces and nodes
are read from the run directory, where the guests write them, so that watching costs the run nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dilaton.measure.layouts import LAYOUTS
from dilaton.measure.recent import Row, latest
from dilaton.plan.model import Plan
from dilaton.run.control import Result
from dilaton.run.fidelity import Tally, together
from dilaton.run.outputs import read_head, read_tail
from dilaton.run.processes import processes_from_events

HEADER_BYTES_MAX = 4096

TAIL_BYTES = 1 << 20
"""Of a table of samples: the last two of some 4,000 interfaces."""


def status(plan: Plan, events: Iterable[Mapping[str, Any]], tally: Tally) -> Result:
    """How late timers are, how busy the guests, and what has become of each process."""
    fidelity = together(tally.seen(), [], None)
    return {
        "fidelity": fidelity.model_dump(include={"lateness_us", "lateness_ns_counts", "timers", "busy"}),
        "processes": [
            process.model_dump(include={"name", "node", "outcome", "start_s", "end_s", "exit", "signal", "expected"})
            for process in processes_from_events(plan, events)
        ],
    }


def recent_samples(run_dir: Path, table: str) -> list[Row]:
    """The latest sample of each interface, or of each node, of all guests; empty when none were asked for."""
    found = []
    for path in sorted(run_dir.glob(f"measure/*/{table}.csv")):
        header = read_head(path, HEADER_BYTES_MAX).decode(errors="replace").partition("\n")[0]
        found += latest(LAYOUTS[table], header, read_tail(path, TAIL_BYTES).decode(errors="replace"))
    return found
