"""Whether there is memory for guests, from the text that the kernel shows."""

from __future__ import annotations

from dilaton.host.here.guests import room

MEMINFO = """\
MemTotal:       24684096 kB
MemFree:         1234567 kB
MemAvailable:   20000000 kB
"""


def test_available_memory_is_in_bytes() -> None:
    assert room.available_bytes(MEMINFO) == 20_000_000 * 1024


def test_memory_that_is_not_told_counts_as_none() -> None:
    assert room.available_bytes("MemTotal: 1 kB\n") == 0
