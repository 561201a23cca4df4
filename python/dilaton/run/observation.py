"""What was not observed of a run, for its verdict: packets that captures dropped, samples that were not taken."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.run.outputs import read_output, read_tail

TAIL_BYTES = 4096
"""Of a capture, in which its last block is."""


@dataclass(frozen=True)
class Losses:
    """Fields as in `dilaton.measure.verdict.Observation`."""

    packets_dropped: tuple[tuple[str, int], ...]
    samples_lost: int
    captures_ended: tuple[tuple[str, str], ...]


def losses_of(run_dir: Path, events: Iterable[Mapping[str, Any]]) -> Losses:
    """What was not observed of the run in a directory.

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
    return Losses(dropped, missed, ended)


def _dropped(path: Path) -> int:
    from dilaton.measure.packets.pcapng import dropped_in

    return dropped_in(read_tail(path, TAIL_BYTES)) or 0


def _missed(text: str) -> int:
    """Samples that the sampler says it has missed; what is no such table, as after a kill, says nothing."""
    return sum(int(row["missed"]) for row in csv.DictReader(text.splitlines()) if (row.get("missed") or "").isdigit())
