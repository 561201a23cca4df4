"""Building a kernel of our own: User-Mode Linux with our fragment of a configuration, in fifteen minutes of CPU.

The source is Debian's archive, or a tree that the user names, which is left as it is: all that is made goes to a
directory below the user's cache. That one has a fixed name and a lock, so that a build which was killed is cleared away
by the next one. The finished kernel gets its own name in a single step.

The configuration is what Linux takes by itself, with the fragment (`kernel.config`) in place of its own choices. Only
the frequency of ticks cannot be chosen so: for ARCH=um it is a constant of 100 Hz without a prompt. Of several defaults
of an option the first counts; so the tree is configured from a copy of its top Kconfig file that begins with ours.

Ticks: with 1,000 in a virtual second instead of 100 the guest's scheduler, its accounting of CPU time and TCP's timers
count in milliseconds instead of hundredths. An idle guest has none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dilaton.host import distribution, files
from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml import kernels, sharing
from dilaton.host.here.uml.kernels import Built, Kernel
from dilaton.host.processes import ending_with_us

SOURCE = Path("/usr/src/linux-source-6.12.tar.xz")
"""What Debian's package of that name installs."""

TICKS_HZ = 1000

TOOLS = {
    "make": "make",
    "cc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
    "depmod": "kmod",
    "strip": "binutils",
}
"""Programs that a build takes, and the Debian packages that have them."""

ROOM_BYTES = 3 << 30
"""Free space that a build takes: the unpacked source and what is compiled of it."""

SAME_EVERYWHERE = {"KBUILD_BUILD_TIMESTAMP": "@0", "KBUILD_BUILD_USER": "dilaton", "KBUILD_BUILD_HOST": "dilaton"}
"""What would tell builds of one source apart otherwise (Documentation/kbuild/reproducible-builds.rst)."""

OPTION = re.compile(r"(?:# )?(CONFIG_\w+)(?:=| is )(.*)")

Say = Callable[[str], None]
"""Told what is being done."""


class BuildError(Exception):
    """A kernel cannot be built; the message says why."""


@dataclass(frozen=True)
class Source:
    """Where the kernel comes from: an archive or a tree."""

    path: Path

    @property
    def is_archive(self) -> bool:
        """Whether it has to be unpacked."""
        return self.path.is_file()

    def sha256(self) -> str:
        """The digest of an archive; empty for a tree."""
        return kernels.sha256(self.path) if self.is_archive else ""


def build(path: Path | None, say: Say) -> Kernel:
    """The kernel made from the source at `path`, or from Debian's; built unless it was already.

    Raises:
        HostLacksError: a program, a package or room is missing.
        BuildError: the source is none, or does not build.
    """
    source = _source(path)
    digest, fragment = source.sha256(), kernels.sha256(kernels.FRAGMENT)
    for kernel in kernels.own():
        if digest and kernel.built and (kernel.built.source_sha256, kernel.built.fragment_sha256) == (digest, fragment):
            say(f"{kernel.name} is built from {source.path} already")
            return kernel
    _require_tools()
    with _workshop() as workshop:
        tree = _unpacked(source, workshop / "source", say) if source.is_archive else source.path
        return _made(_Tree(tree, workshop, fragment), source, digest, say)


def _source(path: Path | None) -> Source:
    if path is None and not SOURCE.exists():
        raise HostLacksError(f"there is no {SOURCE}", distribution.fix(SOURCE.name, "linux-source-6.12"))
    source = Source((path or SOURCE).resolve())
    if not source.is_archive and not (source.path / "arch" / "um" / "Kconfig").exists():
        raise BuildError(f"{source.path}: neither a tree of Linux nor an archive of one")
    return source


def _require_tools() -> None:
    lacks = {program: package for program, package in TOOLS.items() if not files.find_program(program)}
    if lacks:
        fix = distribution.here().fix(lacks.items())
        raise HostLacksError(f"to build a kernel takes {', '.join(lacks)}", fix)


