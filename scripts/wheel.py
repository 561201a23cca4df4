"""Gathers what a wheel has beside the Python sources, in target/wheel: `./dev wheel`, which then builds it.

The parts that are built, without what only debuggers read; a kernel of our own (`dilaton kernel build`); the examples;
the licences of all of these. Whoever gives the wheel away owes its receivers the source of the kernel, so that is put
beside it: the archive as it was, with the configuration and how to build it again.

A wheel promises to run where libc is as old as its tag says. What was linked on a newer system may ask for functions
of a newer libc, so every program in it is looked at.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from dilaton import __version__
from dilaton.host import files
from dilaton.host.here.uml import kernels
from dilaton.host.here.uml.kernels import Built, Kernel

WHEEL = files.ROOT / "target" / "wheel"
CARRIED = WHEEL / "carried"

LICENCE_NAMES = ("LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*")

NOTICE = """# Licences of what this wheel carries

Dilaton's own code: Apache-2.0. The clock, which runs inside the kernel's process, and what it is made of: Apache-2.0 or
GPL-2.0-only, as you choose; with the kernel, the latter.

The kernel, `kernel/linux.uml`, is Linux {release}: GPL-2.0-only with Linux-syscall-note. Its source is {source}
(SHA-256 {digest}), its configuration `kernel/config`; both, and how it was built, are in {archive},
which is published beside this wheel.

The agent and the warden contain parts of the GNU C Library: LGPL-2.1-or-later. Their source is Dilaton's; its
`scripts/build.sh` links them again, with another C library if you like.

The licences themselves are beside this file; those of the Rust crates in `crates/`.
"""

HOW = """Linux {release}, as Dilaton's wheel {version} carries it, is built from {source}, which is here as it was, by

    dilaton kernel build --source {source}

of that version of Dilaton, whose kernel_build.py and kernel.config are here too. `config` is the configuration that
comes of it.
"""


class WheelError(Exception):
    """A wheel cannot be made; the message says why."""


def glibc_needed(program: Path) -> tuple[int, ...]:
    """The newest version of the GNU C Library that a program or library asks for; empty where it asks for none."""
    with program.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".gnu.version_r")
        if not isinstance(section, GNUVerNeedSection):
            return ()
        names = [entry.name for _, entries in section.iter_versions() for entry in entries]
    return max(
        (tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names if name.startswith("GLIBC_")),
        default=(),
    )


def promised_glibc() -> str:
    """The oldest version of the GNU C Library that wheels run with, as pyproject.toml has it."""
    project = tomllib.loads((files.ROOT / "pyproject.toml").read_text())
    version: str = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["glibc"]
    return version


def check_glibc(program: Path) -> None:
    """Refuses a program that asks for a newer libc than wheels promise.

    Raises:
        WheelError: It does.
    """
    needed, promised = glibc_needed(program), promised_glibc()
    if needed > tuple(map(int, promised.split("."))):
        version = ".".join(map(str, needed))
        raise WheelError(f"{program} needs glibc {version}, wheels promise {promised}: build it on an older system")


def gather(kernel: Kernel) -> None:
    """Puts everything into `CARRIED`, and the kernel's source beside it.

    Raises:
        WheelError: The kernel cannot be given away, or a program does not run everywhere.
    """
    built = publishable(kernel)
    shutil.rmtree(WHEEL, ignore_errors=True)
    CARRIED.mkdir(parents=True)
    for name, place in files.PARTS.items():
        path = files.ROOT / place
        if name == "page" and not path.is_dir():
            raise WheelError(f"{path}: the page is not built; npm builds it, and ./dev setup where there is npm")
        if path.is_dir():
            shutil.copytree(path, CARRIED / name)
        elif path.suffix == ".def":
            shutil.copy2(path, CARRIED / name)
        else:
            subprocess.run(["strip", "-o", str(CARRIED / name), str(path)], check=True)
    shutil.copytree(kernel.program.parent, CARRIED / "kernel")
    for program in (CARRIED / "libdilaton_clock.so", CARRIED / "kernel" / "linux.uml"):
        check_glibc(program)
    archive = publish(kernel, built)
    say_licences(built, archive.name)


def publishable(kernel: Kernel) -> Built:
    """What a kernel was made of, if that is an archive which is still there.

    Raises:
        WheelError: It is not.
    """
    built = kernel.built
    if built is None:
        raise WheelError(f"{kernel.name}: a wheel carries a kernel that `dilaton kernel build` has made")
    source = Path(built.source)
    if not source.is_file() or kernels.sha256(source) != built.source_sha256:
        raise WheelError(f"{source}: no longer the archive that {kernel.name} was built from; build it again")
    return built


def publish(kernel: Kernel, built: Built) -> Path:
    """Puts the kernel's complete source beside the wheel; returns the archive."""
    source, ours = Path(built.source), Path(kernels.__file__).parent
    archive = WHEEL / f"dilaton-{__version__}-linux-{built.release}.tar"
    how = WHEEL / "HOW"
    how.write_text(HOW.format(release=built.release, version=__version__, source=source.name))
    with tarfile.open(archive, "w") as tar:
        for path in (source, kernel.program.with_name("config"), kernels.FRAGMENT, ours / "kernel_build.py", how):
            tar.add(path, f"linux-{built.release}/{path.name}")
    how.unlink()
    return archive


def say_licences(built: Built, archive: str) -> None:
    """Writes what is whose, with the licences, into the wheel."""
    place = CARRIED / "licences"
    place.mkdir()
    notice = NOTICE.format(
        release=built.release, source=Path(built.source).name, digest=built.source_sha256, archive=archive
    )
    (place / "README.md").write_text(notice)
    shutil.copy2(files.ROOT / "LICENSE", place / "Apache-2.0")
    for path in (files.ROOT / "crates" / "clock").glob("GPL-*"):
        shutil.copy2(path, place / path.name)
    for name, directory in crates():
        found = [path for pattern in LICENCE_NAMES for path in directory.glob(pattern) if path.is_file()]
        (place / "crates" / name).mkdir(parents=True)
        for path in found:
            shutil.copy2(path, place / "crates" / name / path.name)


def crates() -> Iterator[tuple[str, Path]]:
    """The crates of others that our programs contain, with their sources."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"]
    told = subprocess.run(command, cwd=files.ROOT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(told)
    uses = {
        node["id"]: [use["pkg"] for use in node["deps"] if any(kind["kind"] is None for kind in use["dep_kinds"])]
        for node in metadata["resolve"]["nodes"]
    }
    wanted, found = list(metadata["workspace_members"]), set()
    while wanted:
        package = wanted.pop()
        if package not in found:
            found.add(package)
            wanted += uses[package]
    for package in metadata["packages"]:
        if package["id"] in found and package["source"]:
            yield f"{package['name']}-{package['version']}", Path(package["manifest_path"]).parent


if __name__ == "__main__":
    try:
        gather(kernels.named(sys.argv[1]))
    except WheelError as error:
        sys.exit(f"wheel: {error}")
