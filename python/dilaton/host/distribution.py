"""How programs come to this machine: the command of its distribution that installs them.

Our lists name Debian's packages. Where another distribution calls one of the few that every lab needs differently, or
Ubuntu lacks it, that is said here; of any other program the distribution itself can tell in which package it is.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

Program = tuple[str, str | None]
"""A program, and the package of Debian that has it, where that is known."""


@dataclass(frozen=True)
class Distribution:
    """What an administrator types to get programs.

    Attributes:
        install: installs the packages that follow.
        find: what helps to get the program `{}`, where its package is not known.
        packages: what packages of Debian are called here; others of Debian are not known by name.
        lacks: Debian's packages that are not here.
        is_debian: whether every other package is called as in Debian.
    """

    install: str
    find: str
    packages: Mapping[str, str] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    is_debian: bool = False

    def package(self, debian: str) -> str | None:
        """What a package of Debian is called here; None where that is not known."""
        if debian in self.lacks:
            return None
        return self.packages.get(debian, debian if self.is_debian else None)

    def fix(self, wanted: Iterable[Program]) -> str:
        """The commands that help where programs are missing.

        Args:
            wanted: What is missing.
        """
        packages = {program: self.package(debian) if debian else None for program, debian in wanted}
        named = dict.fromkeys(package for package in packages.values() if package)
        unknown = dict.fromkeys(program.rpartition("/")[2] for program, package in packages.items() if not package)
        fixes = [f"{self.install} {' '.join(named)}"] if named else []
        return "; then ".join(fixes + [self.find.format(program) for program in unknown])


APT = "sudo apt-get install"
APT_FIND = "apt-file search -x '/{}$' names the package"
COMMON = {name: name for name in ("bubblewrap", "iperf3", "iproute2", "e2fsprogs")} | {"iputils-ping": "iputils"}
"""What labs use, and the jail."""

DEBIAN = Distribution(APT, APT_FIND, is_debian=True)
UBUNTU = Distribution(APT, APT_FIND, lacks=frozenset({"user-mode-linux"}), is_debian=True)
FEDORA = Distribution("sudo dnf install", "dnf provides '*/bin/{}' names the package", COMMON | {"iproute2": "iproute"})
ARCH = Distribution("sudo pacman -S", "pacman -F {} names the package", COMMON)
SUSE = Distribution("sudo zypper install", "cnf {} names the package", COMMON | {"iperf3": "iperf"})
OTHER = Distribution("", "let an administrator install {}")

BY_ID = {
    "ubuntu": UBUNTU,
    "debian": DEBIAN,
    "fedora": FEDORA,
    "rhel": FEDORA,
    "centos": FEDORA,
    "arch": ARCH,
    "suse": SUSE,
    "opensuse": SUSE,
}
"""Distributions, by the identifiers of os-release(5). Ubuntu, which calls itself like Debian, comes before it."""


def of(os_release: Mapping[str, str]) -> Distribution:
    """The distribution that os-release(5) describes, or the one that it is made from."""
    said = [os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()]
    return next((found for name, found in BY_ID.items() if name in said), OTHER)


@cache
def here() -> Distribution:
    """This machine's."""
    try:
        return of(platform.freedesktop_os_release())
    except OSError:
        return OTHER


def fix(program: str, debian: str) -> str:
    """What installs a program here that is in this package of Debian."""
    return here().fix([(program, debian)])
