"""What was seen of a run beside its clock: what was missed, what observing took, programs that spun, short memory."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dilaton.host.messages import CaptureEnded, Event, MemoryShort, SamplingEnded, Spinning
from dilaton.measure.observation import Memory
from dilaton.run.files.outputs import read_output, read_tail

TAIL_BYTES = 4096
"""How much of the end of a capture holds its last block."""

CONSOLE_BYTES = 1 << 20
"""How much of the end of a console is searched."""

UNMAPPED = re.compile(rb"failed, return value = 0xf{15}4\b")
"""What a kernel prints, once for each program that it ends as the host has refused it a mapping (ENOMEM; in
arch/um/os-Linux/skas). Whose program that was, it does not say."""


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


def seen_so_far(events: Sequence[Event]) -> Seen:
    """What was seen of a run that goes on, as far as its events say it."""
    ended = tuple((f"{one.node}:{one.interface}", one.reason) for one in events if isinstance(one, CaptureEnded))
    tables = tuple((one.table, one.reason) for one in events if isinstance(one, SamplingEnded))
    spinning = tuple(f"{one.node}: {one.program}" for one in events if isinstance(one, Spinning))
    short = tuple((one.node, one.memory, one.times) for one in events if isinstance(one, MemoryShort))
    return Seen((), 0, ended, tables, spinning, short)


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
    consoles = {path.stem: read_tail(path, CONSOLE_BYTES) for path in sorted(run_dir.glob("guest/*.log"))}
    unmapped = ((name, len(UNMAPPED.findall(text))) for name, text in consoles.items())
    refused: tuple[tuple[str, Memory, int], ...] = tuple((name, "mappings", times) for name, times in unmapped if times)
    told = seen_so_far(events)
    return replace(
        told,
        packets_dropped=dropped,
        samples_lost=missed,
        shortages=(*told.shortages, *refused),
        measuring_ns=measuring_ns,
    )


def _dropped(path: Path) -> int:
    from dilaton.measure.packets.pcapng import dropped_in

    return dropped_in(read_tail(path, TAIL_BYTES)) or 0


def _costs(text: str) -> tuple[int, int]:
    """Virtual nanoseconds that a sampler says it took, and samples that it missed; what is no such table, as after a
    kill, says nothing."""
    rows = [[row.get(name) or "" for name in ("cpu_ns", "missed")] for row in csv.DictReader(text.splitlines())]
    whole = [(int(cost_ns), int(missed)) for cost_ns, missed in rows if cost_ns.isdecimal() and missed.isdecimal()]
    return sum(cost_ns for cost_ns, _ in whole), sum(missed for _, missed in whole)
