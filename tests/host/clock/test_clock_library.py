"""The clock runs inside a kernel that owns malloc, stacks and signals: its library must not touch what is not safe there."""

from __future__ import annotations

import subprocess

from dilaton.host.files import CLOCK_LIBRARY

FORBIDDEN = ("malloc", "calloc", "realloc", "free", "pthread_", "__tls_get_addr", "printf", "exit", "_Unwind")
"""Allocation, locks, thread-local storage, buffered output: beginnings of names."""


def output_of(*command: str) -> list[str]:
    """The lines that a program prints about the library."""
    return subprocess.run(
        [*command, str(CLOCK_LIBRARY)], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_it_needs_no_function_that_allocates_locks_or_has_thread_local_storage() -> None:
    needed = [line.split()[-1].partition("@")[0] for line in output_of("nm", "-D", "--undefined-only")]
    assert needed, "nm reads the library"
    assert [name for name in needed if name.startswith(FORBIDDEN)] == []


def test_it_has_no_thread_local_storage_itself() -> None:
    segments = [line.split()[0] for line in output_of("readelf", "-lW") if line.startswith("  ")]
    assert "LOAD" in segments, "readelf reads the library"
    assert "TLS" not in segments


def test_it_stands_in_front_of_every_time_source_of_the_kernel() -> None:
    exported = {line.split()[-1].partition("@")[0] for line in output_of("nm", "-D", "--defined-only")}
    assert {"clock_gettime", "timer_create", "timer_settime", "sigsuspend"} <= exported
