"""How a run stood while it went on, as `verdicts.jsonl` in its directory, for who looks back at an instant: its
verdict, and how much each guest had worked and waited.

To judge takes as long as the run's programs and guests are many, so it is done so seldom that it takes no more than a
hundredth of a core; and rows are the further apart the longer the run is, so that one of a week has a thousand of them.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.run.files.directory import create_file
from dilaton.run.record.model import Level, VerdictRecord

VERDICTS_FILE = "verdicts.jsonl"

INTERVAL_HOST_S = 1.0
RESTS = 100
"""How many times as long as it took to judge nothing is judged."""

GROWTH = 0.01
"""How much longer the run is at a row than at the one before, unless the level has changed."""


@dataclass(frozen=True)
class Stood:
    """How a run stands at an instant.

    Attributes:
        at_ns: Virtual time since the run's virtual 0.
        host_ns: Host time since the release of its clock.
        verdict: None in the first virtual second.
        guests: As `status` shows them.
    """

    at_ns: int
    host_ns: int
    verdict: VerdictRecord | None
    guests: Sequence[Mapping[str, Any]]

    def row(self) -> str:
        """A line of JSON."""
        verdict = None if self.verdict is None else self.verdict.model_dump()
        told = {"at_ns": self.at_ns, "host_s": self.host_ns / 1e9, "verdict": verdict, "guests": self.guests}
        return json.dumps(told, separators=(",", ":")) + "\n"


async def log_verdicts(path: Path, standing: Callable[[], Stood]) -> None:
    """Writes how the run stands, from time to time, until it is cancelled."""
    told_ns, level, rest_s = 0, None, INTERVAL_HOST_S
    with open(create_file(path), "w", buffering=1) as log:
        while True:
            await asyncio.sleep(rest_s)
            begin = time.perf_counter()
            now = standing()
            rest_s = max(INTERVAL_HOST_S, RESTS * (time.perf_counter() - begin))
            now_level = now.verdict.level if now.verdict else None
            if is_told(now.at_ns, now_level, told_ns, level):
                log.write(now.row())
                told_ns, level = now.at_ns, now_level


def is_told(at_ns: int, level: Level | None, told_ns: int, told: Level | None) -> bool:
    """Whether it is written down how a run stands, after that of an earlier instant."""
    return at_ns > told_ns and (level != told or at_ns >= (1 + GROWTH) * told_ns)
