"""Both clocks of a run over its life, as `clock.csv` in the run directory: host time, virtual time and the TDF."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from dilaton.run.files.directory import create_file

INTERVAL_HOST_S = 0.1


class Reading(Protocol):
    """Both clocks, nanoseconds, and the TDF; None while held."""

    @property
    def virtual_ns(self) -> int:
        """Since the run's virtual 0."""

    @property
    def host_ns(self) -> int:
        """Since the release."""

    @property
    def tdf(self) -> Fraction | None:
        """Host seconds per virtual second."""


async def log_clock(path: Path, clock: Callable[[], Reading]) -> None:
    """Writes a row every `INTERVAL_HOST_S`, until it is cancelled; the last row is of that moment."""
    with open(create_file(path), "w", buffering=1) as log:
        log.write("host_s,virtual_s,tdf\n")
        try:
            while True:
                log.write(_row(clock()))
                await asyncio.sleep(INTERVAL_HOST_S)
        finally:
            log.write(_row(clock()))


def _row(now: Reading) -> str:
    tdf = "" if now.tdf is None else f"{float(now.tdf):.9g}"
    return f"{now.host_ns / 1e9:.6f},{now.virtual_ns / 1e9:.9f},{tdf}\n"
