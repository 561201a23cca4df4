"""Where the built parts of Dilaton and the kernel of the guests are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dilaton.host.errors import HostLacksError

ROOT = Path(__file__).resolve().parents[3]
CLOCK_PAGE_DEFINITION = ROOT / "crates" / "clock" / "clock-page.def"
WIRE_DEFINITION = ROOT / "crates" / "wire" / "wire.def"
CLOCK_LIBRARY = ROOT / "target" / "release" / "libdilaton_clock.so"
AGENT = ROOT / "target" / "x86_64-unknown-linux-gnu" / "release" / "dilaton-agent"

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
        raise HostLacksError(f"the program {name} is not installed", f"sudo apt-get install {package}")
    return Path(found)
