"""PADS'15, table 2: what asking for the time costs in virtual time, and what a change of the TDF does.

python papers/pads15-calls/reproduce.py --out DIR [--batches 200] [--watch 0.5] [--flow 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import has_finished, run  # noqa: E402

import dilaton  # noqa: E402

PUBLISHED_US = {"native": 0.0532, "virtual": 0.0661, "change": 0.0628}
"""Table 2: gettimeofday with and without virtual time, and settimedilationfactor."""
PUBLISHED_FLOW = "1,397,829 in 60 s, 0.03 % of it"
"""How often both ends of an iperf3 asked for the time, and what that cost."""

TDFS = (1, 10)
WATCHING_TDFS = (10, 11)
"""Between these the TDF goes back and forth."""
FLOW_TDF = 50
"""Enough for the ends of a flow that is traced, where each call takes several times as long."""


def lab(name: str, command: str, tdf: int) -> dict[str, Any]:
    """A node that runs the program."""
    return {
        "name": name,
        "time": {"tdf": str(tdf)},
        "files": ".",
        "nodes": {"a": None},
        "run": [{"on": "a", "name": "calls", "exec": command}],
    }


def flow_lab(seconds: str) -> dict[str, Any]:
    """Both ends of an iperf3 over 100 Mbit/s, whose readings of the clock are counted."""
    traced = "strace -f -c -e trace=clock_gettime,gettimeofday"
    server = {"on": "b", "name": "server", "exec": f"{traced} iperf3 -s -1", "ready": {"tcp": "5201"}}
    return {
        "name": "pads15-flow",
        "time": {"tdf": str(FLOW_TDF)},
        "nodes": {"a": None, "b": None},
        "links": [{"endpoints": ["a", "b"], "rate": "100Mbit", "delay": "1ms"}],
        "run": [server, {"on": "a", "name": "client", "exec": f"{traced} iperf3 -c b -t {seconds}", "after": "server"}],
    }


def medians_us(text: str, tdf: int) -> list[float]:
    """Microseconds of CPU of a call by the library, and of one by the kernel: the median of the batches."""
    batches = [[float(ns) * tdf / 1e3 for ns in line.split()] for line in text.splitlines()]
    return [statistics.median(each) for each in zip(*batches, strict=True)]


def watched_us(out: Path, seconds: str, changing: bool) -> dict[str, Any]:
    """What a program is kept from, while the TDF goes back and forth or does not.

    Returns:
        `changes` of the TDF, the program's `pauses`, and `lost_us`, all of the pauses together, of the host's CPU.
    """
    path = out.with_suffix(".json")
    if path.is_file() and has_finished(out):
        known: dict[str, Any] = json.loads(path.read_text())
        return known
    source = out.with_suffix(".yaml")
    source.write_text(json.dumps(lab("pads15-changes", f"./calls watch {seconds}", WATCHING_TDFS[0]), indent=1))
    changes = 0
    with dilaton.start(source, out=out) as going:
        try:
            while changing:
                going.set_tdf(WATCHING_TDFS[(changes + 1) % 2])
                changes += 1
        except dilaton.ControlError:
            pass  # it is over
        going.wait()
    pauses, lost_ns, *_ = map(int, (out / "nodes/a/calls.stdout").read_text().split())
    tdf = statistics.mean(WATCHING_TDFS) if changing else WATCHING_TDFS[0]
    found = {"changes": changes, "pauses": pauses, "lost_us": lost_ns * tdf / 1e3}
    path.write_text(json.dumps(found))
    return found


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--batches", type=int, default=200, help="of 500 calls (default %(default)s)")
    parser.add_argument("--watch", default="0.5", help="virtual seconds at TDF 10; 0: no changes (default %(default)s)")
    parser.add_argument("--flow", default="3", help="virtual seconds; 0: no flow; takes strace (default %(default)s)")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-o", out / "calls", HERE / "calls.c"], check=True)
    print("| what | by the C library, us | by the kernel, us | paper, us |\n| --- | --- | --- | --- |")
    native = out / "native.txt"
    if not native.is_file():
        command = [out / "calls", "ask", str(chosen.batches)]
        native.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    library, kernel = medians_us(native.read_text(), 1)
    print(f"| gettimeofday, no virtual time | {library:.3f} | {kernel:.3f} | {PUBLISHED_US['native']} |", flush=True)
    for tdf in TDFS:
        place = out / f"ask-{tdf}"
        run(lab("pads15-calls", f"./calls ask {chosen.batches}", tdf), place)
        library, kernel = medians_us((place / "nodes/a/calls.stdout").read_text(), tdf)
        cells = f"{library:.3f} | {kernel:.3f} | {PUBLISHED_US['virtual']}"
        print(f"| gettimeofday, TDF {tdf}, of the host's CPU | {cells} |", flush=True)
    if chosen.watch != "0":
        still, moved = (watched_us(out / f"watch-{changing}", chosen.watch, changing) for changing in (False, True))
        each = (moved["lost_us"] - still["lost_us"]) / max(moved["changes"], 1)
        print(
            f"| a change of the TDF, {moved['changes']} of them | | {each:.1f} | {PUBLISHED_US['change']} |", flush=True
        )
        print(f"| pauses without changes, and with them | | {still['pauses']}, {moved['pauses']} | |", flush=True)
    if chosen.flow != "0":
        run(flow_lab(chosen.flow), out / "flow")
        lines = [line for path in (out / "flow").glob("nodes/*/*.stderr") for line in path.read_text().splitlines()]
        # Its share of the time, seconds, microseconds of each, and how many.
        calls = sum(int(line.split()[3]) for line in lines if line.endswith(("clock_gettime", "gettimeofday")))
        cells = f"| {calls} in {chosen.flow} s | {PUBLISHED_FLOW} |"
        print(f"| readings of the clock by both ends of an iperf3 | {cells}", flush=True)


if __name__ == "__main__":
    main()
