"""How the TDF follows loads: quick to rise, slow to fall, never beyond its limits, and not at all for what spins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.measure.observation import Observation
from dilaton.measure.verdict import judge
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.patience import Patience
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.network.bounds import Network
from dilaton.run.adaptive.epoch import Epoch, Limits, Policy, rounded_up
from dilaton.run.adaptive.lateness import CALM_EPOCHS, REST_EPOCHS, Lateness
from dilaton.run.adaptive.pads15 import Pads15

EPOCH_NS = 100_000_000
LATE_HOST_NS = 20_000
LIMITS = Limits(Fraction(1), Fraction(100), target=0.7, late_ns_max=10_000.0)

Load = Callable[[int], float]
"""Host seconds of work that the network asks for in each virtual second, by the number of the epoch."""


def epoch(number: int, tdf: Fraction, load: float, *, timers: float | None = None, late_ns: float = 0.0) -> Epoch:
    """What a guest shows that has `load` to do: three timers in a hundred are late, a network's work brings timers."""
    served = round(1e4 * min(load, float(tdf)) if timers is None else timers)
    counts = [0] * 64
    counts[0] = served - 3 * served // 100
    counts[int(late_ns).bit_length()] += 3 * served // 100
    return Epoch(number * EPOCH_NS, (number + 1) * EPOCH_NS, tdf, min(1.0, load / float(tdf)), [counts])


def follow(policy: Policy, load: Load, epochs: int, *, start: int = 1, spins: bool = False) -> list[Epoch]:
    """The epochs of a run with such a load; what spins takes all CPU and brings no timers."""
    seen, tdf = [], Fraction(start)
    for number in range(epochs):
        late_ns = LATE_HOST_NS / float(tdf)
        timers = 1e4 * load(number) if spins else None
        wanted = 1e9 if spins else load(number)
        seen.append(epoch(number, tdf, wanted, timers=timers, late_ns=late_ns))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    return seen


def tdfs(seen: list[Epoch]) -> list[float]:
    return [float(one.tdf) for one in seen]


def changes(seen: list[Epoch]) -> int:
    return sum(before.tdf != after.tdf for before, after in pairwise(seen))


def step(number: int) -> float:
    """One, then eleven times as much, then one again: figure 5 of PADS'15."""
    return 11.0 if 20 <= number < 60 else 1.0


def test_a_step_of_load_is_met_in_as_many_epochs_as_doublings_and_left_after_a_calm_while() -> None:
    seen = follow(Lateness(LIMITS), step, 120)
    met = next(number for number in range(20, 60) if seen[number].busy <= 0.9)
    assert met - 20 <= 4, "from 2.9, as lateness asks for, to 11 are two doublings"
    assert all(one.busy <= 0.9 for one in seen[met:])
    assert changes(seen[met:60]) <= 2
    assert min(tdfs(seen)[60 : 60 + CALM_EPOCHS]) == tdfs(seen)[59], "it waits"
    assert tdfs(seen)[-1] <= 1.25 * tdfs(seen)[19], "a fifth less is not worth a fall"


def test_the_policy_of_pads15_meets_the_same_step_later() -> None:
    ours, theirs = (follow(policy, step, 60, start=3) for policy in (Lateness(LIMITS), Pads15(LIMITS)))
    saturated = [sum(one.busy > 0.9 for one in seen[20:]) for seen in (ours, theirs)]
    assert 0 < saturated[0] < saturated[1]
    assert theirs[-1].busy == pytest.approx(0.7, abs=0.15)


def test_a_ramp_is_followed_within_bounds() -> None:
    seen = follow(Lateness(LIMITS), lambda number: 1 + number / 5, 200)
    assert sum(one.busy > 0.9 for one in seen) <= 2
    # The least that would do is the load itself: at most twice of that is spent.
    assert sum(tdfs(seen)) < 2 * sum(1 + number / 5 for number in range(200))


