"""Whether the event drive repeats itself: the same labs many times, alone and beside other load, compared to the byte.

PYTHONPATH=python .venv/bin/python benches/repeatable.py [--runs 10]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LABS = ("lossy-bulk", "many-pings", "asyncio-echo", "five-kernels")


def left(run: Path) -> dict[str, str]:
    """Digests of what is to be the same, by file."""
    places = [run / "events.jsonl", *(f for p in ("nodes", "measure", "captures") for f in (run / p).rglob("*"))]
    return {str(file.relative_to(run)): sha256(file.read_bytes()).hexdigest() for file in places if file.is_file()}


def once(lab: str, number: int, directory: Path) -> dict[str, str]:
    """Runs a lab, every other time with both cores busy."""
    load = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(load) for _ in range(2 * (number % 2))]
    out = directory / f"{lab}-{number}"
    try:
        command = [sys.executable, "-m", "dilaton", "run", str(ROOT / "examples" / lab / "lab.yaml")]
        subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return left(out)


def main() -> int:
    """Prints a line for each lab; the status is 1 when a byte differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each lab")
    runs = parser.parse_args().runs
    differs = False
    with tempfile.TemporaryDirectory() as directory:
        for lab in LABS:
            found = [once(lab, number, Path(directory)) for number in range(runs)]
            files = sorted({name for one in found for name in one if len({each.get(name) for each in found}) > 1})
            print(
                f"{lab}: {runs} runs, {len(found[0])} files: {', '.join(files) + ' differ' if files else 'all equal'}"
            )
            differs |= bool(files)
    return int(differs)


if __name__ == "__main__":
    raise SystemExit(main())