@contextlib.contextmanager
def _workshop() -> Iterator[Path]:
    """A directory for one build at a time, which is gone afterwards; also what a killed build has left in it."""
    path = kernels.cache() / "build"
    path.parent.mkdir(parents=True, exist_ok=True)
    with (path.parent / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BuildError("another build of this user is under way") from None
        shutil.rmtree(path, ignore_errors=True)
        free_bytes = shutil.disk_usage(path.parent).free
        if free_bytes < ROOM_BYTES:
            what = f"{free_bytes >> 20:,} MiB are free in {path.parent}, and a build takes {ROOM_BYTES >> 20:,}"
            raise HostLacksError(what, "make room, or set XDG_CACHE_HOME to another place")
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _unpacked(source: Source, directory: Path, say: Say) -> Path:
    say(f"Unpacking {source.path} …")
    directory.mkdir()
    _run(["tar", "-x", "-f", str(source.path), "-C", str(directory), "--strip-components=1"], directory / "tar.log")
    if not (directory / "arch" / "um" / "Kconfig").exists():
        raise BuildError(f"{source.path}: not an archive of Linux")
    return directory


@dataclass(frozen=True)
class _Tree:
    """A tree of Linux, where it is compiled, and with what fragment."""

    path: Path
    workshop: Path
    fragment_sha256: str

    @property
    def output(self) -> Path:
        """Where what is compiled goes."""
        return self.workshop / "output"

    def make(self, *targets: str, **variables: str) -> str:
        """Runs make; returns what it says."""
        given = {
            "O": str(self.output),
            "ARCH": "um",
            "KBUILD_KCONFIG": str(self.workshop / "Kconfig"),
            "LOCALVERSION": f"-dilaton-{self.fragment_sha256[:8]}",
            **SAME_EVERYWHERE,
            **variables,
        }
        argv = ["make", "-s", "-C", str(self.path), *(f"{name}={value}" for name, value in given.items()), *targets]
        return _run(argv, self.workshop / "make.log")


def _made(tree: _Tree, source: Source, digest: str, say: Say) -> Kernel:
    tree.output.mkdir()
    (tree.workshop / "Kconfig").write_text(kconfig((tree.path / "Kconfig").read_text()))
    tree.make("alldefconfig", KCONFIG_ALLCONFIG=str(kernels.FRAGMENT))
    configuration = tree.output / ".config"
    missing = lacking(kernels.FRAGMENT.read_text(), configuration.read_text())
    if missing:
        say(f"This source has no {', '.join(missing)}: labs that need it will say so")
    release = tree.make("kernelrelease").strip().splitlines()[-1]
    say(f"Compiling Linux {release}, about fifteen minutes of CPU …")
    tree.make("linux", f"-j{len(os.sched_getaffinity(0))}")
    made = tree.workshop / "made"
    modules = made / "modules" / release
    modules.mkdir(parents=True)
    shutil.copy2(configuration, made / "config")
    strip(tree.output / "linux", made / "linux.uml", tree.workshop / "strip.log")
    for name in ("modules.builtin", "modules.builtin.modinfo"):
        shutil.copy2(tree.output / name, modules / name)
    (modules / "modules.order").touch()
    _index(modules, tree.workshop)
    program = kernels.sha256(made / "linux.uml")
    built = Built(release, str(source.path), digest, tree.fragment_sha256, program, missing)
    (made / "kernel.json").write_text(kernels.describe(built))
    directory = kernels.cache() / release
    shutil.rmtree(directory, ignore_errors=True)
    made.rename(directory)
    return kernels.named(release)


def strip(kernel: Path, stripped: Path, log: Path) -> None:
    """Copies a kernel without its symbols, but for those that the clock asks for: half the size.

    Raises:
        BuildError: it is no kernel.
    """
    program = str(files.program("strip", TOOLS["strip"]))
    kept = (f"--keep-symbol={name}" for name in sharing.FUNCTIONS)
    _run([program, *kept, "-o", str(stripped), str(kernel)], log)


def _index(modules: Path, workshop: Path) -> None:
    """Makes the indices that modprobe(8) reads, which looks for them below lib/modules of some root."""
    root = workshop / "root"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "modules").symlink_to(modules.parent)
    _run([str(files.program("depmod", TOOLS["depmod"])), "-b", str(root), modules.name], workshop / "depmod.log")


def kconfig(top: str) -> str:
    """The text of a tree's top Kconfig file, with our default for ticks before any other."""
    ours = f"config HZ\n\tint\n\tdefault {TICKS_HZ}\n\n"
    before, source, after = top.partition('source "')
    return before + ours + source + after


def lacking(fragment: str, configuration: str) -> tuple[str, ...]:
    """The options that a fragment asks for and a configuration does not have so."""
    asked, got = _options(fragment), _options(configuration)
    return tuple(option for option, value in asked.items() if got.get(option, "not set") != value)


def _options(text: str) -> dict[str, str]:
    return {match[1]: match[2] for match in map(OPTION.fullmatch, text.splitlines()) if match}


def _run(argv: list[str], log: Path) -> str:
    """Runs a program to its end, and what it starts with it; returns what it says.

    Raises:
        BuildError: with its last words.
    """
    with log.open("w") as output:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, preexec_fn=ending_with_us()
        )
    text = log.read_text(errors="replace")
    if done.returncode:
        last = "\n".join(text.splitlines()[-20:])
        raise BuildError(f"{argv[0]} failed with status {done.returncode}:\n{last}")
    return text