@pytest.mark.parametrize(
    ("before", "busy", "room_for"), [(0.7, 0.9, 1.1), (0.85, 0.9, 0.95), (0.95, 0.9, 0.9), (0.96, 0.9, 0.9)]
)
def test_where_the_tdf_rises_for_work_there_is_room_for_as_much_growth_again(
    before: float, busy: float, room_for: float
) -> None:
    earlier = epoch(0, Fraction(10), 10 * before)
    _, decision = Lateness(LIMITS, before=earlier).decide(epoch(1, Fraction(10), 10 * busy))
    assert decision.tdf == pytest.approx(10 * room_for / LIMITS.target, rel=0.02)


def test_growth_alone_is_no_reason_to_rise() -> None:
    _, decision = Lateness(LIMITS, before=epoch(0, Fraction(10), 2.0)).decide(epoch(1, Fraction(10), 7.6))
    assert decision.tdf == 10


@pytest.mark.parametrize(("tdf", "load"), [(20, 30.0), (10, 8.0)], ids=["saturated", "lower TDF"])
def test_what_is_done_because_more_can_be_done_is_no_growth(tdf: int, load: float) -> None:
    _, decision = Lateness(LIMITS, before=epoch(0, Fraction(tdf), load)).decide(epoch(1, Fraction(20), 18.0))
    assert decision.tdf == pytest.approx(18 / LIMITS.target, rel=0.02)


@pytest.mark.parametrize(("before", "risen"), [(0.76, 1.24 / 0.7), (0.6, 1.4 / 0.7), (0.2, 1.8 / 0.7)])
def test_a_saturated_cpu_is_given_room_for_as_much_growth_again_and_then_twice_as_much(
    before: float, risen: float
) -> None:
    policy, decision = Lateness(LIMITS).decide(epoch(0, Fraction(10), 10 * before))
    assert decision.tdf == 10
    policy, decision = policy.decide(epoch(1, Fraction(10), 100.0))
    assert decision.tdf == pytest.approx(10 * risen, rel=0.02)
    _, decision = policy.decide(epoch(2, decision.tdf, 100.0))
    assert decision.tdf == pytest.approx(20 * risen, rel=0.02)


def test_a_tdf_that_somebody_has_set_far_too_low_is_no_load_that_fell() -> None:
    policy, _ = Lateness(LIMITS).decide(epoch(0, Fraction(50), 40.0))
    _, decision = policy.decide(epoch(1, Fraction(2), 40.0))
    assert decision.tdf == rounded_up(2 / LIMITS.target)


def test_a_burst_of_one_epoch_costs_calm_epochs_and_no_more() -> None:
    seen = follow(Lateness(LIMITS), lambda number: 8.0 if number == 20 else 1.0, 60)
    raised = sum(tdf > 1.25 * tdfs(seen)[19] for tdf in tdfs(seen))
    assert CALM_EPOCHS <= raised <= 2 * CALM_EPOCHS


def test_a_sawtooth_faster_than_calm_keeps_what_its_peaks_need() -> None:
    seen = follow(Lateness(LIMITS), lambda number: 1.0 + number % (CALM_EPOCHS - 2), 200)
    assert all(one.busy <= 0.9 for one in seen[20:])
    assert changes(seen[20:]) == 0


def test_what_spins_is_given_up_and_tried_again_ever_more_rarely() -> None:
    seen = follow(Lateness(LIMITS), lambda _: 1.0, 700, start=3, spins=True)
    assert max(tdfs(seen)) <= 12
    assert sum(tdfs(seen)) < 1.05 * 3 * len(seen)


def test_a_few_timers_more_are_not_the_networks() -> None:
    """A program spins; the kernel's own timers are the only ones, and the first epoch began in the middle of a tick."""
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(1), []
    for number, timers in enumerate([17, 21, 21, 20]):
        seen.append(epoch(number, tdf, 1e9, timers=timers))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert tdfs(seen) == [1, 2, 2.5, 1]


