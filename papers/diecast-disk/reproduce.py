"""DieCast (NSDI'08), figure 2(c): the throughput of dbench over the TDF, as disk and CPU are scaled or not.

python papers/diecast-disk/reproduce.py --out DIR [--tdfs 1,2,4,6,8,10] [--seconds 10] [--clients 4]

`--faster 5` has a host whose CPU is five times as fast, for a small version in which the disk counts for more.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import run  # noqa: E402

from dilaton.lab.parts.disks import known_disks  # noqa: E402
from dilaton.lab.text.units import format_duration, format_size, parse_duration, parse_size  # noqa: E402
from dilaton.report.style import COLOURS, applied, axes, below, from_zero  # noqa: E402

MODEL = "hdd-7200"
DURATIONS = ("seek_single", "seek_mean", "seek_full", "write_settle", "track_switch", "command")

CASES = {
    "neither": "neither CPU nor disk scaled",
    "cpu": "CPU scaled",
    "both": "CPU and disk scaled",
}
"""The lines of the figure."""


def disk(tdf: int, *, scaled: bool) -> dict[str, Any]:
    """The node's disk: the model, or as a disk of the host that nobody scales looks at a TDF, `tdf` times as fast."""
    if scaled:
        return {"model": MODEL, "size": "20GB"}
    known = known_disks()[MODEL]["mechanical"]
    faster = {name: format_duration(parse_duration(known[name]) // tdf) for name in DURATIONS}
    faster["rpm"] = str(int(known["rpm"]) * tdf)
    faster["link_bandwidth"] = format_size(parse_size(known["link_bandwidth"].removesuffix("/s")) * tdf) + "/s"
    return {"model": MODEL, "size": "20GB", "mechanical": faster}


def lab(case: str, tdf: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """One node that runs dbench on its disk."""
    node: dict[str, Any] = {"disk": disk(tdf, scaled=case == "both")}
    if case != "neither":
        node["cpu"] = str(chosen.faster)
    return {
        "name": "diecast-disk",
        "time": {"tdf": str(tdf * chosen.faster)},
        "nodes": {"a": node},
        "run": [{"on": "a", "exec": f"dbench -D /srv -t {chosen.seconds} {chosen.clients}"}],
    }


def throughput(out: Path) -> float:
    """What dbench says, in MB/s."""
    text = (out / "nodes" / "a" / "dbench.stdout").read_text()
    found = re.search(r"^Throughput ([\d.]+) MB/sec", text, re.MULTILINE)
    if not found:
        sys.exit(f"{out}: dbench says nothing of its throughput")
    return float(found[1])


def draw(rows: dict[tuple[str, int], float], tdfs: list[int]) -> Figure:
    """Figure 2(c)."""
    figure, (where,) = axes()
    for number, (case, label) in enumerate(CASES.items()):
        rates = [rows[case, tdf] for tdf in tdfs]
        where.plot(tdfs, rates, color=COLOURS[number], marker="os^"[number], markersize=4, label=label)
    where.set_xlabel("TDF")
    where.set_ylabel("throughput of dbench (MB/s)")
    from_zero(where)
    below(figure, *where.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, draws the figure and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tdfs", default="1,2,4,6,8,10")
    parser.add_argument("--seconds", type=int, default=10, help="of virtual time (default %(default)s)")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--faster", type=int, default=1)
    chosen = parser.parse_args()
    tdfs = [int(tdf) for tdf in chosen.tdfs.split(",")]
    print(f"| TDF | {' | '.join(CASES.values())} |\n{'| --- ' * (len(CASES) + 1)}|")
    rows: dict[tuple[str, int], float] = {}
    for tdf in tdfs:
        for case in CASES:
            # At TDF 1 there is nothing to scale, and the three are one.
            same = "both" if tdf == 1 else case
            out = chosen.out / f"{same}-{tdf}"
            run(lab(same, tdf, chosen), out)
            rows[case, tdf] = throughput(out)
        print(f"| {tdf} | {' | '.join(f'{rows[case, tdf]:.1f}' for case in CASES)} |", flush=True)
    with applied():
        draw(rows, tdfs).savefig(chosen.out / "figure-2c.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
