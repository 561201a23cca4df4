"""Whether guests give up their own time-stamp counter while programs run (`crates/clock/src/host/own_counter.rs`)."""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

from dilaton.host.files import CLOCK_LIBRARY
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.orders import Orders

NO_LINE = -1


@dataclass(frozen=True)
class OwnCounter:
    """What a clock found when it was loaded.

    Attributes:
        switch_ns: what it takes to give the counter up and to take it back, without the system calls for it; 0 where
            that was not measured.
        given_up: whether guests give it up.
    """

    switch_ns: int
    given_up: bool


def measure() -> OwnCounter | None:
    """What a clock finds on this machine, loaded into a program that does nothing; None if it cannot be loaded."""
    with closing(ClockPage(0)) as page:
        page.command(Orders(Fraction(1)))
        variable = ",".join(map(str, (*page.guest_fds, NO_LINE, NO_LINE)))
        environment = {"LD_PRELOAD": str(CLOCK_LIBRARY), "DILATON_CLOCK": variable}
        try:
            run = subprocess.run(["true"], env=environment, pass_fds=page.guest_fds, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        if run.returncode != 0 or not page.read("applied_sequence"):
            return None
        seen = page.counters(0)
        return OwnCounter(seen.counter_switch_ns, seen.counter_given_up)