def test_a_rise_that_does_not_let_the_network_do_more_is_followed_by_a_quarter_only() -> None:
    """Three flows begin, whose programs take the more the faster the CPU is; as seen of `examples/adaptive`."""
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(12), []
    for number, (busy, timers) in enumerate([(0.72, 22967), (0.98, 45919), (1.0, 58229), (0.96, 59656), (0.7, 66273)]):
        seen.append(epoch(number, tdf, busy * float(tdf), timers=timers))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert tdfs(seen) == [
        12,
        12,
        pytest.approx(21.3, rel=0.03),
        pytest.approx(42.6, rel=0.03),
        pytest.approx(53.3, rel=0.03),
    ]
    assert tdf == seen[-1].tdf


@pytest.mark.parametrize(("timers", "goes_back"), [(5102, True), (6100, False)], ids=["less", "as much"])
def test_rises_without_which_the_network_does_less_were_not_in_vain(timers: int, goes_back: bool) -> None:
    """Two more flows begin on a slow host; as seen of the step in `benches/adaptive.py`."""
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(99, 10), []
    for number, (busy, count) in enumerate([(0.93, 3690), (1.0, 5802), (1.0, 6119), (1.0, 6284), (1.0, timers)]):
        seen.append(epoch(number, tdf, busy * float(tdf), timers=count))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    top, back = seen[-2].tdf, seen[-1].tdf
    assert back < top, "two rises by a quarter that brought little are taken back"
    assert tdf == (2 * top if goes_back else back)


def test_lateness_is_answered_also_while_programs_spin() -> None:
    late = epoch(0, Fraction(3), 1e9, timers=1e4, late_ns=30_000)
    _, decision = Lateness(LIMITS, rest=REST_EPOCHS, before=late).decide(late)
    # The third of a hundred is in the bin that ends at 32.8 us; a fourth more than 3 times that over 10 us.
    assert decision.wanted > 9
    assert decision.tdf == 6
    assert "later than" in decision.reason


@pytest.mark.parametrize("stall_host_ns", [2_000_000, 50_000_000])
def test_a_stall_of_the_host_costs_at_most_twice_the_tdf_for_a_calm_while(stall_host_ns: int) -> None:
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(4), []
    for number in range(40):
        late_ns = (stall_host_ns if number == 20 else LATE_HOST_NS) / float(tdf)
        seen.append(epoch(number, tdf, 2.8, late_ns=late_ns))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    before = tdfs(seen)[20]
    assert max(tdfs(seen)) == 2 * before
    assert sum(tdf > 1.1 * before for tdf in tdfs(seen)) == CALM_EPOCHS
    assert tdfs(seen)[-1] <= 1.1 * before


def test_lateness_that_lasts_is_answered_by_doublings_until_it_is_in_bounds() -> None:
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(2), []
    for number in range(20):
        # What a host ten times as slow as the ordinary one needs is 25, and 31 with the bins and the margin.
        seen.append(epoch(number, tdf, 1.0, late_ns=10 * LATE_HOST_NS / float(tdf) if number else 0.0))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert tdfs(seen)[:6] == [2, 2, 4, 8, 16, pytest.approx(28, rel=0.2)]
    assert len(set(tdfs(seen)[7:])) == 1


@pytest.mark.parametrize(("slower", "tdf"), [(3, 7.5), (10, 16), (100, 16)])
def test_the_first_epoch_corrects_what_was_reckoned_for_an_ordinary_host(slower: int, tdf: float) -> None:
    _, decision = Lateness(LIMITS).decide(epoch(0, Fraction(2), 1.0, late_ns=slower * LATE_HOST_NS / 2))
    assert decision.tdf == pytest.approx(tdf, rel=0.1), "eight times as much at most, of what may be a stall"


def shared(number: int, tdf: Fraction, forwarding: float, shares: float, *, timers: float = 1e3) -> Epoch:
    """What a guest shows that forwards first, and whose nodes would take `shares` of the rest."""
    had = min(shares, max(0.0, float(tdf) - forwarding))
    seen = epoch(number, tdf, forwarding + shares, timers=timers)
    return replace(seen, share_lost=1 - had / shares, lacked=shares - had)


