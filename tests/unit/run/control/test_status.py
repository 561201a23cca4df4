"""What is told of guests while a run goes on."""

from __future__ import annotations

from dilaton.host.counters import Counters, Waits, Wires
from dilaton.run.control.status import guests_shown

BEGUN = Counters(virtual_ns=-1_000, idle_ns=500)


def test_each_guest_is_told_with_its_machine_its_work_and_its_waiting() -> None:
    counted = [
        (BEGUN, Counters(virtual_ns=2_000_000_000 - 1_000, idle_ns=500_000_500)),
        (BEGUN, Counters(virtual_ns=2_000_000_000 - 1_000, idle_ns=2_000_000_500)),
    ]
    wires = Wires([], [Waits(waited_host_ns=250_000_000), Waits()])
    first, second = guests_shown(["east", "west"], ["ws1", "ws2"], counted, wires)
    assert first == {"name": "east", "machine": "ws1", "busy_s": 1.5, "waited_host_s": 0.25}
    assert second == {"name": "west", "machine": "ws2", "busy_s": 0.0, "waited_host_s": 0.0}


def test_the_only_guest_of_a_run_is_on_no_machine_in_particular_and_waits_for_nobody() -> None:
    (shown,) = guests_shown(["all"], [], [(Counters(), Counters(virtual_ns=10, idle_ns=20))], None)
    assert shown == {"name": "all", "machine": None, "busy_s": 0.0, "waited_host_s": None}
