"""Where the parts of Dilaton are that are not Python: where a clone builds them, in a wheel beside the sources."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dilaton.host import distribution
from dilaton.host.errors import HostLacksError

ROOT = Path(__file__).resolve().parents[3]
"""The root of a clone."""

CARRIED = Path(__file__).resolve().parents[1] / "carried"
"""What a wheel has beside the sources; `scripts/wheel.py` gathers it. A clone has none."""

STATIC = "target/x86_64-unknown-linux-gnu/release"
PARTS = {
    "libdilaton_clock.so": "target/release/libdilaton_clock.so",
    "dilaton-agent": f"{STATIC}/dilaton-agent",
    "dilaton-warden": f"{STATIC}/dilaton-warden",
    "dilaton-relay": f"{STATIC}/dilaton-relay",
    "clock-page.def": "crates/clock/clock-page.def",
    "wire.def": "crates/wire/wire.def",
    "examples": "examples",
    "page": "target/page",
}
"""The parts by their names in a wheel, and where a clone has them."""


def part(name: str) -> Path:
    """Where a part is; it need not have been built."""
    return CARRIED / name if CARRIED.is_dir() else ROOT / PARTS[name]


CLOCK_LIBRARY = part("libdilaton_clock.so")
AGENT = part("dilaton-agent")
WARDEN = part("dilaton-warden")
RELAY = part("dilaton-relay")
CLOCK_PAGE_DEFINITION = part("clock-page.def")
WIRE_DEFINITION = part("wire.def")
EXAMPLES = part("examples")
PAGE = part("page")
"""What browsers get, built from web/; a clone has none where there was no npm."""
KERNEL = CARRIED / "kernel"
"""The kernel of a wheel, a directory like those that `dilaton kernel build` makes."""

SYSTEM_PATH = "/usr/sbin:/sbin"
"""Directories of programs that Debian leaves out of an ordinary user's PATH."""


def built(path: Path) -> Path:
    """`path`, a part that `./dev setup` builds.

    Raises:
        HostLacksError: when it has not been built.
    """
    if not path.exists():
        raise HostLacksError(f"{path.name} is not built", "./dev setup")
    return path


def find_program(name: str) -> str | None:
    """The path of a program of this machine, or of its administrator's; None when it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")


def program(name: str, package: str) -> Path:
    """The path of a program of this machine.

    Raises:
        HostLacksError: when it is not installed; `package` is the Debian package that has it.
    """
    found = find_program(name)
    if found is None:
        raise HostLacksError(f"the program {name} is not installed", distribution.fix(name, package))
    return Path(found)
