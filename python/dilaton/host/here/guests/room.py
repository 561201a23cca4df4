"""Whether this machine has the memory for the guests of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.host.errors import GuestError

if TYPE_CHECKING:
    from dilaton.plan import model as plan

GIB = 1 << 30


def available_bytes(meminfo: str) -> int:
    """Memory that programs can still get, from the text of /proc/meminfo; 0 when it does not say."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB$", meminfo, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def check_memory(guests: Sequence[plan.Guest]) -> None:
    """Refuses guests that together may want more memory than there is; a single one is not judged by what it may.

    Raises:
        GuestError: They may.
    """
    wanted = sum(guest.memory_bytes for guest in guests)
    available = available_bytes(Path("/proc/meminfo").read_text())
    if len(guests) > 1 and wanted > available:
        raise GuestError(
            f"{len(guests)} guests of this lab may take {wanted / GIB:.1f} GiB of memory together, and "
            f"{available / GIB:.1f} GiB are available; divide the lab into fewer guests, or give named ones less"
        )
