"""How fast a core of this machine is, measured once, so that labs can name speeds that mean the same on every machine.

The measure is a fixed computation: compressing a fixed text by deflate (zlib) and by Burrows and Wheeler's transform
(bzip2), as every Python has them: integers, branches, tables that fit into a core's caches, no vector units. What
comes out must have the size that it had when the unit was defined, else this machine's library does other work and its
time would mean nothing. The speed is the geometric mean of the two, each by the best of several runs, since whatever
else a machine does can only make a run longer.

The unit is the GHz-equivalent. 2.7 of them are what the core had on which it was defined: an Intel Xeon of the fourth
Scalable generation (Golden Cove), sold as 2.7 GHz, in a virtual machine. What its clock really was nobody could see.
"""

from __future__ import annotations

import bz2
import json
import math
import os
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from dilaton.host.errors import HostLacksError

VERSION = 1
"""The version of the computation; what another one measured is not compared."""

REFERENCE_GHZ = 2.7
"""The frequency of the core on which the unit was defined."""

WORDS, TEXT_WORDS, SEED = 4000, 400_000, 1
RUNS = 7


@dataclass(frozen=True)
class Part:
    """A part of the computation."""

    name: str
    work: Callable[[bytes], bytes]
    size_bytes: int
    """How many bytes come out."""
    reference_s: float
    """What the core took on which the unit was defined."""


PARTS = (
    Part("zlib", lambda text: zlib.compress(text, 6), 1078714, 0.083),
    Part("bzip2", lambda text: bz2.compress(text, 9), 688995, 0.151),
)


@dataclass(frozen=True)
class Calibration:
    """The speed of a core of this machine."""

    ghz: float
    """The speed of a core, in GHz-equivalents."""
    cpu: str
    """The model of the CPU that was measured."""
    version: int = VERSION


def calibrate(cpu: str) -> Calibration:
    """Measures the core that this runs on; takes about four seconds of it.

    Args:
        cpu: The model of this machine's CPU.

    Raises:
        HostLacksError: This machine's zlib or bzip2 does other work than that of the reference.
    """
    text = fixed_text()
    return Calibration(REFERENCE_GHZ * math.prod(part.reference_s / seconds(part, text) for part in PARTS) ** 0.5, cpu)


def seconds(part: Part, text: bytes) -> float:
    """The CPU time of a part, in seconds: the least of several runs."""
    best = math.inf
    for _ in range(RUNS):
        begin = time.thread_time()
        size_bytes = len(part.work(text))
        best = min(best, time.thread_time() - begin)
        if size_bytes != part.size_bytes:
            what = f"the {part.name} of this Python is another: it makes {size_bytes} bytes, not {part.size_bytes}"
            raise HostLacksError(what, "use a Python with the original library, or write speeds in cores of this host")
    return best


def fixed_text() -> bytes:
    """About 2.5 MB of words that a generator with a fixed seed makes, the first of them the most frequent."""
    chance = random.Random(SEED)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(letters[int(26 * chance.random() ** 2)] for _ in range(2 + n % 9)) for n in range(WORDS)]
    return " ".join(words[int(WORDS * chance.random() ** 3)] for _ in range(TEXT_WORDS)).encode()


def store(found: Calibration) -> Path:
    """Keeps a calibration for this user; where."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found)) + "\n")
    return path


def stored(cpu: str) -> Calibration | None:
    """What was measured of this model of CPU, by this computation; None: nothing."""
    try:
        found = Calibration(**json.loads(place().read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if (found.cpu, found.version) == (cpu, VERSION) else None


def place() -> Path:
    """Where the calibration of this user is: below $XDG_STATE_HOME, which is ~/.local/state unless set."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "dilaton" / "core.json"
