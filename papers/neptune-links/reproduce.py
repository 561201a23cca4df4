"""NEPTUNE, figures 4 to 7, 9 and 10: what a machine sends and receives, and what a token bucket does to its packets."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, run  # noqa: E402

from dilaton.report.style import COLOURS, WIDTH_IN, applied, below  # noqa: E402

PAYLOAD_BYTES, FRAME_BYTES = 1000, 1042
"""Of a datagram, and of its frame, which is what a link and the paper count."""

TDFS = "1,4,16"
FAST = 64
"""The TDF of the machine at the other end, which is to be no limit."""
OFFERED = "2,5,10,20,40,80"
"""What a machine is to send or receive, in thousands of packets a second."""

LIMITS = "10,20,50,100"
"""Rates of the bucket, Mbit/s."""
LOADS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
"""What is sent, in parts of that."""


class Flow(NamedTuple):
    """What became of a stream.

    Attributes:
        sent: Packets a second that left their program.
        received: Packets a second that came.
        busy: The share of its time for which the CPU of the machine that is looked at was busy.
        jitter_ms: Of each tenth of a second, as RFC 3550 defines it.
        verdict: What was said of the run.
    """

    sent: float
    received: float
    busy: float
    jitter_ms: list[float]
    verdict: str


def main() -> None:
    """Runs what is missing, then writes figures and tables."""
    chosen = options(str(__doc__), repeat=1, tdfs=TDFS, offered=OFFERED, limits=LIMITS)
    tdfs, offered = [int(each) for each in chosen.tdfs.split(",")], [int(each) for each in chosen.offered.split(",")]
    machine = {
        (role, tdf, load): machine_flow(chosen.out, role, tdf, load)
        for role in ("sender", "receiver")
        for tdf in tdfs
        for load in offered
    }
    limits = [int(each) for each in chosen.limits.split(",")]
    shaped = {(limit, load): shaped_flow(chosen.out, limit, limit * load) for limit in limits for load in LOADS}
    apart = {
        where: shaped_flow(chosen.out, 20, 25, where, seconds=10) for where in ("a kernel for both", "a kernel each")
    }
    with applied():
        draw_machine(machine, tdfs, offered).savefig(chosen.out / "figures-4-to-7.svg", metadata={"Date": None})
        draw_limits(shaped, limits).savefig(chosen.out / "figure-9.svg", metadata={"Date": None})
        draw_jitter(apart).savefig(chosen.out / "figure-10.svg", metadata={"Date": None})
    text = "\n".join([table(machine, tdfs, offered), limits_table(shaped, limits), jitter_table(apart)])
    (chosen.out / "tables.md").write_text(text)
    print(text)


def machine_flow(out: Path, role: str, tdf: int, load: int) -> Flow:
    """A stream of `load` thousand packets a second; the machine of this TDF sends or receives, the other is fast."""
    lab = YAML(typ="safe").load(HERE / "machine.yaml")
    lab["guests"] = {name: {"tdf": tdf if name == role else FAST} for name in ("sender", "receiver")}
    lab["time"]["tdf"] = FAST
    return flow(lab, out / f"{role}-tdf{tdf}-{load}k", load * 8e-3 * PAYLOAD_BYTES, role)


def shaped_flow(out: Path, limit: int, rate: float, where: str = "a kernel each", seconds: int = 2) -> Flow:
    """A stream of frames of `rate` Mbit/s through a bucket of `limit` Mbit/s."""
    lab = YAML(typ="safe").load(HERE / "shaped.yaml")
    if where == "a kernel for both":
        lab["nodes"] = {"sender": {}, "receiver": {}}
    lab["links"][0]["a_to_b"]["rate"] = f"{limit}Mbit"
    lab["run"][1]["exec"] = lab["run"][1]["exec"].replace("-t 5", f"-t {seconds}")
    place = out / f"{limit}M-{rate:g}M-{seconds}s-{where.replace(' ', '-')}"
    return flow(lab, place, rate * PAYLOAD_BYTES / FRAME_BYTES, "sender")


def flow(lab: dict[str, Any], place: Path, payload_mbit_per_s: float, role: str) -> Flow:
    """Runs a stream, and reads what its two ends said of it."""
    stream = lab["run"][1]
    words = stream["exec"].split()
    words[words.index("-b") + 1] = f"{payload_mbit_per_s * 1e6:.0f}"
    stream["exec"] = " ".join(words)
    record = run(lab, place)
    sent, received = (
        json.loads((place / f"nodes/{name}.stdout").read_text())["intervals"]
        for name in ("sender/stream", "receiver/server")
    )
    guests = {guest["name"]: guest["fidelity"]["busy"] for guest in record["guests"]}
    return Flow(
        sent=np.mean([each["sum"]["packets"] / each["sum"]["seconds"] for each in inner(sent)]),
        received=np.mean(
            [
                (each["sum"]["packets"] - each["sum"]["lost_packets"]) / each["sum"]["seconds"]
                for each in inner(received)
            ]
        ),
        busy=guests.get(role, 0.0),
        jitter_ms=[each["sum"]["jitter_ms"] for each in received],
        verdict=record["verdict"]["level"],
    )


def inner(intervals: list[Any]) -> list[Any]:
    """Those in which the stream has begun and goes on: the receiver waits for a while after its end."""
    last = max(number for number, each in enumerate(intervals) if each["sum"]["packets"])
    return intervals[2 : last - 1]


def draw_machine(machine: Any, tdfs: Sequence[int], offered: Sequence[int]) -> Figure:
    """Figures 4 to 7: what comes through, and how busy the CPU is, over what is asked for."""
    figure = Figure(figsize=(WIDTH_IN, 4.2))
    panels = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, role in enumerate(("sender", "receiver")):
        for number, tdf in enumerate(tdfs):
            flows = [machine[role, tdf, load] for load in offered]
            style: Any = {"color": COLOURS[number], "marker": "os^"[number % 3], "markersize": 3}
            through = [(each.sent if role == "sender" else each.received) / 1e3 for each in flows]
            panels[0][column].loglog(offered, through, label=f"TDF {tdf}", **style)
            panels[1][column].semilogx(offered, [100 * each.busy for each in flows], **style)
        panels[0][column].set_title(f"a machine that {'sends' if role == 'sender' else 'receives'}")
        panels[1][column].set_xlabel("asked for (thousand packets a second)")
        plain_ticks(panels[1][column].xaxis, offered)
    plain_ticks(panels[0][0].yaxis, offered)
    panels[0][0].set_ylabel("thousand packets a second")
    panels[1][0].set_ylabel("CPU busy (%)")
    panels[1][0].set_ylim(0, 105)
    below(figure, *panels[0][0].get_legend_handles_labels())
    return figure


def draw_limits(shaped: Any, limits: Sequence[int]) -> Figure:
    """Figure 9: what comes through a bucket, over what is sent."""
    figure = Figure(figsize=(WIDTH_IN / 2, 2.6))
    where = figure.subplots()
    for number, limit in enumerate(limits):
        flows = [shaped[limit, load] for load in LOADS]
        sent, received = ([mbit(rate) for rate in rates] for rates in zip(*[each[:2] for each in flows], strict=True))
        where.loglog(sent, received, color=COLOURS[number], marker="o", markersize=3, label=f"{limit} Mbit/s")
    where.set_xlabel("sent (Mbit/s)")
    where.set_ylabel("received (Mbit/s)")
    plain_ticks(where.xaxis, limits)
    plain_ticks(where.yaxis, limits)
    below(figure, *where.get_legend_handles_labels())
    return figure


def draw_jitter(apart: dict[str, Flow]) -> Figure:
    """Figure 10: the jitter in the course of time, by where the sender is."""
    figure = Figure(figsize=(WIDTH_IN / 2, 2.6))
    where = figure.subplots()
    for number, (kernel, stream) in enumerate(apart.items()):
        times = np.arange(1, len(stream.jitter_ms) + 1) / 10
        where.plot(times, stream.jitter_ms, color=COLOURS[number], label=f"{kernel}")
    where.set_xlabel("time (s)")
    where.set_ylabel("jitter (ms)")
    where.set_ylim(bottom=0)
    below(figure, *where.get_legend_handles_labels())
    return figure


def plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Marks these values of a logarithmic axis, as plain numbers."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def mbit(packets_per_s: float) -> float:
    """The rate of so many frames, Mbit/s."""
    return packets_per_s * FRAME_BYTES * 8 / 1e6


def table(machine: Any, tdfs: Sequence[int], offered: Sequence[int]) -> str:
    """What a machine sends and receives, thousand packets a second, and how busy its CPU is."""
    heading = [f"{role} {what}, TDF {tdf}" for what in ("sends", "receives") for tdf in tdfs for role in ("",)]
    lines = [
        f"| asked for, k/s | {' | '.join(each.strip() for each in heading)} |",
        "| --- " * (1 + len(heading)) + "|",
    ]
    for load in offered:
        cells = []
        for role in ("sender", "receiver"):
            for tdf in tdfs:
                each = machine[role, tdf, load]
                through = each.sent if role == "sender" else each.received
                cells.append(f"{through / 1e3:.1f}, busy {each.busy:.0%}")
        lines.append(f"| {load} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def limits_table(shaped: Any, limits: Sequence[int]) -> str:
    """What comes through a bucket, Mbit/s with the headers of frames."""
    lines = [f"| sent, of the bucket's rate | {' | '.join(f'{limit} Mbit/s' for limit in limits)} |"]
    lines.append("| --- " * (1 + len(limits)) + "|")
    for load in LOADS:
        lines.append(f"| {load:.0%} | {' | '.join(f'{mbit(shaped[limit, load].received):.3f}' for limit in limits)} |")
    return "\n".join(lines) + "\n"


def jitter_table(apart: dict[str, Flow]) -> str:
    """Jitter from the second second on, by where the sender is."""
    lines = ["| ends | jitter, ms: mean | deviation | received, Mbit/s | verdict |", "| --- " * 5 + "|"]
    for kernel, stream in apart.items():
        settled = stream.jitter_ms[10:]
        figures = f"{np.mean(settled):.4f} | {np.std(settled):.4f} | {mbit(stream.received):.3f} | {stream.verdict}"
        lines.append(f"| {kernel} | {figures} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
