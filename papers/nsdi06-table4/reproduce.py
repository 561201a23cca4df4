"""NSDI'06, figures 2, 3 and 4 and table 4: the timing of a TCP flow's packets at TDF 1, 10 and 100, and without guests.

`--congestion bic` has what the paper's Linux had; this machine's own kernel, which `--native 0` leaves out, has CUBIC.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import native  # noqa: E402
from sweeping import options, runs, sweep  # noqa: E402

from dilaton.measure.packets.table import Packets, read_packets  # noqa: E402
from dilaton.measure.packets.tcp import FlowPackets, flow_packets, tcp_flows, times_between_packets  # noqa: E402
from dilaton.measure.statistics import summarise  # noqa: E402
from dilaton.report.comparison import Row, compare_sets  # noqa: E402
from dilaton.report.figures.distributions import draw_ecdf  # noqa: E402
from dilaton.report.figures.sequence import draw_sequence  # noqa: E402
from dilaton.report.metrics import Metric  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, below, unit  # noqa: E402

TDFS = ("1", "10", "100")
NATIVE = "native"
"""In place of a TDF: between network namespaces of this machine."""
REFERENCE = "10"
"""Of the comparison: at TDF 1 the guest's CPU takes a part of every round trip."""
LOSSES = {"0%": "no loss", "{every: 100}": "1 % loss"}
LOST_EVERY = {"no loss": 0, "1 % loss": 100}
PUBLISHED = {
    "no loss": {"1": (0.458, 0.242, 0.294), "10": (0.451, 0.218, 0.248), "100": (0.448, 0.206, 0.239)},
    "1 % loss": {"1": (0.912, 0.298, 0.202), "10": (1.002, 0.304, 0.238), "100": (0.896, 0.301, 0.238)},
}
"""Mean (ms), CoV, IQR of table 4."""

Key = tuple[str, str, str]
"""Drive, loss, TDF; of runs without guests the first drive."""


def main() -> None:
    """Runs what is missing, then writes figures and the table of each congestion control."""
    chosen = options(str(__doc__), repeat=10, congestion="cubic", native="10")
    for congestion in chosen.congestion.split(","):
        out = chosen.out / congestion
        values = [f"time.drive={chosen.drives}", f"links.1.a_to_b.loss={','.join(LOSSES)}"]
        values += [f"time.tdf={','.join(TDFS)}", f"run.1.exec=iperf3 -c receiver -t 1 -C {congestion} -J"]
        sweep(HERE / "lab.yaml", out, values, chosen.repeat, chosen.jobs)
        gaps: dict[Key, list[Any]] = {}
        first: dict[Key, FlowPackets] = {}
        verdicts: dict[Key, Counter[str]] = {}
        found = [(key_of(row), run.capture("sender:eth0"), str(row["verdict"])) for row, run in runs(out)]
        if congestion == native.CONGESTION:
            found = without_guests(chosen.out / NATIVE, int(chosen.native), found[0][0][0]) + found
        for key, packets, verdict in found:
            flow = flow_packets(packets.table, packets.sack, tcp_flows(packets.table).iloc[0])
            gaps.setdefault(key, []).append(times_between_packets(flow))
            first.setdefault(key, flow)
            verdicts.setdefault(key, Counter())[verdict] += 1
        joined = {key: np.concatenate(parts) for key, parts in gaps.items()}
        with applied():
            for number, loss in enumerate(LOSSES.values()):
                draw_timing(first, loss).savefig(out / f"figure-{number + 2}.svg", metadata={"Date": None})
            draw_distributions(joined).savefig(out / "figure-4.svg", metadata={"Date": None})
        text = table(gaps, verdicts)
        (out / "table-4.md").write_text(text)
        print(f"{congestion}:\n{text}")


def key_of(row: Any) -> Key:
    """What a row of the sweep's table stands for."""
    return str(row["time.drive"]), LOSSES[row["links.1.a_to_b.loss"]], str(row["time.tdf"])


def without_guests(out: Path, repeat: int, drive: str) -> list[tuple[Key, Packets, str]]:
    """Captures of so many flows with and without losses between network namespaces; those that are there are kept."""
    out.mkdir(exist_ok=True)
    found = []
    for loss, every in LOST_EVERY.items():
        for number in range(repeat):
            path = out / f"{every}-{number}.pcapng"
            if not path.is_file():
                try:
                    native.measure(path, every)
                except PermissionError as failure:
                    # Guests need no root, so what they show is not to hang on it.
                    print(f"without guests nothing is measured, as that takes root: {failure}", file=sys.stderr)
                    return found
            with path.open("rb") as stream:
                found.append(((drive, loss, NATIVE), read_packets(stream), "none"))
    return found


