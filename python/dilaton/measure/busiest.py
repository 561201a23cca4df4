"""The busiest second of a guest, from looks at its clock page. Pure.

The busy fraction of a whole run is a mean: two seconds in which the CPU could not keep up, among four in which it had
little to do, are 0.7. What was measured in those two seconds is wrong all the same, and lateness need not tell it:
packets are handled before programs are, so that timers may be in time while programs get less than they ask for. So the
run is cut into stretches of a second, or a little more, from look to look; of a saturation that lasts for two seconds,
one stretch has nothing else. An idle guest may jump over more than that between two looks.
"""

from __future__ import annotations

STRETCH_NS = 1_000_000_000


class BusiestSecond:
    """Follows one guest from virtual `begin_ns` on, when it had idled for `idle_ns` of virtual time."""

    def __init__(self, begin_ns: int, idle_ns: int) -> None:
        """Begins the first stretch."""
        self._begin_ns = begin_ns
        self._idle_ns = idle_ns
        self.busy: float | None = None
        """The share of the busiest stretch in which the guest worked, 0..1; None before the first is over."""

    def look(self, now_ns: int, idle_ns: int) -> None:
        """Takes the virtual instant of the guest, and for how long it has idled until then."""
        passed_ns = now_ns - self._begin_ns
        if passed_ns < STRETCH_NS:
            return
        busy = min(1.0, max(0.0, 1 - (idle_ns - self._idle_ns) / passed_ns))
        self.busy = max(busy, self.busy or 0.0)
        self._begin_ns, self._idle_ns = now_ns, idle_ns
