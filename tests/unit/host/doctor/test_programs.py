"""The table of programs and their packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dilaton.host.here.doctor.programs import PACKAGES, congestion_controls
from dilaton.host.here.uml import kernels

ALTERNATIVES = {"nc", "mtr", "ovs-vswitchd", "traceroute", "x-terminal-emulator"}
"""Links that are made as their package is installed (update-alternatives)."""

PLACES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin")


@pytest.mark.parametrize("program", PACKAGES)
def test_a_program_is_a_name_or_a_whole_path_and_its_package_has_a_name_that_debian_allows(program: str) -> None:
    assert Path(program).is_absolute() or Path(program).name == program
    assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", PACKAGES[program])


def asked(*command: str) -> str:
    """What a program of dpkg prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="no Debian")
def test_where_a_package_is_installed_it_or_what_it_depends_on_has_the_program() -> None:
    lists = {
        path.name.removesuffix(".list").partition(":")[0]: path for path in Path("/var/lib/dpkg/info").glob("*.list")
    }
    lacking = []
    for program in PACKAGES.keys() - ALTERNATIVES:
        package = PACKAGES[program]
        described = asked("dpkg-query", "-W", "-f", "${Status} ${Pre-Depends}, ${Depends}", package)
        if described.startswith("install ok installed"):
            packages = {package, *re.findall(r"[a-z0-9][a-z0-9+.-]+", described)} & lists.keys()
            owned = {line for name in packages for line in lists[name].read_text().splitlines()}
            names = [program] if "/" in program else [f"{place}/{program}" for place in PLACES]
            lacking += [] if owned.intersection(names) else [f"{package} has no {program}"]
    assert lacking == []


def test_congestion_controls_are_those_of_the_kernel_that_was_chosen_where_it_has_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = kernels.Kernel("7.1", tmp_path / "linux.uml", modules=tmp_path / "modules")
    monkeypatch.setattr(kernels, "chosen", lambda: kernel)
    assert congestion_controls() is None, "all is built in, and does not tell its names"
    place = tmp_path / "modules/7.1/kernel/net/ipv4"
    place.mkdir(parents=True)
    for name in ("tcp_bbr.ko", "tcp_new.ko.xz"):
        (place / name).touch()
    assert congestion_controls() == {"cubic", "reno", "bbr", "new"}
