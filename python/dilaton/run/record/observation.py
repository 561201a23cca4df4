"""What was seen of a run beside its clock: what was missed, what observing took, programs that spun, short memory."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dilaton.host.messages import CaptureEnded, Event, MemoryShort, SamplingEnded, Spinning
from dilaton.measure.observation import Memory
from dilaton.run.files.outputs import read_output, read_tail

TAIL_BYTES = 4096
"""How much of the end of a capture holds its last block."""


@dataclass(frozen=True)
class Seen:
    """Fields as in `dilaton.measure.verdict.Observation`, and `measuring_ns`: what samplers took, in virtual time."""

    packets_dropped: tuple[tuple[str, int], ...]
    samples_lost: int
    captures_ended: tuple[tuple[str, str], ...]
    samplings_ended: tuple[tuple[str, str], ...]
    spinning: tuple[str, ...]
    shortages: tuple[tuple[str, Memory, int], ...]
    measuring_ns: int = 0


NOTHING_BESIDE = Seen((), 0, (), (), (), ())


def seen_of(run_dir: Path, events: Sequence[Event]) -> Seen:
    """What was seen of the run in a directory.

    Args:
        run_dir: Where samples and captures are.
        events: What happened.
    """
    dropped = tuple(
        (":".join(path.name.removesuffix(".pcapng").rsplit(".", 1)), _dropped(path))
        for path in sorted(run_dir.glob("captures/*.pcapng"))
    )
    costs = [_costs(read_output(path)) for path in sorted(run_dir.glob("measure/*/sampler.csv"))]
    measuring_ns, missed = sum(cost_ns for cost_ns, _ in costs), sum(missed for _, missed in costs)
    ended = tuple((f"{one.node}:{one.interface}", one.reason) for one in events if isinstance(one, CaptureEnded))
    tables = tuple((one.table, one.reason) for one in events if isinstance(one, SamplingEnded))
    spinning = tuple(f"{one.node}: {one.program}" for one in events if isinstance(one, Spinning))
    shortages = tuple((one.node, one.memory, one.times) for one in events if isinstance(one, MemoryShort))
    return Seen(dropped, missed, ended, tables, spinning, shortages, measuring_ns)


def _dropped(path: Path) -> int:
    from dilaton.measure.packets.pcapng import dropped_in

    return dropped_in(read_tail(path, TAIL_BYTES)) or 0


def _costs(text: str) -> tuple[int, int]:
    """Virtual nanoseconds that a sampler says it took, and samples that it missed; what is no such table, as after a
    kill, says nothing."""
    rows = [[row.get(name) or "" for name in ("cpu_ns", "missed")] for row in csv.DictReader(text.splitlines())]
    whole = [(int(cost_ns), int(missed)) for cost_ns, missed in rows if cost_ns.isdecimal() and missed.isdecimal()]
    return sum(cost_ns for cost_ns, _ in whole), sum(missed for _, missed in whole)
