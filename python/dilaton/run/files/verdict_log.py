"""How the verdict stood while a run went on, as `verdicts.jsonl` in its directory, for who looks back at an instant.

To judge takes as long as the run's programs and guests are many, so it is done so seldom that it takes no more than a
hundredth of a core; and rows are the further apart the longer the run is, so that one of a week has a thousand of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from dilaton.run.files.directory import create_file
from dilaton.run.record.model import Level, VerdictRecord

VERDICTS_FILE = "verdicts.jsonl"

INTERVAL_HOST_S = 1.0
RESTS = 100
"""How many times as long as it took to judge nothing is judged."""

GROWTH = 0.01
"""How much longer the run is at a row than at the one before, unless the level has changed."""

Standing = Callable[[], tuple[int, VerdictRecord | None]]
"""The virtual instant, and the verdict at it, if there is one yet."""


async def log_verdicts(path: Path, standing: Standing) -> None:
    """Writes how the verdict stands, from time to time, until it is cancelled: a line of JSON with its instant each."""
    told_ns, level, rest_s = 0, None, INTERVAL_HOST_S
    with open(create_file(path), "w", buffering=1) as log:
        while True:
            await asyncio.sleep(rest_s)
            begin = time.perf_counter()
            at_ns, verdict = standing()
            rest_s = max(INTERVAL_HOST_S, RESTS * (time.perf_counter() - begin))
            if verdict is not None and is_told(at_ns, verdict.level, told_ns, level):
                log.write(f'{{"at_ns":{at_ns},"verdict":{verdict.model_dump_json()}}}\n')
                told_ns, level = at_ns, verdict.level


def is_told(at_ns: int, level: Level, told_ns: int, told: Level | None) -> bool:
    """Whether a verdict is written down, after that of an earlier instant."""
    return at_ns > told_ns and (level != told or at_ns >= (1 + GROWTH) * told_ns)
