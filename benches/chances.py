"""Whether what links do by chance happens as often as asked: 100,000 packets each, and 10,000 probes over each jitter.

    .venv/bin/python benches/chances.py

Counts are held against the 99 % interval of the binomial distribution, lengths of bursts against the geometric one by
chi-square, delays against the table that netem draws from by Kolmogorov and Smirnov's test. A right link is outside
once in a hundred times in each row. `tests/fidelity/test_links.py` holds the same with fewer packets and wider bounds.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

import dilaton
from dilaton.cli.labs import probe
from dilaton.measure.link_validation import lateness_ns
from dilaton.plan.links.tables import SCALE, table
from dilaton.run.loading import Run

PACKETS, PACKET_BYTES = 100_000, 100
PROBES, GAP_NS = 10_000, 60_000
DELAY_NS, JITTER_NS = 10_000_000, 1_000_000
LOSS, DUPLICATE, CORRUPT, REORDER, P, R = 0.05, 0.03, 0.02, 0.1, 0.02, 0.2
CORRELATED, CORRELATION, SIMULATIONS = 0.2, 0.25, 20
LENGTHS = 20
"""Lengths of bursts that are counted each; longer ones together."""
CONFIDENCE = 0.99
GRAIN_NS = 2_000
"""What a delay may be off: steps of the guest's clock, and the CPU that a probe takes."""
OWN_TABLE = [-8192, -4096, 0, 0, 8192, 16384]
"""A table of a user's own: a sixth of the packets each, a third at the mean."""

FLOODED = {
    "loss": f"loss: {LOSS:.0%}",
    "seeded": f"loss: {{random: {LOSS:.0%}, seed: 7}}",
    "duplicate": f"duplicate: {DUPLICATE:.0%}",
    "corrupt": f"corrupt: {CORRUPT:.0%}",
    "reorder": f"delay: 10ms, reorder: {REORDER:.0%}",
    "gemodel": f"loss: {{gemodel: {{p: {P:.0%}, r: {R:.0%}}}}}",
    "correlated": f"loss: {{random: {CORRELATED:.0%}, correlation: {CORRELATION:.0%}}}",
}
JITTERED = {
    name: f"delay: {{mean: 10ms, jitter: 1ms, distribution: {given}}}"
    for name, given in {
        **{name: name for name in ("uniform", "normal", "pareto", "paretonormal")},
        "file": "./jitter.dist",
    }.items()
}

Stamps = list[tuple[int, int]]


def run(directory: Path) -> Run:
    """A hub that sends over one link after the other."""
    program = [str(Path(sys.executable).resolve()), "-c", Path(probe.__file__).read_text()]
    links, programs = [], []
    before: list[str] = []
    for name, fields in (FLOODED | JITTERED).items():
        count, gap_ns = (PACKETS, 0) if name in FLOODED else (PROBES, GAP_NS)
        send = [*program, "send", name, *map(str, (count, PACKET_BYTES, gap_ns, 1))]
        links.append(f"  - {{endpoints: hub -- {name}, a_to_b: {{{fields}}}}}")
        ready = f"ready: {{output: ready}}, after: {json.dumps(before)}"
        programs.append(f"  - {{on: {name}, name: sink-{name}, exec: {json.dumps([*program, 'receive'])}, {ready}}}")
        programs.append(f"  - {{on: hub, name: {name}, exec: {json.dumps(send)}, after: sink-{name}}}")
        before = [name]
    nodes = ", ".join(f"{name}: {{}}" for name in ("hub", *FLOODED, *JITTERED))
    text = f"name: chances\ntime: {{tdf: 100}}\nnodes: {{{nodes}}}\nlinks:\n" + "\n".join(links)
    lab = directory / "chances.yaml"
    lab.write_text(text + "\nrun:\n" + "\n".join(programs) + "\n")
    (directory / "jitter.dist").write_text(" ".join(map(str, OWN_TABLE)) + "\n")
    done = dilaton.start(lab, out=directory / "run").wait()
    assert done.record.state == "finished", done.record.reason
    return done


def stamps(found: Run, process: str) -> Stamps:
    """What a probe printed."""
    return [(number, ns) for number, ns in json.loads(found.output(process).splitlines()[-1])]


