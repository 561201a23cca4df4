"""PADS'15, section 5: one TCP flow through a row of Open vSwitches under an OpenFlow controller; figures 3 and 4.

python papers/pads15-chain/reproduce.py --out DIR [--switches 40] [--rates 4Gbit,8Gbit,10Gbit] [--tdfs 1,4]

It prints a table, and draws figure 3(b), throughputs over time, for the highest rate, figure 3(a) where there are
several rates, and figure 4 where there are several rows.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import MEGA, chain, throughputs
from sweeping import run

from dilaton.report.style import COLOURS, applied, axes, below, from_zero

PUBLISHED = {
    (40, "4Gbit", "1"): 4000,
    (40, "4Gbit", "4"): 4000,
    (40, "10Gbit", "1"): 6100,
    (60, "4Gbit", "1"): 2360,
    (80, "4Gbit", "1"): 1400,
    (100, "4Gbit", "1"): 680,
    **{(count, "4Gbit", "4"): 3800 for count in (20, 60, 80, 100)},
}
"""The throughput in Mbit/s, as the text gives it: "nearly 4 Gbit/s", "below 6.1 Gbit/s", a loss of 41, 65 and 83 % of
the rate at TDF 1, and 3.8 Gbit/s for every row at TDF 4. With 8 Gbit/s TDF 1 loses 28 % of what a testbed gives, TDF 4
nothing; the figures' other values are not in the text."""


@dataclass(frozen=True)
class Point:
    """One place in a figure."""

    switches: int
    rate: str
    drive: str
    tdf: str

    @property
    def name(self) -> str:
        """Of its runs."""
        return f"{self.switches}-{self.rate}-{self.drive}-{self.tdf}"

    @property
    def published(self) -> int | None:
        """In Mbit/s, if the text says it."""
        return PUBLISHED.get((self.switches, self.rate, self.tdf))


@dataclass(frozen=True)
class Found:
    """What the runs of a point measured: means, the deviation of the throughputs, and the first run's in its course.

    `course` has the seconds since the flow's begin, each with the Mbit/s of the interval that ends there.
    """

    mbit_per_s: float
    deviation: float
    host_s: float
    course: list[tuple[float, float]]


def measure(point: Point, chosen: argparse.Namespace) -> Found | None:
    """Runs a point, as far as it has not been run; None: only what is known is wanted, and this is not."""
    suffix = "-offload" if chosen.offload else ""
    places = [chosen.out / f"{point.name}{suffix}-{number}" for number in range(chosen.repeat)]
    if chosen.known and not all((place / "run.json").is_file() for place in places):
        return None
    lab = chain(point.switches, point.rate, point.tdf, point.drive, chosen.seconds, chosen.mtu, chosen.offload)
    records = [run(lab, place) for place in places]
    flows = [throughputs(record)[0] for record in records]
    host_s = statistics.mean(record["time"]["host_s"] for record in records)
    [flow] = [process for process in records[0]["processes"] if process["name"] == "flow"]
    course = [(part["end_s"], part["throughput"] / MEGA) for part in flow["result"]["intervals"]]
    return Found(statistics.mean(flows), statistics.stdev(flows) if len(flows) > 1 else 0.0, host_s, course)


def draw(found: dict[Point, Found], by_rate: bool) -> Figure:
    """Throughput over rates (figure 3a), or throughput and host time over the number of switches (figure 4)."""
    figure, places = axes(1 if by_rate else 2)
    values = list(dict.fromkeys(point.rate if by_rate else str(point.switches) for point in found))
    lines = list(dict.fromkeys((point.drive, point.tdf) for point in found))
    width = 0.8 / len(lines)
    for number, (drive, tdf) in enumerate(lines):
        of_line = {point: one for point, one in found.items() if (point.drive, point.tdf) == (drive, tdf)}
        at = [
            values.index(point.rate if by_rate else str(point.switches)) + (number - (len(lines) - 1) / 2) * width
            for point in of_line
        ]
        style = {"width": width * 0.9, "color": COLOURS[number], "label": f"{drive} drive, TDF {tdf}"}
        heights = [one.mbit_per_s / 1000 for one in of_line.values()]
        places[0].bar(at, heights, yerr=[one.deviation / 1000 for one in of_line.values()], **style)
        known = [(x, point.published / 1000) for x, point in zip(at, of_line, strict=True) if point.published]
        label = "paper" if known and number == len(lines) - 1 else None
        places[0].plot(*zip(*known, strict=True) if known else ([], []), "D", color="black", markersize=3, label=label)
        if not by_rate:
            places[1].bar(at, [one.host_s for one in of_line.values()], width=width * 0.9, color=COLOURS[number])
    for place, title in zip(places, ("throughput (Gbit/s)", "host time of the run (s)"), strict=False):
        place.set(ylabel=title, xlabel="rate of the links" if by_rate else "switches")
        place.set_xticks(range(len(values)), values)
        from_zero(place)
    below(figure, *places[0].get_legend_handles_labels())
    return figure


def draw_course(found: dict[Point, Found], rate: str) -> Figure:
    """Figure 3(b): throughputs over time with links of that rate."""
    figure, (place,) = axes()
    for number, (point, one) in enumerate((each, one) for each, one in found.items() if each.rate == rate):
        times, flows = zip(*one.course, strict=True)
        label = f"{point.switches} switches, {point.drive} drive, TDF {point.tdf}"
        style = {"color": COLOURS[number % len(COLOURS)], "marker": "os^v"[number % 4], "markersize": 3}
        place.plot(times, [flow / 1000 for flow in flows], label=label, **style)
    place.set(ylabel="throughput (Gbit/s)", xlabel="time since the flow began (s)", title=f"links of {rate}/s")
    place.set_xlim(left=0)
    from_zero(place)
    below(figure, *place.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the table, and draws the figure."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--switches", default="40", help="how many, or several numbers (default %(default)s)")
    parser.add_argument("--rates", default="4Gbit,8Gbit,10Gbit")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--drives", default="wall,work")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", default="25", help="length of the flow, in virtual time")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--offload", action="store_true", help="keep segmentation offload, as Mininet does")
    parser.add_argument("--known", action="store_true", help="run nothing; show what has been run")
    chosen = parser.parse_args()
    counts, rates = [int(text) for text in chosen.switches.split(",")], chosen.rates.split(",")
    print("| switches | rate | drive | TDF | Mbit/s | host s | paper |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    found: dict[Point, Found] = {}
    for point in (
        Point(count, rate, drive, tdf)
        for count in counts
        for rate in rates
        for drive in chosen.drives.split(",")
        for tdf in chosen.tdfs.split(",")
    ):
        if (one := measure(point, chosen)) is None:
            continue
        found[point] = one
        row = f"{point.switches} | {point.rate} | {point.drive} | {point.tdf} | {one.mbit_per_s:.0f} | {one.host_s:.0f}"
        print(f"| {row} | {point.published or ''} |", flush=True)
    with applied():
        highest = rates[-1]
        if any(point.rate == highest for point in found):
            draw_course(found, highest).savefig(chosen.out / "figure-3b.svg", metadata={"Date": None})
        if len(rates) > 1 or len(counts) > 1:
            name = "figure-3.svg" if len(rates) > 1 else "figure-4.svg"
            draw(found, by_rate=len(rates) > 1).savefig(chosen.out / name, metadata={"Date": None})


if __name__ == "__main__":
    main()
