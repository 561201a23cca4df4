"""The console of a guest."""

from __future__ import annotations

import os

from dilaton.host.here.guests import console


def test_of_a_long_console_in_memory_the_end_is_kept() -> None:
    with os.fdopen(os.memfd_create("console"), "w+b", buffering=0) as log:
        log.write(b"a line\n" * 1000)
        console.shorten(log)
        assert os.pread(log.fileno(), 7, 0) == b"a line\n"
        log.write(b"noise" * (4 << 20) + b"\nKernel panic - not syncing: at last\n")
        console.shorten(log)
        assert os.fstat(log.fileno()).st_blocks * 512 <= console.CONSOLE_BYTES + 8192
        assert console.panic(log) == "Kernel panic - not syncing: at last"


def test_what_the_warden_says_of_memory_is_why_a_guest_ended() -> None:
    with os.fdopen(os.memfd_create("console"), "w+b", buffering=0) as log:
        log.write(b"booting\ndilaton warden: the guest was ended, since it took the 5 bytes\n")
        assert console.panic(log) == "dilaton warden: the guest was ended, since it took the 5 bytes"