def test_nodes_that_lose_their_shares_are_given_them_at_once_also_while_saturation_is_not_answered() -> None:
    starved = shared(0, Fraction(7, 5), 1.3, 0.5)
    assert starved.busy == 1.0 and starved.share_lost > 0.7
    _, decision = Lateness(LIMITS, rest=REST_EPOCHS, vain_timers_per_s=1e9).decide(starved)
    assert 1.8 / 0.7 <= decision.tdf <= 1.1 * 1.8 / 0.7
    assert "lacked 80% of their CPUs" in decision.reason


@pytest.mark.parametrize("forwarding", [0.1, 1.0, 10.0])
def test_a_step_of_the_shares_that_are_used_is_met_in_two_epochs_with_at_most_twice_what_it_needs(
    forwarding: float,
) -> None:
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(1), []
    for number in range(80):
        seen.append(shared(number, tdf, forwarding, 8.0 if 20 <= number < 60 else 0.2))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert sum(one.share_lost > 0 for one in seen[20:60]) <= 2
    assert max(tdfs(seen)) <= 2 * (forwarding + 8.0)
    assert tdfs(seen)[-1] <= 0.55 * tdfs(seen)[59], "and it falls when they are not used any more"


def test_what_shares_lose_now_and_then_brings_them_room_until_it_is_half_of_what_passes() -> None:
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(5), []
    for number in range(400):
        lost = 0.5 / float(tdf) if number % 6 == 5 else 0.0
        seen.append(replace(epoch(number, tdf, 2.0), share_lost=lost))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert set(tdfs(seen)[:7]) == {5}, "once is chance"
    assert sum(one.share_lost for one in seen[-120:]) / 120 == pytest.approx(0.005, rel=0.2)
    assert changes(seen) < 20


def test_flows_whose_programs_took_all_of_the_cpu_as_they_started_are_not_taken_for_what_spins() -> None:
    policy: Policy = Lateness(LIMITS)
    tdf, seen = Fraction(3), []
    for number in range(60):
        # Three epochs of starting bring no timers; then there are eleven host seconds of packets in a virtual second.
        starts, load = number in range(10, 13), 1.0 if number < 13 else 11.0
        timers = 1e4 * min(load, float(tdf))
        seen.append(epoch(number, tdf, 1e9 if starts else load, timers=timers))
        policy, decision = policy.decide(seen[-1])
        tdf = decision.tdf
    assert all(one.busy <= 0.9 for one in seen[18:])


def test_few_timers_say_nothing_of_lateness() -> None:
    _, decision = Lateness(LIMITS).decide(epoch(0, Fraction(3), 2.0, timers=99, late_ns=1e9))
    assert (decision.tdf, decision.reason) == (3, "")


@pytest.mark.parametrize(("late_ns", "falls"), [(30_000, False), (1_000, True)])
def test_few_timers_that_are_late_keep_the_tdf_from_falling(late_ns: float, falls: bool) -> None:
    policy: Policy = Lateness(LIMITS)
    for number in range(2 * CALM_EPOCHS):
        policy, decision = policy.decide(epoch(number, Fraction(3), 0.1, timers=50, late_ns=late_ns))
    assert (decision.tdf < 3) == falls


def test_a_load_beyond_the_highest_tdf_is_told() -> None:
    _, decision = Lateness(LIMITS).decide(epoch(0, LIMITS.most, 300.0))
    assert decision.tdf == LIMITS.most
    assert decision.wanted > LIMITS.most


@pytest.mark.parametrize("kind", [Lateness, Pads15])
@given(loads=st.lists(st.floats(0, 1e4), min_size=1, max_size=50), start=st.integers(1, 100))
def test_no_load_leads_beyond_the_limits(kind: type[Lateness | Pads15], loads: list[float], start: int) -> None:
    seen = follow(kind(LIMITS), lambda number: loads[number], len(loads), start=start)
    assert all(LIMITS.least <= one.tdf <= LIMITS.most for one in seen)


