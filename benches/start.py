"""How long commands take from Enter to prompt, in host seconds.

    .venv/bin/python benches/start.py [--repeat 10] [--kernel NAME]

`./dilaton --version` is the command line alone; `./dilaton exec -- true` starts a kernel, runs a program and ends. The
least, the median and the greatest of several, taken in turns. SPECIFICATION.md quotes its table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from pathlib import Path

DILATON = Path(__file__).resolve().parents[1] / "dilaton"
COMMANDS = (["--version"], ["exec", "--", "true"])


def taken_s(arguments: list[str], environment: dict[str, str]) -> float:
    """Host seconds of one command."""
    begin = time.monotonic()
    subprocess.run([DILATON, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--kernel", help="of `dilaton kernel list`; else the one that guests run")
    asked = parser.parse_args()
    environment = dict(os.environ) | ({"DILATON_KERNEL": asked.kernel} if asked.kernel else {})
    rounds = [[taken_s(arguments, environment) for arguments in COMMANDS] for _ in range(asked.repeat)]
    print("| command | least, s | median | greatest |")
    print("| --- | --- | --- | --- |")
    for arguments, taken in zip(COMMANDS, zip(*rounds, strict=True), strict=True):
        row = " | ".join(f"{value:.2f}" for value in (min(taken), statistics.median(taken), max(taken)))
        print(f"| dilaton {' '.join(arguments)} | {row} |")


if __name__ == "__main__":
    main()
