"""What is out of bounds, what is told of it and when, and what a run is begun again with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pytest

from dilaton.host.counters import Busy, Contention, Counters, Late, Shares, Stretch
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.patience import Patience
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.model import Plan
from dilaton.plan.network.bounds import network_of
from dilaton.run.adaptive.epoch import COLUMNS, GUEST_TIMERS_MIN, TIMERS_MIN, Epoch
from dilaton.run.adaptive.ledger import Ledger, Span
from dilaton.run.adaptive.meter import STRETCH_MAX, Meter, Watched, watched
from dilaton.run.adaptive.retry import replanned
from dilaton.run.adaptive.watch import Watch, explain
from dilaton.run.record.model import ReasonRecord, VerdictRecord
from tests.unit.measure.made import plan

VALID = VerdictRecord(level="valid", reasons=[])
WAITED = ReasonRecord(level="suspect", what="it waited", value=0.2, bound=0.05, unit="ratio", advice="raise tdf to 20")
SUSPECT = VerdictRecord(level="suspect", reasons=[WAITED])

EPOCH_NS = 100_000_000
LAB = "name: x\nnodes: {{a: , b: }}\nlinks: [{{endpoints: [a, b], delay: 1ms}}]\ntime: {time}\n"


def planned(time: str) -> Plan:
    return plan(LAB.format(time=time))


def epoch(number: int, tdf: int, *, busy: float = 0.5, late_ns: int = 0) -> Epoch:
    counts = [0] * 64
    counts[late_ns.bit_length()] = 1000
    return Epoch(number * EPOCH_NS, (number + 1) * EPOCH_NS, Fraction(tdf), busy, [counts])


def watch(time: str) -> Watch:
    made = planned(time)
    return Watch([], made.time, network_of(made))


@dataclass
class Guest:
    """A guest that has counted what a test says."""

    seen: Counters = field(default_factory=Counters)

    def count(self, *, late_in: int = 0, timers: int = 0, **counters: Any) -> None:
        """Changes counters; `timers` more were served, their lateness in the bin `late_in`."""
        counts = list(self.seen.timers.counts)
        counts[late_in] += timers
        self.seen = replace(self.seen, timers=Late(counts), **counters)

    def reached_ns(self) -> int:
        return self.seen.virtual_ns

    def counters(self) -> Counters:
        return self.seen


def test_an_epoch_is_over_when_its_virtual_time_has_passed_and_it_has_timers() -> None:
    guest = Guest()
    meter = Meter([Watched(guest)], EPOCH_NS, Fraction(2))
    assert meter.take(Fraction(2)) is None
    guest.count(virtual_ns=EPOCH_NS, idle_ns=EPOCH_NS // 4)
    assert meter.take(Fraction(2)) is None, "it has no timers yet"
    guest.count(timers=TIMERS_MIN, late_in=3)
    seen = meter.take(Fraction(2))
    assert seen is not None
    assert (seen.begin_ns, seen.end_ns, seen.busy, seen.work, seen.timers) == (0, EPOCH_NS, 0.75, 1.5, TIMERS_MIN)
    assert meter.take(Fraction(2)) is None


def bins(first: int, second: int) -> list[int]:
    return [first, second, *[0] * 62]


def test_the_busy_periods_of_an_epoch_are_those_since_the_one_before() -> None:
    def periods(first: int, second: int) -> Busy:
        return Busy(*(bins(first, second) for _ in range(3)))

    guest = Guest(Counters(busy=periods(7, 5)))
    meter = Meter([Watched(guest)], EPOCH_NS, Fraction(1))
    guest.count(virtual_ns=EPOCH_NS, timers=TIMERS_MIN, busy=periods(8, 9))
    seen = meter.take(Fraction(1))
    assert seen is not None
    assert [each.told for each in seen.waits] == [BusyPeriods(bins(1, 4), bins(1, 4), bins(1, 4))]


def test_where_the_kernel_tells_the_waits_and_jobs_of_an_epoch_are_those_since_the_one_before() -> None:
    def contention(first: int, second: int) -> Contention:
        return Contention(*(bins(first, second) for _ in range(3)), bins(second, first), [Stretch(0, 9)])

    def busy(interrupts: int) -> Busy:
        return Busy(interrupts=bins(interrupts, 0))

    guest, network = Guest(Counters(contention=contention(7, 5), busy=busy(20))), network_of(planned("{}"))
    meter = Meter([Watched(guest, network=network)], EPOCH_NS, Fraction(1), "work")
    guest.count(virtual_ns=EPOCH_NS, timers=TIMERS_MIN, contention=contention(8, 9), busy=busy(50))
    seen = meter.take(Fraction(1))
    assert seen is not None and seen.keeps_instants
    stretches = BusyPeriods(bins(1, 4), bins(1, 4), bins(1, 4))
    assert seen.waits == [Patience(network, Waits(stretches, 30, bins(4, 1)))]


def test_an_epoch_with_few_timers_ends_all_the_same() -> None:
    guest = Guest()
    meter = Meter([Watched(guest)], EPOCH_NS, Fraction(1))
    guest.count(virtual_ns=STRETCH_MAX * EPOCH_NS)
    seen = meter.take(Fraction(1))
    assert seen is not None and seen.timers == 0 and seen.busy == 1.0


def test_an_epoch_begins_anew_when_somebody_changes_the_tdf() -> None:
    guest = Guest()
    meter = Meter([Watched(guest)], EPOCH_NS, Fraction(1))
    guest.count(virtual_ns=STRETCH_MAX * EPOCH_NS)
    assert meter.take(Fraction(5)) is None
    assert meter.take(Fraction(5)) is None
    guest.count(virtual_ns=2 * STRETCH_MAX * EPOCH_NS)
    assert (seen := meter.take(Fraction(5))) is not None and seen.begin_ns == STRETCH_MAX * EPOCH_NS


def test_of_several_guests_the_busiest_counts_and_all_timers_do() -> None:
    guest, other = Guest(), Guest()
    meter = Meter([Watched(guest), Watched(other)], EPOCH_NS, Fraction(1))
    for each, idle in ((guest, 9), (other, 2)):
        each.count(virtual_ns=EPOCH_NS, idle_ns=EPOCH_NS * idle // 10, timers=TIMERS_MIN, late_in=1)
    seen = meter.take(Fraction(1))
    assert seen is not None and seen.busy == pytest.approx(0.8) and seen.timers == 2 * TIMERS_MIN


@pytest.mark.parametrize(("timers", "late_us"), [(GUEST_TIMERS_MIN, 128.4), (GUEST_TIMERS_MIN - 1, 0.0)])
def test_of_several_guests_the_latest_counts_if_it_has_served_enough(timers: int, late_us: float) -> None:
    counts = [[0] * 64 for _ in range(2)]
    counts[0][0] = 99 * GUEST_TIMERS_MIN
    counts[1][17] = timers // 2
    counts[1][0] = timers - timers // 2
    seen = replace(epoch(0, 1), lateness_counts=counts)
    assert seen.timers == 99 * GUEST_TIMERS_MIN + timers
    assert seen.late_ns == pytest.approx(1e3 * late_us, rel=0.05)
    assert (seen.judge(network_of(planned("{}"))).level == "valid") == (late_us == 0)


def test_what_nodes_lack_is_what_they_lost_but_no_more_than_their_shares() -> None:
    guest = Guest()
    meter = Meter([Watched(guest, shares=0.5)], EPOCH_NS, Fraction(1))
    seen = []
    # Two nodes of a quarter of a core each, and then one of them is told that it has lost a second.
    for number, (work_ms, busy_ms, lost_ms) in enumerate([(15, 60, 0), (30, 120, 40), (30, 120, 1040)], 1):
        work_ns, busy_ns, lost_ns = (1_000_000 * value_ms for value_ms in (work_ms, busy_ms, lost_ms))
        shares = Shares(work_ns, busy_ns=busy_ns, lost_ns=lost_ns)
        guest.count(virtual_ns=number * EPOCH_NS, timers=TIMERS_MIN, shares=shares)
        epoch_seen = meter.take(Fraction(1))
        assert epoch_seen is not None
        seen.append((epoch_seen.share_lost, epoch_seen.lacked))
    assert seen == [(0.0, 0.0), (0.4, pytest.approx(0.1)), (1.0, 0.5)]


def test_what_nodes_have_of_a_guest_is_the_sum_of_their_shares() -> None:
    lab = plan("name: x\ntime: {tdf: 2}\nnodes: {a: {cpu: 1/4}, b: {cpu: 0.5}, c: }\n")
    assert [guest.shares for guest in watched(lab, [Guest()])] == [0.75]


def test_a_guest_with_a_cpu_of_its_own_is_not_followed_unless_all_are() -> None:
    own = "name: x\ntime: {{tdf: 2}}\nguests: per-node\nnodes: {{a: {{cpu: 1/4}}, b: {}}}\n"
    guests = [Guest(), Guest(Counters(virtual_ns=5))]
    assert [each.guest for each in watched(plan(own.format("")), guests)] == guests[1:]
    assert [each.guest for each in watched(plan(own.format("{cpu: 2}")), guests)] == guests


def test_nodes_that_lost_their_shares_make_an_epoch_out_of_bounds() -> None:
    made = planned("{tdf: auto}")
    starved = replace(epoch(0, 2), share_lost=0.2)
    assert starved.judge(network_of(made)).level == "invalid"


def test_a_row_has_a_value_for_every_column() -> None:
    assert len(epoch(0, 1).row(in_bounds=True).split(",")) == len(COLUMNS.split(","))


def test_the_share_out_of_bounds_and_the_mean_tdf_are_of_virtual_time() -> None:
    seen = watch("{tdf: auto}")
    for number, (tdf, busy) in enumerate([(1, 0.5), (1, 1.0), (2, 1.0), (4, 0.5)]):
        seen.step(epoch(number, tdf, busy=busy))
    summary = seen.summary()
    assert (summary.epochs, summary.tdf_mean, summary.out_of_bounds_share) == (4, 2.0, 0.5)
    assert [(span.begin_s, span.end_s) for span in summary.out_of_bounds] == [(0.1, 0.3)]


@pytest.mark.parametrize(("busy", "out_epochs"), [(0.002, 3), (0.05, 51), (0.9995, 1000)])
def test_of_an_idle_stretch_no_more_is_out_of_bounds_than_its_work_and_an_epoch(busy: float, out_epochs: int) -> None:
    seen = watch("{tdf: auto}")
    seen.step(replace(epoch(0, 1, busy=busy, late_ns=100_000), end_ns=1000 * EPOCH_NS))
    assert seen.summary().out_of_bounds_share == pytest.approx(out_epochs / 1000)


@pytest.mark.parametrize("policy", ["hold", "fail"])
def test_one_epoch_out_of_bounds_is_no_violation_and_two_are_told_once(policy: str) -> None:
    seen = watch(f"{{tdf: auto, on_violation: {policy}}}")
    told = []
    for number, busy in enumerate([1.0, 0.5, 1.0, 1.0, 1.0, 0.5]):
        seen.step(epoch(number, 1, busy=busy))
        told.append(seen.due())
    assert [bool(span) for span in told] == [False, False, False, True, False, False]


def test_to_run_again_a_violation_is_told_when_it_is_over_with_the_tdf_that_ended_it() -> None:
    seen = watch("{tdf: auto, on_violation: retry}")
    told = []
    for number, (tdf, busy) in enumerate([(1, 1.0), (2, 1.0), (4, 1.0), (8, 0.6)]):
        seen.step(epoch(number, tdf, busy=busy))
        told.append(seen.due())
    assert told[:3] == [None, None, None]
    assert told[3] is not None and (told[3].begin_ns, told[3].tdf_needed) == (0, 8)


def test_a_violation_that_lasts_to_the_end_of_the_run_is_told_there() -> None:
    seen = watch("{tdf: auto, on_violation: retry}")
    for number in range(2):
        seen.step(epoch(number, 1, busy=1.0))
    assert seen.due() is None
    assert (span := seen.last_due(VALID)) is not None and span.tdf_needed == 2


def test_of_a_run_that_is_not_valid_as_a_whole_the_epoch_that_needed_most_is_told() -> None:
    seen = watch("{tdf: auto, on_violation: retry}")
    for number, busy in enumerate([0.5, 1.0, 0.5]):
        seen.step(epoch(number, 1, busy=busy))
    assert seen.last_due(VALID) is None
    assert (span := seen.last_due(SUSPECT)) is not None and span.tdf_needed == Fraction(188, 100)


def test_a_run_that_waited_as_a_whole_is_told_with_the_tdf_that_this_needed() -> None:
    seen = watch("{tdf: auto, on_violation: retry}")
    for number, busy in enumerate([0.5, 1.0, 0.5]):
        seen.step(epoch(number, 1, busy=busy))
    waited = VerdictRecord(level="suspect", reasons=[WAITED.model_copy(update={"tdf": 20.0})])
    assert (span := seen.last_due(waited)) is not None
    assert (span.begin_ns, span.end_ns, span.what, span.tdf_needed) == (0, seen.ledger.virtual_ns, "it waited", 20)
    assert explain(span).endswith("; it needs more than tdf 1")
    less = VerdictRecord(level="suspect", reasons=[WAITED.model_copy(update={"tdf": 1.5})])
    assert (span := seen.last_due(less)) is not None and span.tdf_needed == Fraction(188, 100)


def test_a_run_does_not_begin_again_with_what_a_stall_of_the_host_would_have_needed() -> None:
    seen = watch("{tdf: auto, on_violation: retry}")
    for number, late_ns in enumerate([0, 50_000_000, 0, 100_000, 100_000, 0]):
        seen.step(epoch(number, 4, late_ns=late_ns))
        seen.due()
    stall, violation = seen.ledger.spans
    assert stall.tdf_needed > 1000 > violation.tdf_needed
    assert seen.last_due(SUSPECT) == violation


def test_a_tdf_that_cannot_rise_is_told_at_once_as_not_enough() -> None:
    seen = watch("{tdf: auto, auto: {max: 4}}")
    for number in range(2):
        assert seen.due() is None
        seen.step(epoch(number, 4, late_ns=100_000))
    span = seen.due()
    assert span is not None and 4 < span.tdf_needed < 100
    assert "1 % of timers were later than" in explain(span)
    assert explain(span).endswith("; it needs more than tdf 4")


def span(needed: int) -> Span:
    return Span(0, EPOCH_NS, "late", Fraction(1), Fraction(needed))


def test_a_run_is_begun_again_with_a_tdf_that_does_not_fall_below_what_was_needed() -> None:
    again = replanned(planned("{tdf: auto, on_violation: retry}"), span(8))
    assert again is not None and again.time.watch is not None
    assert (again.time.tdf.ratio, again.time.watch.least.ratio, again.time.watch.most.ratio) == (8, 8, 100)
    assert [guest.tdf for guest in again.guests] == [None]


def test_a_tdf_that_stays_is_replaced_by_another_that_stays() -> None:
    again = replanned(planned("{tdf: 3, on_violation: retry}"), span(800))
    assert again is not None and again.time.watch is not None
    assert {again.time.tdf.ratio, again.time.watch.least.ratio, again.time.watch.most.ratio} == {800}


@pytest.mark.parametrize("time", ["{tdf: auto, auto: {max: 5}, on_violation: retry}", "{tdf: 1, on_violation: fail}"])
def test_a_run_is_not_begun_again_beyond_its_highest_tdf_nor_unasked(time: str) -> None:
    assert replanned(planned(time), span(8)) is None


def test_a_ledger_without_epochs_has_no_shares() -> None:
    assert (Ledger(EPOCH_NS).tdf_mean, Ledger(EPOCH_NS).out_share) == (None, 0.0)