@pytest.mark.parametrize("kind", [Lateness, Pads15])
@given(epochs=st.lists(st.tuples(st.floats(0.1, 1000), st.floats(0, 1e4), st.floats(0, 1e9)), max_size=50))
def test_whatever_tdf_somebody_gives_a_run_each_epoch_leads_within_the_limits_or_to_no_change(
    kind: type[Lateness | Pads15], epochs: list[tuple[float, float, float]]
) -> None:
    policy: Policy = kind(LIMITS)
    for number, (tdf, load, late_ns) in enumerate(epochs):
        policy, decision = policy.decide(epoch(number, rounded_up(tdf), load, late_ns=late_ns))
        assert LIMITS.least <= decision.tdf <= LIMITS.most or decision.tdf == rounded_up(tdf)


@given(load=st.floats(0.5, 60), noise=st.lists(st.floats(-0.05, 0.05), min_size=100, max_size=100))
def test_a_steady_load_with_noise_does_not_make_the_tdf_swing(load: float, noise: list[float]) -> None:
    seen = follow(Lateness(LIMITS), lambda number: load * (1 + noise[number]), 100)
    # The highest epochs may come late, and after a while without them a fall; but no rise after that.
    steps = [after - before for before, after in pairwise(tdfs(seen[20:])) if after != before]
    assert all(step < 0 for step, before in zip(steps[1:], steps, strict=False) if before < 0), "rises, then falls"
    assert len(steps) <= 2
    assert seen[-1].busy <= 0.9


@given(st.floats(1e-6, 1e6))
def test_rounding_up_keeps_three_digits(tdf: float) -> None:
    rounded = rounded_up(tdf)
    assert tdf * 0.999999 <= rounded <= tdf * 1.011
    assert float(f"{float(rounded):.2e}") == pytest.approx(float(rounded))


WAIT_NS = 1_000_000
PATIENT = Network(wait_ns_max=WAIT_NS, wait_path="a and b", wait_why="a round trip takes 4 ms", frame_ns_min=10_000.0)


def waiting(number: int, tdf: Fraction, host_ns: int, interrupts: int = 1000, jobs: int = 0) -> Epoch:
    """An epoch of a CPU that is hardly busy, but for which programs waited ten times so long without a pause, with so
    many interrupts in all, or so many of whose jobs took that long."""
    length_ns = round(host_ns / tdf)
    counts, totals_ns, asked, long = ([0] * 64 for _ in range(4))
    in_bin = length_ns.bit_length()
    counts[in_bin], totals_ns[in_bin], asked[in_bin], long[in_bin] = 10, 10 * length_ns, interrupts, jobs
    told = Waits(BusyPeriods(counts, totals_ns, asked), interrupts, long)
    waits = [Patience(PATIENT, told), Patience(Network(), Waits(told.stretches, interrupts))]
    return replace(epoch(number, tdf, 0.3), waits=waits, drive="work")


def test_the_tdf_rises_until_programs_wait_for_no_longer_than_anybody_notices_and_stays_there() -> None:
    policy, tdf, trace, said = Lateness(LIMITS), Fraction(1), [], []
    for number in range(30):
        seen = waiting(number, tdf, 8_000_000)
        following, decision = policy.decide(seen)
        policy, tdf = following, decision.tdf
        trace.append(tdf)
        said.append(decision.reason)
    assert trace[0] == Fraction(597, 100), "enough, if fewer came in shorter stretches; but as many come as before"
    assert len(set(trace)) <= 3 and waiting(0, trace[-1], 8_000_000).judge(PATIENT).level == "valid"
    assert trace[-1] < 10, "and for no more than is needed"
    expected = "86.8 % of what happened may have waited for the CPU for more than 1 ms, the patience of a and b"
    assert said[0].startswith(expected)


