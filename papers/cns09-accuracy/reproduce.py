"""CNS'09, figures 2 to 5: how accurate emulated latencies and rates are."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import dilaton
from dilaton.cli.labs.validate import PACKET_BYTES, lab_text
from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES
from dilaton.report.figures.distributions import draw_ecdf
from dilaton.report.style import COLOURS, WIDTH_IN, applied, below, unit
from dilaton.run.loading import Run

DELAY = "10ms"
DELAY_NS = 10_000_000
TDFS = ("1", "10", "100")
RATES = {
    "100kbit": (1e5, "1"),
    "1Mbit": (1e6, "1"),
    "10Mbit": (1e7, "1"),
    "100Mbit": (1e8, "1"),
    "500Mbit": (5e8, "20"),
    "1Gbit": (1e9, "20"),
    "10Gbit": (1e10, "200"),
    "40Gbit": (4e10, "800"),
    "100Gbit": (1e11, "2000"),
}
"""In bit/s, each with a TDF at which the guest can send as much."""

PUBLISHED_100_HZ_MS = (13.0, 30.0)
"""Section 4.2: what 10 ms became under Linux 2.6.22 with a timer of 100 Hz."""

PUBLISHED_RATES = (1e5, 1e9)
"""Of figures 4 and 5, which print no numbers."""
RATE_TICKS = (1e5, 1e7, 1e9, 1e11)

FRAME_BYTES, TCP_HEADERS_BYTES = PACKET_BYTES + ETHERNET_HEADER_BYTES, 52
"""Of a full packet with its Ethernet header; IPv4 and TCP with time stamps."""

Stamps = dict[int, int]
"""The instant of each probe, ns, by its number."""


def main() -> None:
    """Runs what is missing, then writes figures and the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True, help="where runs, tables and figures go")
    out = parser.parse_args().out
    late = {tdf: lateness(done(out / f"latency-{tdf}", None, tdf)) for tdf in TDFS}
    rates = {rate: measured_rates(done(out / f"rate-{rate}", rate, tdf)) for rate, (_, tdf) in RATES.items()}
    with applied():
        draw_latency(late).savefig(out / "figures-2-3.svg", dpi=200, metadata={"Date": None})
        draw_rates(rates).savefig(out / "figures-4-5.svg", metadata={"Date": None})
    text = latency_table(late) + "\n" + rate_table(rates)
    (out / "tables.md").write_text(text)
    print(text)


def done(path: Path, rate: str | None, tdf: str) -> Run:
    """A run of probes, a flood and TCP, as `dilaton validate link` makes them; or that which is there already."""
    if not (path / "run.json").exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        lab = path.with_suffix(".yaml")
        lab.write_text(lab_text(rate, DELAY, tdf, "work"))
        dilaton.start(lab, out=path).wait()
    return dilaton.load(path)


def stamps(run: Run, process: str) -> Stamps:
    """What a probe printed."""
    return dict(json.loads(run.output(process).splitlines()[-1]))


def lateness(run: Run) -> NDArray[np.float64]:
    """A row for each probe in the order of sending: when it was sent, how much later than 10 ms it came; seconds."""
    sent, received = stamps(run, "probe"), stamps(run, "sink")
    first = min(sent.values())
    rows = [(sent[number] - first, received[number] - sent[number] - DELAY_NS) for number in sorted(received)]
    return np.array(rows) / 1e9


def measured_rates(run: Run) -> tuple[float, float]:
    """The rate of the frames of a flood of UDP, and of a TCP connection; bit/s."""
    instants: Sequence[int] = sorted(stamps(run, "drain").values())
    udp = FRAME_BYTES * 8 * (len(instants) - 1) * 1e9 / (instants[-1] - instants[0])
    result = next(process.result or {} for process in run.record.processes if process.name == "tcp")
    return udp, result["throughput"] * FRAME_BYTES / (PACKET_BYTES - TCP_HEADERS_BYTES)


