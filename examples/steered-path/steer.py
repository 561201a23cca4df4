"""Runs the lab beside this file, and moves the far end of its link away at exactly 5 s of virtual time.

python steer.py [RUN_DIR]
"""

from __future__ import annotations

import sys
from pathlib import Path

import dilaton


def main(out: str | None) -> None:
    """Prints the round-trip times before and after."""
    with dilaton.start(Path(__file__).parent, out=out, hold_at="5s") as run:
        print(f"held at {run.clock.virtual_s} s of virtual time, TDF {run.clock.tdf:g}")
        run.link("a--b").set(delay="30ms")
        run.release()
        measured = run.wait()
    samples = measured.processes.set_index("name").result["ping"]["samples"]
    for when, some in (("before", samples[:45]), ("after", samples[55:])):
        print(f"{when}: round trips of {1e3 * min(some):.1f} to {1e3 * max(some):.1f} ms")


if __name__ == "__main__":
    main(*(sys.argv[1:2] or [None]))