def test_waits_that_come_later_double_the_tdf_with_every_epoch_and_it_falls_when_they_have_gone() -> None:
    policy, tdf, trace = Lateness(LIMITS), Fraction(2), []
    for number in range(60):
        following, decision = policy.decide(waiting(number, tdf, 30_000_000 if 5 <= number < 20 else 100_000))
        policy, tdf = following, decision.tdf
        trace.append(tdf)
    assert [trace[number] for number in (4, 5, 6, 7)] == [2, 4, 8, 16]
    assert 28 <= trace[10] <= 40 and set(trace[9:19]) == {trace[10]}
    assert trace[-1] <= 2


def test_the_tdf_rises_for_what_programs_themselves_take_too_long_for() -> None:
    seen = waiting(0, Fraction(2), 16_000_000, interrupts=0, jobs=100)
    _, decision = Lateness(LIMITS).decide(seen)
    # Up to 16.8 ms of the host in the bin, within 1/20 of 1 ms below it; twice the patience is 2 ms.
    assert 7 <= decision.tdf <= 10
    assert decision.reason.startswith("100 % of what programs were woken up for took them more than 2 ms, 2 times the")


@pytest.mark.parametrize(("drive", "rises"), [("work", False), ("wall", True)])
def test_timers_that_move_no_packet_are_not_asked_for_where_it_is_known_who_waits(drive: str, rises: bool) -> None:
    counts = epoch(0, Fraction(2), 1.0, late_ns=1_000_000).lateness_counts
    late = replace(waiting(0, Fraction(2), 1_000), lateness_counts=counts, drive=drive)
    assert (Lateness(LIMITS).decide(late)[1].tdf > 2) == rises
    assert (late.judge(PATIENT).level != "valid") == rises


@given(
    host_ns=st.integers(1, 10**9), interrupts=st.integers(0, 1000), jobs=st.integers(0, 100), tdf=st.integers(1, 100)
)
def test_the_policy_asks_for_more_exactly_where_the_verdict_on_a_run_does(
    host_ns: int, interrupts: int, jobs: int, tdf: int
) -> None:
    seen = waiting(0, Fraction(tdf), host_ns, interrupts, jobs)
    told = seen.waits[0].told
    assert isinstance(told, Waits)
    reasons = judge(PATIENT, Observation("work", float(tdf), waits=told)).reasons
    assert bool(reasons) == (seen.tdf_for_waits > tdf)
    assert bool(reasons) == (seen.judge(PATIENT).level != "valid")
    faster = replace(told, speed=seen.tdf_for_waits / tdf * 1.0001) if reasons else told
    assert not judge(PATIENT, Observation("work", 1.0, waits=faster)).reasons


@pytest.mark.parametrize(
    "seen",
    [
        waiting(0, Fraction(4), 200_000_000, interrupts=20),
        replace(waiting(0, Fraction(4), 200_000_000), busy=1.0),
        replace(waiting(0, Fraction(4), 200_000_000), waits=()),
        replace(waiting(0, Fraction(4), 200_000_000), waits=waiting(0, Fraction(4), 200_000_000).waits[1:]),
    ],
    ids=["of programs that start", "of a saturated CPU", "unknown", "of nobody who talks"],
)
def test_waits_that_tell_nothing_do_not_ask_for_more(seen: Epoch) -> None:
    assert Lateness(LIMITS).decide(seen)[1] == Lateness(LIMITS).decide(replace(seen, waits=()))[1]


def test_where_the_kernel_does_not_tell_who_waits_busy_periods_ask_for_more() -> None:
    seen = waiting(0, Fraction(4), 200_000_000)
    told = seen.waits[0].told
    assert isinstance(told, Waits)
    unknown = replace(seen, waits=[Patience(PATIENT, told.stretches)])
    assert Lateness(LIMITS).decide(unknown)[1].tdf == 32
    assert unknown.judge(PATIENT).level == "suspect" and not unknown.keeps_instants