def draw_latency(late: dict[str, NDArray[np.float64]]) -> Figure:
    """Figure 2: latency over time. Figure 3: its distribution."""
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    over_time, shares = figure.subplots(1, 2)
    for (tdf, rows), colour in zip(late.items(), COLOURS, strict=False):
        over_time.semilogy(rows[:, 0], rows[:, 1], ".", markersize=1, color=colour, rasterized=True)
        draw_ecdf(shares, rows[:, 1], label=f"TDF {tdf}", color=colour)
    low, high = ((ms - DELAY_NS / 1e6) / 1e3 for ms in PUBLISHED_100_HZ_MS)
    over_time.axhspan(low, high, color="#999999", alpha=0.3, linewidth=0)
    shares.axvspan(low, high, color="#999999", alpha=0.3, linewidth=0, label="published: Linux 2.6.22, 100 Hz")
    shares.set_xscale("log")
    over_time.set_xlabel("virtual time (s)")
    over_time.set_ylabel("later than 10 ms")
    unit(over_time.yaxis, "s")
    shares.set_xlabel("later than 10 ms")
    unit(shares.xaxis, "s")
    shares.set_ylabel("share of probes")
    below(figure, *shares.get_legend_handles_labels())
    return figure


def draw_rates(rates: dict[str, tuple[float, float]]) -> Figure:
    """Figure 4: rates measured over those configured. Figure 5: the difference, as a share of what was configured."""
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    absolute, difference = figure.subplots(1, 2)
    configured = np.array([RATES[rate][0] for rate in rates])
    absolute.loglog(configured, configured, color="#999999", linewidth=1, label="configured")
    for column, (name, colour) in enumerate(zip(("UDP", "TCP"), COLOURS, strict=False)):
        measured = np.array([pair[column] for pair in rates.values()])
        absolute.loglog(configured, measured, "o" if column else "s", markersize=4 - column, color=colour, label=name)
        difference.semilogx(configured, (measured / configured - 1) * 100, "o-", markersize=3, color=colour)
    for axes in (absolute, difference):
        axes.axvspan(*PUBLISHED_RATES, color="#999999", alpha=0.15, linewidth=0, label="rates that CNS'09 measures")
        axes.set_xlabel("configured rate")
        axes.set_xticks(RATE_TICKS)
        unit(axes.xaxis, "bit/s")
    absolute.set_ylabel("measured rate")
    unit(absolute.yaxis, "bit/s")
    difference.axhline(0, color="#999999", linewidth=1)
    difference.set_ylabel("difference (%)")
    below(figure, *absolute.get_legend_handles_labels())
    return figure


def latency_table(late: dict[str, NDArray[np.float64]]) -> str:
    """Latencies of 10 ms."""
    low, high = PUBLISHED_100_HZ_MS
    lines = [
        "| emulator | min, ms | median | 99.9 % | max |\n| --- | --- | --- | --- | --- |",
        f"| published: Linux 2.6.22, timer of 100 Hz | {low:g} | | | {high:g} |",
    ]
    for tdf, rows in late.items():
        points = np.quantile(rows[:, 1], [0, 0.5, 0.999, 1]) * 1e3 + DELAY_NS / 1e6
        lines.append(f"| Dilaton, TDF {tdf} | " + " | ".join(f"{point:.5f}" for point in points) + " |")
    return "\n".join(lines) + "\n"


def rate_table(rates: dict[str, tuple[float, float]]) -> str:
    """Rates configured and measured, of frames without preamble."""
    lines = ["| configured | TDF | UDP, Mbit/s | error | TCP with headers, error |\n| --- | --- | --- | --- | --- |"]
    for rate, (udp, tcp) in rates.items():
        configured, tdf = RATES[rate]
        errors = f"{udp / configured - 1:+.3%} | {tcp / configured - 1:+.3%}"
        lines.append(f"| {rate} | {tdf} | {udp / 1e6:.6g} | {errors} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
