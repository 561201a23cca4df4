"""What was seen of a run beside its clock, for its verdict: what was not observed, programs that spun, short memory."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.measure.verdict import Memory
from dilaton.run.outputs import read_output, read_tail

TAIL_BYTES = 4096
"""Of a capture, in which its last block is."""


@dataclass(frozen=True)
class Seen:
    """Fields as in `dilaton.measure.verdict.Observation`."""

    packets_dropped: tuple[tuple[str, int], ...]
    samples_lost: int
    captures_ended: tuple[tuple[str, str], ...]
    spinning: tuple[str, ...]
    shortages: tuple[tuple[str, Memory, int], ...]


NOTHING_BESIDE = Seen((), 0, (), (), ())


def seen_of(run_dir: Path, events: Sequence[Mapping[str, Any]]) -> Seen:
    """What was seen of the run in a directory.

    Args:
        run_dir: Where samples and captures are.
        events: What happened, as in `events.jsonl`.
    """
    dropped = tuple(
        (":".join(path.name.removesuffix(".pcapng").rsplit(".", 1)), _dropped(path))
        for path in sorted(run_dir.glob("captures/*.pcapng"))
    )
    missed = sum(_missed(read_output(path)) for path in sorted(run_dir.glob("measure/*/sampler.csv")))
    ended = tuple(
        (f"{event['node']}:{event['interface']}", str(event["reason"]))
        for event in events
        if event["kind"] == "capture-ended"
    )
    spinning = tuple(f"{event['node']}: {event['program']}" for event in events if event["kind"] == "spinning")
    shortages = tuple(
        (event["node"], event["memory"], event["times"]) for event in events if event["kind"] == "memory-short"
    )
    return Seen(dropped, missed, ended, spinning, shortages)


def _dropped(path: Path) -> int:
    from dilaton.measure.packets.pcapng import dropped_in

    return dropped_in(read_tail(path, TAIL_BYTES)) or 0


def _missed(text: str) -> int:
    """Samples that the sampler says it has missed; what is no such table, as after a kill, says nothing."""
    return sum(int(row["missed"]) for row in csv.DictReader(text.splitlines()) if (row.get("missed") or "").isdigit())
