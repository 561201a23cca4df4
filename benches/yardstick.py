"""How fast the host is while something is measured, so that what different minutes cost can be compared.

The speed of a host that others share drifts by a factor of two within minutes, and what a guest's work takes drifts
with it. So a fixed computation is timed before and after each measurement, a part of that by which `dilaton calibrate`
measures cores. Eight runs of one chain of bridges in a row, beside a load of 19 on two cores, had a coefficient of
variation of 0.22; multiplied by the speed beside each, 0.13. It is no cure: who takes caches costs a kernel more than a
compressor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from dilaton.host.here.doctor.calibration import PARTS, fixed_text

PART = next(part for part in PARTS if part.name == "bzip2")

Found = TypeVar("Found")

text = cache(fixed_text)


def beside(measure: Callable[[], Found]) -> tuple[Found, float]:
    """What `measure` returns, and how fast this core was around it, relative to the reference."""
    before_s = _seconds()
    found = measure()
    return found, PART.reference_s / (before_s * _seconds()) ** 0.5


def _seconds() -> float:
    begin_s = time.thread_time()
    PART.work(text())
    return time.thread_time() - begin_s