def draw_timing(flows: dict[Key, FlowPackets], loss: str) -> Figure:
    """Figure 2 or 3: the first second of a flow without guests and at each TDF."""
    drive = next(iter(flows))[0]
    shown = [tdf for tdf in (NATIVE, *TDFS) if (drive, loss, tdf) in flows]
    figure = Figure(figsize=(WIDTH_IN, 2.4))
    panels = figure.subplots(1, len(shown), sharey=True)
    for where, tdf in zip(panels, shown, strict=True):
        flow = flows[drive, loss, tdf]
        draw_sequence(where, flow, begin_s=float(flow.data.t_s.min()), until_s=1.0)
        where.set_title(named(tdf))
        where.set_xlabel("time (s)" if tdf == NATIVE else "virtual time (s)")
        if where is not panels[0]:
            where.set_ylabel("")
    below(figure, *panels[-1].get_legend_handles_labels())
    return figure


def named(tdf: str) -> str:
    """As figures name it."""
    return "native Linux" if tdf == NATIVE else f"TDF {tdf}"


def draw_distributions(gaps: dict[Key, Any]) -> Figure:
    """Figure 4: the times between packets, all runs together."""
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    panels = figure.subplots(1, len(LOSSES), sharey=True)
    drives = list(dict.fromkeys(drive for drive, _, _ in gaps))
    for where, loss in zip(panels, LOSSES.values(), strict=True):
        for (drive, of, tdf), values in gaps.items():
            if of == loss:
                colour = COLOURS[(*TDFS, NATIVE).index(tdf)]
                label = named(tdf) if tdf == NATIVE else f"{named(tdf)}, {drive} drive"
                draw_ecdf(where, values, label=label, color=colour, linestyle=["-", "--"][drives.index(drive)])
        where.set_xscale("log")
        where.set_title(loss)
        where.set_xlabel("time between packets")
        unit(where.xaxis, "s")
    panels[0].set_ylabel("share of packets")
    below(figure, *panels[0].get_legend_handles_labels())
    return figure


def table(gaps: dict[Key, list[Any]], verdicts: dict[Key, Counter[str]]) -> str:
    """Table 4 with the published numbers, and each TDF compared with the reference on the same drive.

    Args:
        gaps: Of each point the times between packets of each run, in seconds; spreads are over the runs.
        verdicts: How many of its runs are valid, suspect and invalid.
    """
    compared = compared_with_reference(gaps)
    lines = [
        "| drive | loss | TDF | published: mean, ms | CoV | IQR | packets | mean, ms | CoV | IQR | fidelity "
        f"| KS to TDF {REFERENCE} | Wasserstein | by chance | p | verdict |",
        "| --- " * 16 + "|",
    ]
    for key, runs_of_point in gaps.items():
        drive, loss, tdf = key
        each, published = [summarise(values) for values in runs_of_point], PUBLISHED[loss].get(tdf, ("", "", ""))
        means = _spread([run.mean * 1e3 for run in each])
        covs, iqrs = (_spread([getattr(run, name) for run in each]) for name in ("cov", "iqr_ratio"))
        fidelity = "" if tdf == NATIVE else ", ".join(f"{count} {level}" for level, count in verdicts[key].items())
        lines.append(
            f"| {drive} | {loss} | {tdf} | {published[0]} | {published[1]} | {published[2]} "
            f"| {sum(map(len, runs_of_point))} | {means} | {covs} | {iqrs} | {fidelity} "
            f"| {_compared(compared[key]) if key in compared else ' | | | | reference'} |"
        )
    return "\n".join(lines) + "\n"


def compared_with_reference(gaps: dict[Key, list[Any]]) -> dict[Key, Row]:
    """How far each point is from the one with the reference's TDF, as by `dilaton compare --by time.tdf`."""
    found: dict[Key, Row] = {}
    for drive in dict.fromkeys(drive for drive, _, _ in gaps):
        sets = {
            tdf: {
                loss: [{loss: Metric(loss, "s", values)} for values in gaps[drive, loss, tdf]]
                for loss in LOSSES.values()
            }
            for tdf in sorted((*TDFS, NATIVE), key=lambda tdf: tdf != REFERENCE)
            if all((drive, loss, tdf) in gaps for loss in LOSSES.values())
        }
        for row in compare_sets(sets).rows:
            found[drive, row.metric.partition(": ")[2], row.run] = row
    return found


def _compared(row: Row) -> str:
    verdict = "**different**" if row.is_different else "indistinguishable"
    told = f"{row.distance.p:.3f} | {verdict}" if not math.isnan(row.distance.p) else "| too few runs"
    return f"{row.distance.ks:.3f} | {row.distance.relative * 100:.2f} % | {row.by_chance * 100:.2f} % | {told}"


def _spread(values: Sequence[float]) -> str:
    """Mean and standard deviation; of one value, that."""
    deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


if __name__ == "__main__":
    main()
