"""Does COUNT rounds from seed FIRST on; the status is 1 when one failed, whose directory is kept then."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.fuzz.rounds import Round, adopt
from tests.same_on_kernels import understood


def main() -> int:
    """Does the rounds."""
    count, first = map(int, [*sys.argv[1:], *("100", "0")[len(sys.argv) - 1 :]][:2])
    adopt()
    kernels = understood()
    failed: list[int] = []
    for seed in range(first, first + count):
        directory = Path(tempfile.mkdtemp(prefix=f"dilaton-fuzz-{seed}-", dir="/var/tmp"))
        round_ = Round(seed, random.Random(seed).choice(kernels), directory)
        report = round_.go()
        time = round_.lab["time"]
        said = f"seed {seed}: {time['drive']}, TDF {time['tdf']}, {round_.kernel}: {'; '.join(report.words)}"
        print(f"{said}; by hand: {', '.join(report.log)}" if report.log else said, flush=True)
        for failure in report.failures:
            print(f"  failed: {failure}\n  see {directory}; once more: ./dev fuzz 1 {seed}", flush=True)
        if report.failures:
            failed.append(seed)
        else:
            shutil.rmtree(directory)
    print(f"{count} rounds, {len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
