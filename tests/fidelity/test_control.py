"""The clock under control: it stops exactly where it is told to, and goes on from there."""

from __future__ import annotations

import asyncio
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dilaton.host.errors import GuestError
from dilaton.host.here.guests.guest import Guest
from dilaton.host.here.guests.guests import Guests
from dilaton.host.here.guests.kernel import Placement
from dilaton.host.orders import Drive, Orders
from dilaton.lab.loader import loads
from dilaton.plan.compile import compile as compile_plan
from tests.fidelity.held_guest import SECOND_NS, with_guest

SLEEPER = """
name: sleeper
nodes: {a: {}}
run: [{on: a, name: sleep, exec: sleep 1000}]
"""
SPINNER = """
name: spinner
nodes: {a: {}}
run: [{on: a, name: spin, exec: [sh, -c, "while :; do :; done"]}]
"""
ENTERS = """
name: enters
nodes: {a: {}}
run:
  - {on: a, name: enters, exec: [python3, -I, -S, -c, "import os\\nwhile True: os.urandom(100000)"]}
  - {on: a, name: sleeps, exec: [python3, -I, -S, -c, "import time\\nwhile True: time.sleep(1e-4)"]}
"""
CALLS = """
name: calls
nodes: {a: {}}
run: [{on: a, name: calls, exec: [python3, -I, -S, -c, "import os\\nwhile True: os.getppid()"]}]
"""

DRIVES: tuple[Drive, ...] = ("wall", "work")


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("lab", [SLEEPER, SPINNER], ids=["asleep", "spinning"])
def test_it_stops_at_the_very_nanosecond_whatever_runs(lab: str, drive: Drive, tmp_path: Path) -> None:
    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, drive))
        for ahead_ns in (20_000_000, 1, 33_333_333):
            goal_ns = guest.virtual_ns() + ahead_ns
            assert await guest.run_until(goal_ns, Fraction(1)) == goal_ns
            for _ in range(20):
                await asyncio.sleep(0)
                assert guest.page.read("virtual_now_ns") <= guest.virtual_ns() == goal_ns

    with_guest(lab, tmp_path, work)


def test_a_step_serves_one_timer_after_the_other(tmp_path: Path) -> None:
    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, "work"))
        instants = []
        for _ in range(20):
            due_ns = guest.page.read("deadline_ns")
            instants.append(await guest.step(Fraction(1)))
            assert due_ns <= instants[-1] or guest.page.read("deadline_ns") < due_ns
        assert instants == sorted(set(instants)), "every step is to a later instant"
        assert guest.page.read("timers_served") >= 20

    with_guest(SLEEPER, tmp_path, work)


def test_an_alarm_in_the_middle_of_a_system_call_takes_no_signal_to_the_program(tmp_path: Path) -> None:
    """One program is nearly always in a system call, of a fraction of a millisecond, while another one's sleep ends."""

    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, "work"))
        # Without an interruption of its own the signal alone would be 10 us.
        assert 10_000 < guest.page.read("user_slack_ns") <= 100_000
        # The boot, where nothing is asked for so long, has made a few.
        while (made := guest.page.read("stops_made")) <= 200:
            await guest.run_until(guest.virtual_ns() + SECOND_NS // 10, Fraction(1))
        assert made <= guest.page.read("timers_served")

    with_guest(ENTERS, tmp_path, work)


@pytest.mark.usefixtures("traced")
def test_extended_state_that_has_not_changed_is_not_set_again(tmp_path: Path) -> None:
    """Whatever its size on this host: the kernel's buffer may be larger, of which the end is not part of it."""

    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, "work"))
        shares = []
        # Programs that start set it more often than those that run.
        while len(shares) < 100 and max(shares, default=0) < 0.9:
            before = [guest.page.read(name) for name in ("register_restores", "register_restores_skipped")]
            await guest.run_until(guest.virtual_ns() + SECOND_NS // 10, Fraction(1))
            after = [guest.page.read(name) for name in ("register_restores", "register_restores_skipped")]
            asked, skipped = (now - then for now, then in zip(after, before, strict=True))
            shares.append(skipped / max(asked, 1))
        assert max(shares) >= 0.9

    with_guest(CALLS, tmp_path, work)


def test_a_highest_speed_makes_idle_time_wait_for_the_host(tmp_path: Path) -> None:
    async def work(guest: Guest) -> None:
        zero_ns, begin_ns = guest.virtual_ns(), time.monotonic_ns()
        await guest.order(Orders(Fraction(1), "work", zero_ns + 2 * SECOND_NS, max_speed=Fraction(10)))
        while not guest.page.is_held(0):
            passed_ns = guest.virtual_ns() - zero_ns
            assert passed_ns <= 10 * (time.monotonic_ns() - begin_ns)
            await asyncio.sleep(0.002)
        assert guest.virtual_ns() == zero_ns + 2 * SECOND_NS
        # Without the bound it jumps there in a few milliseconds of work.
        assert time.monotonic_ns() - begin_ns >= 2 * SECOND_NS / 10

    with_guest(SLEEPER, tmp_path, work)


def test_a_change_of_the_tdf_keeps_the_end_and_holding_wins_over_it(tmp_path: Path) -> None:
    async def work(guest: Guest) -> None:
        await guest.order(Orders(None, "wall"))
        goal_ns = guest.virtual_ns() + 100_000 * SECOND_NS
        runner = asyncio.create_task(guest.run_until(goal_ns, Fraction(1)))
        await asyncio.sleep(0.01)
        await guest.set_tdf(Fraction(1, 1000))
        assert guest.page.timeline().end_ns == goal_ns
        await guest.hold()
        assert await runner == guest.virtual_ns() < goal_ns

    with_guest(SLEEPER, tmp_path, work)


def test_the_past_and_a_guest_that_is_gone_are_errors(tmp_path: Path) -> None:
    async def work(guest: Guest) -> None:
        with pytest.raises(ValueError, match="never goes back"):
            await guest.run_until(guest.virtual_ns() - 1)
        guest.process.kill()
        await guest.process.wait()
        with pytest.raises(GuestError, match="has ended"):
            await guest.hold()

    with_guest(SLEEPER, tmp_path, work)


def test_clocks_of_guests_stay_one_on_the_wall_drive_whenever_each_sees_its_orders(tmp_path: Path) -> None:
    lab = """
name: apart
time: {drive: wall, tdf: 4}
guests: 2
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 1ms}]
run: [{on: a, name: sleep, exec: sleep 1000}]
"""

    async def work() -> None:
        plan = compile_plan(loads(lab, "lab.yaml"))
        (tmp_path / "plan.json").write_text(plan.model_dump_json())
        guests = await Guests.boot(plan, Placement(tmp_path, jailed=True), None, lambda *_: None)
        try:
            await guests.arm(time.time_ns())
            for numerator, host_s in ((4, 0.01), (3, 0.003), (40, 0.01), (3, 0.0), (80, 0.001), (5, 0.01)) * 3:
                await guests.order(Orders(Fraction(numerator, 2), "wall"))
                await asyncio.sleep(host_s)
                await guests.set_tdf(Fraction(numerator, 3))
                await asyncio.sleep(host_s)
                if numerator == 80:
                    await guests.hold()
                # The lines as the clocks tell them, an hour ahead of where they are.
                then_ns = time.monotonic_ns() + 3600 * SECOND_NS
                first, second = (guest.page.timeline().virtual_at(then_ns) - guest.zero_ns for guest in guests.all)
                assert abs(first - second) <= 1
        finally:
            await guests.close()

    asyncio.run(work())
