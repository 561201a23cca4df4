"""NEPTUNE, section 3.3: experiments at the same time, on the same machines, with the same names and addresses.

python papers/neptune-multiplexing/reproduce.py --out DIR [--at-once 1,2,4] [--repeat 4]

It prints a table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, sweep  # noqa: E402

MACHINES = 2

MEASURED = {"bulk.throughput": ("Mbit/s", 1e-6), "ping.rtt.min": ("ms", 1e3), "ping.rtt.p50": ("ms", 1e3)}
"""What is shown, and as what."""


def main() -> None:
    """Runs what is missing, and prints the table."""
    chosen = options(str(__doc__), repeat=4, at_once="1,2,4")
    rows = ["| at once | " + " | ".join(f"{name}, {unit}" for name, (unit, _) in MEASURED.items()) + " | verdicts |"]
    rows.append("| --- " * (2 + len(MEASURED)) + "|")
    for at_once in map(int, chosen.at_once.split(",")):
        out = chosen.out / f"at-once-{at_once}"
        sweep(HERE / "lab.yaml", out, [], chosen.repeat, at_once, machines=MACHINES)
        rows.append(row(at_once, pd.read_csv(out / "sweep.csv")))
    (chosen.out / "table.md").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))


def row(at_once: int, table: pd.DataFrame) -> str:
    """The least and the most of what was measured in so many experiments at once."""
    shown = [scale * table[name] for name, (_, scale) in MEASURED.items()]
    spans = [f"{values.min():.3f} to {values.max():.3f}" for values in shown]
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in table.verdict.value_counts().items())
    return f"| {at_once} | {' | '.join(spans)} | {verdicts} |"


if __name__ == "__main__":
    main()
