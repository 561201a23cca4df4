"""Links against what was asked of them: delays, rates and chance, in smaller versions of `dilaton validate link`.

The bounds on chance are six standard deviations or their like: together they fail right links less than once in
a million runs.
"""

from __future__ import annotations

import itertools
import json
import random
import statistics
from collections import Counter
from pathlib import Path

import pytest

from dilaton.cli.labs import probe
from dilaton.measure.link_validation import (
    CLOCK_STEP_NS,
    GAP_COV_MAX,
    LATE_NS_MAX,
    judge_delay,
    judge_rate,
    lateness_ns,
)
from dilaton.plan.links.tables import SCALE, table
from tests.conftest import PYTHON, Outcome, RunLab

PROGRAM = [str(PYTHON), "-c", Path(probe.__file__).read_text()]
FLOOD = 20_000
PROBES = 2_000
DELAY_NS = 10_000_000
JITTER_NS = 1_000_000
FRAME_NS = 1514 * 8 * 10
"""Of a full frame at 100 Mbit/s."""
LOSS, DUPLICATE, REORDER = 0.05, 0.03, 0.1
P, R = 0.02, 0.2
CORRUPT = 0.02
CORRELATED, CORRELATION = 0.2, 0.25
DEVIATIONS = 6
"""Exceeded by chance once in 500 million times, on either side."""
CHI_SQUARE_MAX = 50.0
"""Of 8 degrees of freedom; exceeded by chance once in 24 million times."""
KS_MAX = 3.0
"""Times 1 / sqrt(n): exceeded by chance once in 33 million times."""

LINKS = {
    "exact": "delay: 10ms",
    "normal": "delay: {mean: 10ms, jitter: 1ms, distribution: normal}",
    "reordering": f"delay: 10ms, reorder: {REORDER:.0%}",
    "losing": f"loss: {LOSS:.0%}",
    "doubling": f"duplicate: {DUPLICATE:.0%}",
    "bursts": f"loss: {{gemodel: {{p: {P:.0%}, r: {R:.0%}}}}}",
    "corrupting": f"corrupt: {CORRUPT:.0%}",
    "correlated": f"loss: {{random: {CORRELATED:.0%}, correlation: {CORRELATION:.0%}}}",
    "slow": "rate: 100Mbit, queue: {limit: 1000}",
}
"""A link from the hub to each of these nodes, and what the hub sends: probes over those with a delay, else a flood."""


