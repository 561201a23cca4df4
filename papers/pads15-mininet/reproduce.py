"""PADS'15, section 5: the row of switches made by Mininet itself, in virtual time, beside the lab of the same shape.

python papers/pads15-mininet/reproduce.py --out DIR [--switches 40] [--rate 100] [--tdfs 1,4] [--seconds 5]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import chain, throughputs
from sweeping import run

HERE = Path(__file__).resolve().parent


def mininet(switches: int, rate: int, tdf: str, seconds: int, out: Path) -> str:
    """What Mininet measures, in its words, for example `95.1 Mbits/sec`; kept in a file, and not measured again."""
    if not out.is_file():
        out.parent.mkdir(parents=True, exist_ok=True)
        script = "service openvswitch-switch start >/dev/null && exec /usr/bin/python3 chain.py $*"
        command = [sys.executable, "-m", "dilaton", "exec", "--tdf", tdf, "--", "sh", "-c", script, "chain"]
        command += [str(switches), str(rate), str(seconds)]
        # Without it Mininet waits for ever for a second report of iperf 2.1.
        given = {"env": os.environ | {"IPERF_INTERVAL": "1"}, "cwd": HERE, "stdin": subprocess.DEVNULL, "text": True}
        with out.with_suffix(".log").open("w") as log:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=False, **given)
        if done.returncode:
            sys.exit(f"Mininet failed; see {out.with_suffix('.log')}")
        out.write_text(done.stdout)
    return out.read_text().splitlines()[-1]


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--switches", type=int, default=40)
    parser.add_argument("--rate", type=int, default=100, help="Mbit/s; Mininet has up to 1000 (default %(default)s)")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--seconds", type=int, default=5, help="length of the flow, in virtual time")
    chosen = parser.parse_args()
    print("| switches | rate, Mbit/s | TDF | Mininet | lab, Mbit/s |\n| --- | --- | --- | --- | --- |")
    for tdf in chosen.tdfs.split(","):
        place = f"{chosen.switches}-{chosen.rate}-{tdf}"
        measured = mininet(chosen.switches, chosen.rate, tdf, chosen.seconds, chosen.out / f"mininet-{place}.txt")
        made = chain(chosen.switches, f"{chosen.rate}Mbit", tdf, "work", str(chosen.seconds), 1500)
        ours = throughputs(run(made, chosen.out / f"lab-{place}"))[0]
        print(f"| {chosen.switches} | {chosen.rate} | {tdf} | {measured} | {ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