def correlated_counts() -> list[int]:
    """How many of so many correlated draws of netem are below what was asked for, by simulation, several times."""
    chance = random.Random(1)
    value, counts = chance.random(), [0] * SIMULATIONS
    for number in range(SIMULATIONS * PACKETS):
        value = CORRELATION * value + (1 - CORRELATION) * chance.random()
        counts[number // PACKETS] += value <= CORRELATED
    return counts


def early(arrived: Stamps) -> int:
    """How many packets came long before others that were sent earlier."""
    latest, count = 0, 0
    for _, ns in sorted(arrived):
        count += ns < latest - DELAY_NS // 2
        latest = max(latest, ns)
    return count


def burst_lengths(arrived: Stamps) -> list[int]:
    """How many packets were lost in a row, each time."""
    there = {number for number, _ in arrived}
    return [sum(1 for _ in group) for lost, group in itertools.groupby(n not in there for n in range(PACKETS)) if lost]


def count_row(name: str, count: int, probability: float) -> str:
    """A count of packets against what was asked for."""
    return row(name, probability, count, stats.binom.interval(CONFIDENCE, PACKETS, probability))


def correlated_row(count: int) -> str:
    """The same for correlated draws, whose counts vary more than binomial ones."""
    counts = correlated_counts()
    mean, deviation = float(np.mean(counts)), float(np.std(counts, ddof=1))
    interval = stats.norm.interval(CONFIDENCE, mean, deviation)
    return row(
        f"loss of {CORRELATED:.0%}, correlation {CORRELATION:.0%}, as netem draws", mean / PACKETS, count, interval
    )


def row(name: str, asked: float, count: int, interval: tuple[float, float]) -> str:
    """A row of the table."""
    low, high = interval
    found = "inside" if low <= count <= high else "**outside**"
    return f"| {name} | {asked:.3%} | {count / PACKETS:.3%} | {low / PACKETS:.3%} to {high / PACKETS:.3%}: {found} |"


def burst_row(lengths: Sequence[int]) -> str:
    """The lengths of bursts against a geometric distribution."""
    observed = [lengths.count(n) for n in range(1, LENGTHS)] + [sum(n >= LENGTHS for n in lengths)]
    shares = [R * (1 - R) ** (n - 1) for n in range(1, LENGTHS)] + [(1 - R) ** (LENGTHS - 1)]
    chance = stats.chisquare(observed, [share * len(lengths) for share in shares]).pvalue
    measured = f"{np.mean(lengths):.3g} | chi-square, p = {chance:.2g}: {verdict(chance)}"
    return f"| gemodel, {len(lengths)} bursts | mean {1 / R:g} | {measured} |"


def jitter_row(name: str, late_ns: Sequence[int]) -> str:
    """Delays against the table; uniform ones against that distribution, from which netem draws by itself."""
    values = np.sort(np.array(OWN_TABLE if name == "file" else table(name))) * (JITTER_NS / SCALE)
    reached = np.searchsorted(values, np.array(late_ns) + GRAIN_NS, side="right") / len(values)
    passed = np.searchsorted(values, np.array(late_ns) - GRAIN_NS, side="left") / len(values)
    ranks = np.arange(1, len(late_ns) + 1) / len(late_ns)
    distance = max((ranks - reached).max(), (passed - ranks + 1 / len(late_ns)).max())
    chance = float(stats.kstwobign.sf(distance * len(late_ns) ** 0.5))
    return f"| jitter, {name} | | distance {distance:.4f} | KS, p = {chance:.2g}: {verdict(chance)} |"


def verdict(chance: float) -> str:
    """Whether something so improbable is to be believed."""
    return "holds" if chance >= 1 - CONFIDENCE else "**does not hold**"


def main() -> None:
    """Prints a table."""
    with tempfile.TemporaryDirectory() as directory:
        found = run(Path(directory))
        arrived = {name: stamps(found, f"sink-{name}") for name in FLOODED | JITTERED}
        print("| what | asked for | measured | |\n| --- | --- | --- | --- |")
        lost = {name: PACKETS - len(arrived[name]) for name in ("loss", "seeded", "corrupt", "correlated")}
        copies = Counter(Counter(number for number, _ in arrived["duplicate"]).values())
        print(count_row("loss", lost["loss"], LOSS))
        print(count_row("loss with a seed", lost["seeded"], LOSS))
        print(count_row("duplicate", copies[2], DUPLICATE))
        print(count_row("corrupt", lost["corrupt"], CORRUPT))
        print(count_row("reorder", early(arrived["reorder"]), REORDER))
        print(correlated_row(lost["correlated"]))
        print(burst_row(burst_lengths(arrived["gemodel"])))
        for name in JITTERED:
            sent = dict(stamps(found, name))
            print(jitter_row(name, lateness_ns(sent, dict(arrived[name]), DELAY_NS)))


if __name__ == "__main__":
    main()