def lab() -> str:
    """All nodes around one hub, each measured after the one before."""
    links, run, after = [], [], ""
    for name, fields in LINKS.items():
        probes, size = (PROBES, 100) if "delay" in fields else (1000 if name == "slow" else FLOOD, 1500)
        gap_ns = 60_000 if "delay" in fields else 0
        links.append(f"  - {{endpoints: hub -- {name}, a_to_b: {{{fields}}}}}")
        sink = json.dumps([*PROGRAM, "receive"])
        send = json.dumps([*PROGRAM, "send", name, str(probes), str(size), str(gap_ns), "1"])
        wait = f", after: {after}" if after else ""
        run.append(f"  - {{on: {name}, name: sink-{name}, exec: {sink}, ready: {{output: ready}}{wait}}}")
        run.append(f"  - {{on: hub, name: send-{name}, exec: {send}, after: sink-{name}}}")
        after = f"send-{name}"
    nodes = ", ".join(f"{name}: {{}}" for name in ("hub", *LINKS))
    head = f"name: links\ntime: {{drive: work, tdf: 100}}\nnodes: {{{nodes}}}\n"
    return "\n".join([head + "links:", *links, "run:", *run]) + "\n"


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that all tests look at."""
    outcome = run_lab_once(lab())
    assert outcome.status == 0
    return outcome


def stamps(outcome: Outcome, node: str, process: str) -> list[tuple[int, int]]:
    """The `(number, ns)` that a probe printed."""
    return [(number, ns) for number, ns in json.loads(outcome.stdout(node, process).splitlines()[-1])]


def received(outcome: Outcome, node: str) -> list[int]:
    """The numbers that arrived at a node, in order."""
    return [number for number, _ in stamps(outcome, node, f"sink-{node}")]


def late_ns(outcome: Outcome, node: str) -> list[int]:
    """How much later than 10 ms each probe arrived, ascending."""
    sent = dict(stamps(outcome, "hub", f"send-{node}"))
    return lateness_ns(sent, dict(stamps(outcome, node, f"sink-{node}")), DELAY_NS)


def assert_ratio(count: int, of: int, probability: float) -> None:
    deviation = (of * probability * (1 - probability)) ** 0.5
    assert abs(count - of * probability) <= DEVIATIONS * deviation


def test_probes_at_random_instants_take_the_delay_and_none_is_early(outcome: Outcome) -> None:
    *lines, _ = judge_delay(late_ns(outcome, "exact"), DELAY_NS, tdf=100)
    assert all(line.holds for line in lines), lines
    sent = dict(stamps(outcome, "hub", "send-exact"))
    arrived = sorted(stamps(outcome, "exact", "sink-exact"))
    is_late = [ns - sent[number] - DELAY_NS > LATE_NS_MAX[100] for number, ns in arrived]
    # Where the host stands still, all that are on their way come late: such a moment counts as one.
    assert sum(late for late, _ in itertools.groupby(is_late)) <= PROBES // 1000


def test_a_saturated_link_has_its_rate_and_no_bursts(outcome: Outcome) -> None:
    arrived = [ns for _, ns in stamps(outcome, "slow", "sink-slow")]
    rate, _ = judge_rate(arrived, 1500, 10**8)
    assert rate.holds, rate
    gaps = [after - before for before, after in itertools.pairwise(arrived[len(arrived) // 2 :])]
    even = [gap for gap in gaps if abs(gap - FRAME_NS) <= GAP_COV_MAX * FRAME_NS]
    # But for those of a moment in which the host stands still.
    assert len(even) >= 0.9 * len(gaps)


def test_a_jitter_is_distributed_as_the_table_that_is_asked_for(outcome: Outcome) -> None:
    found = late_ns(outcome, "normal")
    expected = [value * JITTER_NS / SCALE for value in table("normal")]
    shares = [sum(value <= instant for value in expected) / len(expected) for instant in found]
    distance = max(abs(share - (number + 0.5) / len(found)) for number, share in enumerate(shares))
    assert distance <= KS_MAX / len(found) ** 0.5


def test_packets_are_sent_early_as_often_as_asked(outcome: Outcome) -> None:
    found = late_ns(outcome, "reordering")
    assert_ratio(sum(late < -DELAY_NS // 2 for late in found), len(found), REORDER)


def test_losses_are_as_frequent_as_asked(outcome: Outcome) -> None:
    assert_ratio(FLOOD - len(received(outcome, "losing")), FLOOD, LOSS)


def test_packets_are_corrupted_as_often_as_asked_and_their_checksums_tell(outcome: Outcome) -> None:
    assert_ratio(FLOOD - len(received(outcome, "corrupting")), FLOOD, CORRUPT)


def test_a_correlated_loss_is_that_of_netems_draws_and_not_what_it_says(outcome: Outcome) -> None:
    """netem mixes each draw with the one before, after which few are small: `docs/links.md` has the numbers."""
    chance = random.Random(1)
    value, expected, draws = chance.random(), 0, 20 * FLOOD
    for _ in range(draws):
        value = CORRELATION * value + (1 - CORRELATION) * chance.random()
        expected += value <= CORRELATED
    assert expected / draws == pytest.approx(0.102, abs=0.003)
    lost = FLOOD - len(received(outcome, "correlated"))
    # Correlated counts vary more, by less than half.
    assert abs(lost - expected / 20) <= 1.5 * DEVIATIONS * (FLOOD * 0.102 * 0.898) ** 0.5


def test_duplicates_are_as_frequent_as_asked(outcome: Outcome) -> None:
    counts = Counter(received(outcome, "doubling"))
    assert sorted(counts) == list(range(FLOOD))
    assert_ratio(sum(count == 2 for count in counts.values()), FLOOD, DUPLICATE)


def test_bursts_of_the_gilbert_model_are_geometric(outcome: Outcome) -> None:
    lost = [number not in gone for gone in [set(received(outcome, "bursts"))] for number in range(FLOOD)]
    lengths = [len(list(group)) for is_lost, group in itertools.groupby(lost) if is_lost]
    bins = [sum(length == n for length in lengths) for n in range(1, 9)] + [sum(length > 8 for length in lengths)]
    shares = [R * (1 - R) ** (n - 1) for n in range(1, 9)] + [(1 - R) ** 8]
    expected = [share * len(lengths) for share in shares]
    assert sum((o - e) ** 2 / e for o, e in zip(bins, expected, strict=True)) <= CHI_SQUARE_MAX
    # What is lost comes in bursts, so it varies more than if each packet were drawn by itself.
    share = P / (P + R)
    deviation = (FLOOD * share * (1 - share) * (2 - P - R) / (P + R)) ** 0.5
    assert abs(sum(lost) - FLOOD * share) <= DEVIATIONS * deviation


HOPS = 10


def test_ten_links_of_ten_milliseconds_add_up_to_two_hundred_and_no_more_than_one_more(run_lab: RunLab) -> None:
    """The test of mahimahi, which nests ten delays and allows 20 ms."""
    nodes = ", ".join(f"n{number}: {{}}" for number in range(HOPS + 1))
    links = "\n".join(f"  - {{endpoints: n{number} -- n{number + 1}, delay: 10ms}}" for number in range(HOPS))
    outcome = run_lab(
        f"name: ten\ntime: {{drive: work, tdf: 10}}\nnodes: {{{nodes}}}\nlinks:\n{links}\n"
        f"run: [{{on: n0, exec: ping -c 20 -i 0.1 n{HOPS}}}]\n"
    )
    assert outcome.status == 0
    samples = outcome.process("ping")["result"]["samples"]
    assert len(samples) == 20
    assert min(samples) >= 0.200
    # But for two in whose moment the host charges the guest for what it did not have.
    assert sorted(samples)[-3] <= 0.201, samples


def test_each_link_on_a_path_takes_its_delay_and_no_cpu_time(run_lab: RunLab) -> None:
    """At TDF 1 a kernel takes microseconds from a timer to the packet that it sends.

    Probes are so far apart that they seldom meet: those that do wait for each other's CPU time, as in a real router.
    """
    nodes = ", ".join(f"n{number}: {{}}" for number in range(HOPS + 1))
    links = "\n".join(f"  - {{endpoints: n{number} -- n{number + 1}, delay: 10ms}}" for number in range(HOPS))
    programs = []
    for number, after in ((1, "[]"), (HOPS, "probe-1")):
        sink = json.dumps([*PROGRAM, "receive"])
        send = json.dumps([*PROGRAM, "send", f"n{number}", "200", "100", str(HOPS * DELAY_NS), "1"])
        programs.append(
            f"  - {{on: n{number}, name: sink-{number}, exec: {sink}, ready: {{output: ready}}, after: {after}}}"
        )
        programs.append(f"  - {{on: n0, name: probe-{number}, exec: {send}, after: sink-{number}}}")
    outcome = run_lab(
        f"name: path\ntime: {{drive: work}}\nnodes: {{{nodes}}}\nlinks:\n{links}\nrun:\n" + "\n".join(programs) + "\n"
    )
    assert outcome.status == 0
    late = {}
    for number in (1, HOPS):
        sent = dict(stamps(outcome, "n0", f"probe-{number}"))
        late[number] = lateness_ns(sent, dict(stamps(outcome, f"n{number}", f"sink-{number}")), number * DELAY_NS)
    added_ns = statistics.median(late[HOPS]) - statistics.median(late[1])
    assert added_ns <= HOPS * CLOCK_STEP_NS, "each link takes a step of the guest's clock more than its delay at most"
