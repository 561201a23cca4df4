"""How long commands take from Enter to prompt, in host seconds.

    PYTHONPATH=python .venv/bin/python benches/start.py [--repeat 10] [--kernel NAME]

`./dilaton --version` is the command line alone; `./dilaton exec -- true` starts a kernel, runs a program and ends. The
least, the median and the greatest of several, taken in turns, and the median as it would be at the speed of the
reference core (`yardstick.py`). SPECIFICATION.md quotes its table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from functools import partial
from pathlib import Path

from yardstick import beside

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
    rounds = [[beside(partial(taken_s, arguments, environment)) for arguments in COMMANDS] for _ in range(asked.repeat)]
    print("| command | least, s | median | greatest | median at the reference's speed |")
    print("| --- | --- | --- | --- | --- |")
    for arguments, found in zip(COMMANDS, zip(*rounds, strict=True), strict=True):
        taken = [seconds for seconds, _ in found]
        at_reference = statistics.median(seconds * speed for seconds, speed in found)
        row = " | ".join(f"{value:.2f}" for value in (min(taken), statistics.median(taken), max(taken), at_reference))
        print(f"| dilaton {' '.join(arguments)} | {row} |")


if __name__ == "__main__":
    main()
