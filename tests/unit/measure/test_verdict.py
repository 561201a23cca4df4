"""The verdict names every bound that was exceeded, with its number and what to do, and only those."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dilaton.measure.observation import Observation
from dilaton.measure.verdict import judge, judge_frames
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.together import Together
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.network.bounds import Network, network_of, on_drive
from tests.unit.measure.made import plan

GIGABIT = Network(delay_ns_min=1_000_000, delay_link="a:eth0", frame_ns_min=12_112.0, frame_link="b:eth0")
QUIET = Observation("wall", 1.0, [900, *[0] * 9, 100], 1000)
"""A tenth of the timers between 512 and 1024 ns late, all others on time."""


def histogram(**share_of_bin: int) -> list[int]:
    """Timers by bin, given as `b14=30`."""
    bins = [0] * 64
    for name, count in share_of_bin.items():
        bins[int(name[1:])] = count
    return bins


def late(**share_of_bin: int) -> Observation:
    """Timers by bin, the latest as late as its bin has any."""
    counts = histogram(**share_of_bin)
    highest = max(number for number, count in enumerate(counts) if count)
    return replace(QUIET, lateness_counts=counts, lateness_max_ns=2**highest - 1)


def test_a_run_that_was_in_time_is_valid() -> None:
    assert judge(GIGABIT, QUIET).level == "valid"
    assert judge(GIGABIT, QUIET).reasons == ()


@pytest.mark.parametrize(
    ("counts", "max_ns", "level", "what"),
    [
        ({"b0": 99_000, "b17": 900}, 130_000, None, ""),
        ({"b0": 90_000, "b14": 10_000}, 16_000, "suspect", "1.56 % of the delay of a:eth0"),
        ({"b0": 90_000, "b18": 10_000}, 250_000, "invalid", "24.9 % of the delay of a:eth0"),
        ({"b0": 100_000, "b24": 1}, 12_000_000, "suspect", "a frame from another guest was late by 12 ms"),
    ],
)
def test_late_frames_between_guests_are_judged_by_the_bounds_of_timers(
    counts: dict[str, int], max_ns: int, level: str | None, what: str
) -> None:
    far = Network(delay_ns_min=1_000_000, delay_link="a:eth0")
    found = judge_frames(far, replace(QUIET, drive="work"), histogram(**counts), max_ns)
    assert [(reason.level, what in reason.what) for reason in found] == ([(level, True)] if level else [])


def test_frames_that_are_later_than_a_frame_takes_came_in_bursts() -> None:
    near = Network(frame_ns_min=12_112.0, frame_link="b:eth0")
    (reason,) = judge_frames(near, QUIET, histogram(b0=90_000, b15=10_000), 32_000)
    assert reason.level == "suspect" and "a full frame takes 12.1 us on b:eth0" in reason.what
    (reason,) = judge_frames(near, QUIET, histogram(b0=10_000, b20=90_000), 1_000_000)
    assert reason.level == "invalid"


def test_a_second_that_is_too_much_for_the_cpu_spoils_a_run_that_idles_else() -> None:
    (reason,) = judge(GIGABIT, replace(QUIET, busy=0.5, busiest_second=0.95)).reasons
    assert (reason.level, reason.value, reason.bound) == ("suspect", 0.95, 0.9)
    assert "busy 95 % of its busiest second" in reason.what and reason.advice.startswith("raise tdf to 2")
    assert judge(GIGABIT, replace(QUIET, busy=0.5, busiest_second=0.9)).level == "valid"


@pytest.mark.parametrize(("virtual_s", "share", "level"), [(6, 0.2, "valid"), (4, 0.21, "valid"), (6, 0.21, "suspect")])
def test_epochs_out_of_bounds_for_more_than_a_fifth_of_virtual_time_are_suspect_from_a_second_on(
    virtual_s: int, share: float, level: str
) -> None:
    seen = replace(QUIET, out_share=share, virtual_ns=virtual_s * 10**9)
    assert judge(GIGABIT, seen).level == level


def test_the_advice_on_epochs_out_of_bounds_is_for_the_tdf_that_there_was() -> None:
    seen = replace(QUIET, out_share=0.26, virtual_ns=10**10)
    (fixed,), (adaptive,) = (judge(GIGABIT, each).reasons for each in (seen, replace(seen, is_adaptive=True)))
    assert "out of bounds for 26 % of virtual time" in fixed.what
    assert (fixed.advice, adaptive.advice) == ("raise tdf", "write on_violation: retry, or a higher min for auto")


def test_a_lab_without_links_has_nothing_to_be_late_for() -> None:
    assert judge(Network(), late(b20=100)).level == "valid"


def test_the_bounds_are_read_from_the_plan() -> None:
    network = network_of(
        plan(
            "name: x\nnodes: {a: , b: , c: }\nlinks:\n"
            "  - {endpoints: [a, b], rate: 1Gbit, delay: 5ms, b_to_a: {delay: 2ms}}\n"
            "  - {endpoints: [b, c], rate: 10Gbit, mtu: 9000}\n"
        )
    )
    assert (network.delay_ns_min, network.delay_link) == (2_000_000, "b:eth0")
    assert (network.frame_ns_min, network.frame_link) == (9014 * 8 / 10, "b:eth1")


def test_the_bounds_are_those_of_all_that_links_become() -> None:
    network = network_of(
        plan(
            "name: x\nnodes: {a: , b: , c: }\nlinks:\n"
            "  - {endpoints: [a, b], rate: 1Mbit, delay: 50ms}\n"
            "  - {endpoints: [b, c], trace: {schedule: [[0s, 1Mbit], [5s, 1Gbit]]}}\n"
            "changes: [{at: 1s, link: a -- b, delay: 3ms}, {at: 2s, link: a -- b, delay: 70ms}]\n"
        )
    )
    assert (network.delay_ns_min, network.delay_link) == (3_000_000, "a:eth0")
    assert (network.frame_ns_min, network.frame_link) == (1514 * 8, "b:eth1")


def test_offload_on_a_link_that_does_something_is_suspect_and_on_others_nothing() -> None:
    head = "name: x\nnodes: {a: , b: }\nlinks: [{endpoints: [a, b], offload: true"
    (reason,) = judge(network_of(plan(f"{head}, loss: 1%}}]\n")), QUIET).reasons
    assert (reason.level, reason.value, reason.bound) == ("suspect", 65536, 1500)
    assert reason.what == "a:eth0 and 1 more takes up to 64 KiB for one packet, as its link has offload: true"
    assert judge(network_of(plan(f"{head}}}]\n")), QUIET).level == "valid"


def test_lateness_beyond_a_hundredth_of_the_delay_is_suspect_and_beyond_a_tenth_invalid() -> None:
    slow = replace(GIGABIT, frame_ns_min=None)
    suspect = judge(slow, late(b0=95, b15=5))
    assert [reason.level for reason in suspect.reasons] == ["suspect"]
    assert "of the delay of a:eth0" in suspect.reasons[0].what
    assert suspect.reasons[0].bound == 10.0
    assert suspect.reasons[0].advice == "raise tdf to 5, or use the work drive"
    assert judge(slow, late(b0=95, b18=5)).level == "invalid"
    rare = judge(slow, late(b0=9950, b18=50))
    assert rare.level == "valid", "half a percent is less than one"


def test_what_is_very_late_is_told_in_plain_numbers() -> None:
    near = replace(GIGABIT, delay_ns_min=10_000, frame_ns_min=None)
    what = judge(near, late(b0=50, b22=50)).reasons[0].what
    assert re.match(r"1 % of timers were later than [\d.]+ ms, \d+ % of the delay", what)


def test_lateness_beyond_a_frame_is_suspect_and_of_most_beyond_ten_invalid() -> None:
    fast = Network(frame_ns_min=2422.0, frame_link="n0:eth0")
    few = judge(fast, replace(late(b0=90, b14=10), drive="work"))
    assert few.level == "suspect"
    assert "2.42 us on n0:eth0" in few.reasons[0].what
    assert few.reasons[0].advice == "raise tdf to 10"
    assert judge(fast, late(b0=40, b16=60)).level == "invalid"


def test_of_few_timers_none_is_told_to_be_later_than_the_latest() -> None:
    slow = replace(GIGABIT, frame_ns_min=None)
    few = late(b0=40, b16=8)
    (reason,) = judge(slow, replace(few, lateness_max_ns=54_000)).reasons
    assert reason.value == 54.0
    assert judge(replace(slow, delay_ns_min=6_000_000), replace(few, lateness_max_ns=54_000)).level == "valid"
    assert judge(replace(slow, delay_ns_min=6_000_000), few).level == "suspect"


def test_a_stall_is_told_when_it_is_longer_than_a_round_trip_and_a_tick() -> None:
    assert judge(GIGABIT, replace(QUIET, lateness_max_ns=9_000_000)).level == "valid"
    assert judge(GIGABIT, replace(QUIET, lateness_max_ns=30_000_000)).level == "suspect"
    far = replace(GIGABIT, delay_ns_min=20_000_000)
    assert judge(far, replace(QUIET, lateness_max_ns=30_000_000)).level == "valid"


FAR = Network(delay_ns_min=20_000_000, delay_link="a:eth0")


def test_stalls_that_few_timers_see_are_told_by_the_time_that_they_take() -> None:
    # Fifteen stalls of 30 ms in 10 s: shorter than the round trip, and one of ten thousand timers each.
    stalled = replace(QUIET, lateness_counts=histogram(b0=150_000, b25=15), lateness_max_ns=30_000_000)
    (reason,) = judge(FAR, replace(stalled, virtual_ns=10_000_000_000)).reasons
    assert (reason.level, reason.bound) == ("invalid", 0.01)
    assert 0.03 < reason.value < 0.04, "fourteen of 25 ms in the mean, as the largest is judged by itself"
    assert "packets that came due had to wait for more than 200 us, 1 % of the delay of a:eth0" in reason.what
    assert reason.advice == "raise tdf to 200, or use the work drive"
    shared = judge(FAR, replace(stalled, lateness_counts=histogram(b0=150_000, b25=1000), virtual_ns=10_000_000_000))
    assert shared.reasons[0].value == 1.0, "one stall that many timers saw takes no more than all of the time"


@pytest.mark.parametrize(
    "seen",
    [
        {"lateness_counts": histogram(b0=150_000, b25=1), "lateness_max_ns": 30_000_000},
        {"lateness_counts": histogram(b0=150_000, b16=50_000), "lateness_max_ns": 65_000},
        {"lateness_counts": histogram(b0=150_000, b25=15), "lateness_max_ns": 30_000_000, "drive": "work"},
    ],
    ids=["one stall", "ordinary wake-ups", "the work drive, where packets leave at their instants"],
)
def test_what_takes_no_time_from_packets_is_no_absence(seen: dict[str, object]) -> None:
    assert judge(FAR, replace(QUIET, virtual_ns=10_000_000_000, **seen)).level == "valid"


def test_a_busy_guest_is_suspect_and_the_advice_halves_its_load() -> None:
    verdict = judge(GIGABIT, replace(QUIET, drive="work", tdf=3.0, busy=0.97))
    assert verdict.level == "suspect"
    assert (verdict.reasons[0].value, verdict.reasons[0].bound) == (0.97, 0.9)
    assert verdict.reasons[0].advice.startswith("raise tdf to 10,")
    assert judge(GIGABIT, replace(QUIET, busy=0.9)).level == "valid"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"packets_dropped": (("a:eth0", 0), ("b:eth0", 7))}, "the capture of b:eth0 dropped 7 packets"),
        (
            {"captures_ended": (("a:eth0", "no space left"),)},
            "the capture of a:eth0 ended before the run: no space left",
        ),
        ({"samplings_ended": (("tcp", "no space left"),)}, "the samples of tcp ended before the run: no space left"),
        ({"samples_lost": 3}, "3 samples could not be taken"),
        ({"samples_lost": 1}, "1 sample could not be taken"),
        ({"spinning": ("a: loop 3",)}, "a: loop 3: used 5 s of CPU time without entering the kernel"),
    ],
)
def test_what_was_not_observed_or_not_repeatable_makes_a_run_suspect(seen: dict[str, object], said: str) -> None:
    verdict = judge(GIGABIT, replace(QUIET, **seen))
    assert verdict.level == "suspect"
    assert said in verdict.reasons[0].what


def test_the_worst_reason_comes_first_and_gives_the_level() -> None:
    verdict = judge(GIGABIT, replace(late(b20=100), busy=0.99))
    assert verdict.level == "invalid"
    assert [reason.level for reason in verdict.reasons] == ["invalid", "invalid", "suspect"]


def test_memory_that_was_short_is_told_with_its_node_and_what_the_kernel_did() -> None:
    shortages = (("a", "tcp", 3), ("b", "udp", 1), ("c", "node", 1), ("d", "guest", 2))
    reasons = judge(GIGABIT, replace(QUIET, shortages=shortages)).reasons
    assert [reason.level for reason in reasons] == ["suspect"] * 4
    assert [reason.what for reason in reasons] == [
        "TCP in a was short of memory 3 times: it may have dropped what no queue has, and sent less",
        "UDP in b was short of memory once, and dropped what no queue has",
        "the kernel ended a program in c, since its memory: was full",
        "the kernel ended 2 programs in d, since its guest's memory was full",
    ]
    assert reasons[0].advice == "write more memory: at a"


def test_programs_that_the_host_maps_no_more_memory_for_are_told_with_what_the_host_has_to_allow() -> None:
    reasons = judge(GIGABIT, replace(QUIET, shortages=(("left", "mappings", 1), ("right", "mappings", 2)))).reasons
    assert [reason.level for reason in reasons] == ["suspect"] * 2
    assert [reason.what.partition(",")[0] for reason in reasons] == [
        "the kernel of left ended a program",
        "the kernel of right ended 2 programs",
    ]
    assert "vm.max_map_count" in reasons[0].advice


PATIENT = Network(wait_ns_max=1_000_000, wait_path="a and b", wait_why="a round trip takes 1 ms")


def waiting(drive: str = "work", length_ns: int = 4_000_000, interrupts: int = 9000) -> Observation:
    """A hundred busy periods of so long, beside many short ones with a thousand interrupts."""
    number = length_ns.bit_length()
    counts, totals_ns, asked = histogram(), histogram(), histogram()
    counts[number], totals_ns[number], asked[number] = 100, 100 * length_ns, interrupts
    counts[14], totals_ns[14], asked[14] = 1000, 8_500_000, 1000
    return Observation(drive, 2.0, busy_periods=BusyPeriods(counts, totals_ns, asked))


@pytest.mark.parametrize("drive", ["work", "wall"])
def test_programs_that_waited_for_longer_than_their_path_minds_are_suspect_and_the_advice_is_enough(drive: str) -> None:
    (reason,) = judge(PATIENT, waiting(drive)).reasons
    assert (reason.level, reason.bound) == ("suspect", 0.05)
    assert reason.value == pytest.approx(0.75 * 8960 / 10_000)
    assert reason.what == (
        "67.2 % of what happened may have waited for the CPU for more than 1 ms, the patience of a and b, where a round "
        "trip takes 1 ms"
    )
    assert reason.advice == "raise tdf to 10, or write a cpu: for nodes that compute without a pause"
    assert judge(PATIENT, waiting(drive, 4_000_000 * 2 // 10)).level == "valid", "as it would be at that TDF"


def test_waits_that_nobody_can_notice_are_none() -> None:
    assert judge(PATIENT, waiting("event")).level == "valid"
    assert judge(PATIENT, replace(waiting(), own_tdf=("g",))).level == "valid", "as slow as the lab asks for"
    assert judge(PATIENT, waiting(interrupts=100)).level == "valid", "less than a twentieth of what happened"
    assert judge(Network(), waiting()).level == "valid"


def waits(
    length_ns: int = 0, interrupts: int = 0, jobs: Sequence[int] = (), longest: Sequence[tuple[int, int]] = ()
) -> Observation:
    """Of ten thousand interrupts so many in stretches of so long, a hundred in each, and jobs."""
    number = length_ns.bit_length()
    counts, totals_ns, asked = histogram(), histogram(), histogram()
    counts[number], asked[number] = interrupts // 100, interrupts
    totals_ns[number] = counts[number] * length_ns
    stretches = BusyPeriods(counts, totals_ns, asked)
    return replace(waiting(), waits=Waits(stretches, 10_000, jobs or histogram(b10=1000), longest))


def test_where_it_is_known_who_waited_a_guest_that_is_busy_keeps_nobody_waiting() -> None:
    assert judge(PATIENT, waiting()).level == "suspect"
    assert judge(PATIENT, waits()).level == "valid"
    (reason,) = judge(PATIENT, waits(4_000_000, 1000)).reasons
    assert reason.value == pytest.approx(0.075, rel=0.01)
    assert reason.what.startswith(
        "7.47 % of what happened may have waited for the CPU for more than 1 ms, the patience"
    )
    assert reason.advice.startswith("raise tdf to 5,")
    assert judge(PATIENT, waits(4_000_000, 600)).level == "valid", "less than a twentieth of what happened"


def test_a_program_may_take_twice_the_patience_for_what_it_is_woken_up_for() -> None:
    assert judge(PATIENT, waits(jobs=histogram(b21=100, b10=900))).level == "valid", "2 ms and less"
    (reason,) = judge(PATIENT, waits(jobs=histogram(b24=100, b10=900))).reasons
    assert reason.what == (
        "10 % of what programs were woken up for took them more than 2 ms, 2 times the patience of a and b, where a round "
        "trip takes 1 ms"
    )
    assert (reason.value, reason.bound, reason.tdf) == (0.1, 0.05, 20.0)
    assert judge(PATIENT, waits(jobs=histogram(b24=20, b10=100))).level == "valid", "of programs that start"


def test_a_tdf_that_nobody_can_wait_for_is_no_advice() -> None:
    (reason,) = judge(PATIENT, waits(jobs=histogram(b30=100, b10=900))).reasons
    assert reason.advice == (
        "write a cpu: for nodes that compute without a pause, as no tdf below 1000 is enough; or let run --confirm tell "
        "whether results depend on it"
    )


def test_what_a_program_saw_beside_others_may_have_begun_later_by_a_twentieth() -> None:
    network = Network()
    begun = replace(waits(longest=[(10**8, 150_000_000)]), together=[Together("a/pings", 0.0, 0.5)])
    (reason,) = judge(network, begun).reasons
    assert (reason.level, reason.value, reason.bound, reason.tdf) == ("suspect", 0.1, 0.05, 5.0)
    assert reason.what == (
        "a program waited for the CPU for 50 ms, 10 % of the time that a/pings looked at beside others: it may have begun "
        "as much later than they"
    )
    assert judge(network, replace(begun, together=[])).level == "valid", "nothing that it could come late for"
    assert judge(network, replace(begun, together=[Together("a/pings", 0, 1.1)])).level == "valid"
    (reason,) = judge(
        network, replace(begun, together=[Together("a/pings", 0, 1.1), Together("a/flow", 0, 0.5, 0.8)])
    ).reasons
    assert reason.value == pytest.approx(0.08)
    assert (
        "10 % of the time that a/flow looked at beside others, on whom 80 % of what it got depends: it" in reason.what
    )
    assert judge(network, replace(begun, together=[Together("a/flow", 0, 0.5, 0.4)])).level == "valid"
    assert judge(network, replace(begun, together=[Together("a/late", 0.16, 0.5)])).level == "suspect", (
        "there may be more"
    )
    servers = replace(
        waits(longest=[(10**8, 150_000_000), (10**7, 11_000_000)]), together=[Together("a/late", 0.16, 0.5)]
    )
    assert judge(network, servers).level == "valid", "who began later saw nothing of it"
    assert judge(network, replace(begun, drive="event")).level == "valid"
    assert judge(network, replace(begun, own_tdf=("g",))).level == "valid"
    assert judge(replace(network, tolerance_ns=50_000_000), begun).level == "valid"
    busy = replace(begun, waits=None, busy_periods=BusyPeriods(longest=50_000_000))
    assert "the guest was busy without a pause for 50 ms" in judge(network, busy).reasons[0].what


def test_where_it_is_known_when_programs_began_to_talk_that_is_what_they_met_later_by() -> None:
    """They began within 20 ms of a stretch of 60, and later on one of them waited for 12 ms of one of 30."""
    longest = [(10**8, 160_000_000), (3 * 10**8, 330_000_000)]
    seen = waits(longest=longest)
    assert seen.waits is not None
    talk = replace(seen, waits=replace(seen.waits, talkers=[(310_000_000, 322_000_000)]))

    def said(looked_s: float, apart_s: float | None, begin_s: float = 0.0) -> list[str]:
        of = Together("a/pings", begin_s, begin_s + looked_s, apart_s=apart_s)
        return [reason.what for reason in judge(Network(), replace(talk, together=[of])).reasons]

    assert said(0.5, 0.02) == []
    assert said(0.35, 0.02) == [
        "programs began to talk 20 ms further apart than the lab says, 5.71 % of the time that a/pings looked at beside others"
    ]
    assert said(0.2, 0.002, begin_s=0.2) == [
        "a program waited for the CPU for 12 ms, 6 % of the time that a/pings looked at beside others: it may have gone on "
        "as much later than they"
    ]
    (bound,) = said(0.5, None)
    assert bound.startswith("a program waited for the CPU for 60 ms, 12 %"), "which is all that is known"


def test_packets_keep_their_instants_on_the_work_drive_and_timers_may_be_later_there() -> None:
    network = Network(delay_ns_min=1_000_000, delay_link="a link")
    some = late(b0=98, b15=2)
    levels = {drive: judge(on_drive(network, drive), replace(some, drive=drive)).level for drive in ("wall", "work")}
    assert levels == {"wall": "suspect", "work": "valid"}
    assert judge(on_drive(network, "work"), late(b0=98, b17=2)).level == "suspect"
    assert judge(on_drive(network, "work"), late(b0=98, b20=2)).level == "invalid"
    known = replace(late(b0=98, b20=2), waits=waits().waits)
    assert judge(on_drive(network, "work"), replace(known, drive="work")).level == "valid", "waits say what was late"
    assert judge(on_drive(network, "wall"), replace(known, drive="wall")).level == "invalid"


def test_a_lab_may_state_the_lateness_that_it_does_not_mind() -> None:
    assert judge(replace(PATIENT, tolerance_ns=4_000_000), waiting()).level == "valid"
    (reason,) = judge(replace(PATIENT, tolerance_ns=1_500_000), waiting()).reasons
    assert "for more than 1.5 ms, the patience that the lab states" in reason.what
    stricter = judge(replace(PATIENT, tolerance_ns=1000), waiting()).reasons
    assert "a and b" in stricter[0].what, "what the paths do not notice is no matter"
    late_timers = late(b0=95, b18=5)
    assert judge(GIGABIT, late_timers).level == "invalid"
    assert judge(replace(GIGABIT, tolerance_ns=300_000), late_timers).level == "valid"
