"""The kernels that guests can run: Debian's, those of our own that this user has built, and that of a wheel.

Debian's needs no build and is the default in a clone; in a wheel its own is. One of our own is a directory in the
user's cache, named by its release, and in a wheel the directory `carried/kernel`:

    ~/.cache/dilaton/kernels/6.12.117-dilaton-1a2b3c4d/
    ├── linux.uml                    the kernel
    ├── kernel.json                  what it was made of
    ├── config                       its whole configuration
    └── modules/6.12.117-dilaton-…/  what is built in, as modprobe(8) reads it; there are no modules

Beside them may be those of other suites of Debian's (`./dev kernels`), with their modules. They ask for a newer libc
than this machine may have, so they bring one, and the loader that goes with it:

    ~/.cache/dilaton/kernels/6.12.113/
    ├── linux.uml                    the kernel, which names the loader by its path in the jail
    ├── kernel.json
    ├── ld.so                        the loader
    ├── lib/libc.so.6
    └── modules/6.12.113/

Those that can do without tracing their programs are there under a second name, with `+seccomp` behind the first.

Which one guests run is what `DILATON_KERNEL` says, a name or such a directory, else what the user has chosen (a line in
~/.config/dilaton/kernel), else the default. Each is there under its name, whatever else is built.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dilaton.host import files
from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml import interface
from dilaton.host.identity import Identity

DEBIAN = "debian"
"""The name of the stock kernel."""

SECCOMP = "+seccomp"
"""Behind the name of a kernel: it does not trace its programs (docs/kernel.md)."""

VARIABLE = "DILATON_KERNEL"
"""The environment variable that names a kernel."""

DEBIANS_MODULES = Path("/usr/lib/uml/modules")
"""Where Debian's user-mode-linux puts the modules of its kernel, in a directory per version."""

FRAGMENT = Path(__file__).with_name("kernel.config")
"""What a kernel of our own is configured with."""


@dataclass(frozen=True)
class Built:
    """What a kernel of our own was made of, or one of another suite of Debian's.

    Attributes:
        release: as uname(2) says it.
        source: the archive or tree; of Debian's, the package and the suite.
        source_sha256: of the archive; empty for a tree.
        fragment_sha256: of the fragment of its configuration.
        sha256: of the kernel itself.
        missing: options of the fragment that its source does not have.
    """

    release: str
    source: str
    source_sha256: str
    fragment_sha256: str
    sha256: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel for guests.

    Attributes:
        name: `debian`, or the release.
        program: the kernel.
        modules: where a kernel of our own tells what is built in; None: where Debian has modules.
        built: what it was made of; None for Debian's.
        libraries: those that it brings; None: it runs with this machine's.
        has_seccomp: whether it lets filters of system calls tell what its programs ask for, in place of tracing them.
    """

    name: str
    program: Path
    modules: Path | None = None
    built: Built | None = None
    libraries: Path | None = None
    has_seccomp: bool = False

    def identity(self) -> Identity:
        """Which one it is; of Debian's 10 MB are read for that."""
        if self.built:
            return Identity(str(self.program), self.built.sha256, self.has_seccomp)
        return Identity(DEBIAN, sha256(self.program), self.has_seccomp)


def sha256(path: Path) -> str:
    """Returns the digest of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache() -> Path:
    """Where this user's kernels are."""
    return _home("XDG_CACHE_HOME", ".cache") / "kernels"


def choice_file() -> Path:
    """The file with the name of the kernel that the user has chosen."""
    return _home("XDG_CONFIG_HOME", ".config") / "kernel"


def _home(variable: str, default: str) -> Path:
    """A directory of ours by the XDG Base Directory Specification, which has relative paths ignored."""
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / default) / "dilaton"


def own() -> list[Kernel]:
    """The kernels that are there beside Debian's of this machine, by name, that of a wheel last."""
    places = [*sorted(cache().glob("*")), files.KERNEL]
    return [at(directory) for directory in places if (directory / "kernel.json").exists()]


def there() -> list[Kernel]:
    """Those of `own`, and behind each that can do without tracing its programs the same without."""
    ways = ([kernel, _without_tracing(kernel)] for kernel in own())
    return [kernel for pair in ways for kernel in pair if kernel]


def _without_tracing(traced: Kernel) -> Kernel | None:
    can = traced.program.exists() and not interface.why_no_seccomp(traced.program)
    return replace(traced, name=traced.name + SECCOMP, has_seccomp=True) if can else None


def at(directory: Path) -> Kernel:
    """The kernel in a directory, which is none of Debian's of this machine.

    Raises:
        OSError, ValueError, TypeError, KeyError: It has none.
    """
    described = json.loads((directory / "kernel.json").read_text())
    built = Built(**described | {"missing": tuple(described["missing"])})
    libraries = directory / "lib"
    brought = libraries if libraries.is_dir() else None
    return Kernel(built.release, directory / "linux.uml", directory / "modules", built, brought)


def describe(built: Built) -> str:
    """The text of kernel.json."""
    return json.dumps(asdict(built), indent=2) + "\n"


def default_name() -> str:
    """The name of the kernel that guests run where nothing else is chosen."""
    return at(files.KERNEL).name if (files.KERNEL / "kernel.json").exists() else DEBIAN


def fix() -> str:
    """What helps where the kernel that guests are to run is not there."""
    return f"dilaton kernel build, or dilaton kernel use {default_name()}"


def chosen_name() -> str:
    """The name of the kernel that guests run; it need not be there."""
    if name := os.environ.get(VARIABLE, ""):
        return name
    try:
        name = choice_file().read_text().strip()
    except OSError:
        name = ""
    return name or default_name()


def chosen() -> Kernel:
    """The kernel that guests run.

    Raises:
        HostLacksError: it is not there.
    """
    return named(chosen_name())


def named(name: str) -> Kernel:
    """The kernel of that name.

    Raises:
        HostLacksError: it is not there.
    """
    base, has_seccomp, rest = name.partition(SECCOMP)
    if has_seccomp and not rest:
        traced = named(base)
        if why := interface.why_no_seccomp(traced.program):
            raise HostLacksError(why, f"dilaton kernel use {traced.name}")
        return replace(traced, name=name, has_seccomp=True)
    if name == DEBIAN:
        return Kernel(DEBIAN, files.program("linux.uml", "user-mode-linux"))
    if os.path.isabs(name) and Path(name, "kernel.json").exists():
        return at(Path(name))
    there = {kernel.name: kernel for kernel in own()}
    if name not in there:
        raise HostLacksError(f"there is no kernel {name!r}; there are: {', '.join([DEBIAN, *there])}", fix())
    return there[name]


def choose(name: str) -> Kernel:
    """Lets guests run that kernel from now on, those of this user.

    Raises:
        HostLacksError: it is not there.
    """
    kernel = named(name)
    file = choice_file()
    if name == default_name():
        file.unlink(missing_ok=True)
    else:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{name}\n")
    return kernel
