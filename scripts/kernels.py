"""Fetches the kernels of other suites of Debian's into the cache of kernels: `./dev kernels`. Tests run guests on them.

Linux 6.12 is in Debian 13, Linux 7 in sid, and both ask for their suite's libc. So both packages are fetched, by
apt-get with lists of its own and this machine's keys, and unpacked, not installed: the kernel, its modules, libc and
the loader. What names the loader in the kernel's file is made its path in the jail, which is shorter; all else is
as Debian has built it.

The mirror is this machine's, or what DEBIAN_MIRROR says. What is there is not fetched again until it is removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from dilaton.host.here.jail import jail
from dilaton.host.here.uml import kernels
from dilaton.host.here.uml.kernels import Built

SUITES = ("trixie", "sid")
PACKAGES = ("user-mode-linux", "libc6")
KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

LOADER = b"/lib64/ld-linux-x86-64.so.2\0"
"""What names the loader in a program (System V ABI, AMD64)."""

FETCH_HOST_S_MAX = 120
"""What a download may take before it counts as failed."""

CONFIGURATION = """
Dir::Etc::SourceList "{place}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State "{place}/state";
Dir::State::Lists "{place}/lists";
Dir::State::Status "{place}/status";
Dir::Cache "{place}/cache";
APT::Architecture "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "2";
"""


class FetchError(Exception):
    """A kernel could not be fetched; the message says why."""


def mirror() -> str:
    """Where this machine has Debian's packages from.

    Raises:
        FetchError: It has none from there, and nobody says where they are.
    """
    if given := os.environ.get("DEBIAN_MIRROR", ""):
        return given
    wanted = ["Identifier: Packages", "Origin: Debian", "Label: Debian"]
    told = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted], Path("/"))
    if not told.split():
        raise FetchError("this machine has no packages from a mirror of Debian's; DEBIAN_MIRROR=URL names one")
    return told.split()[0]


def fetch(suite: str, uri: str) -> None:
    """Fetches the kernel of a suite, unless it is there.

    Raises:
        FetchError: That did not work; nothing is left.
    """
    source = f"Debian's package user-mode-linux of {suite}"
    if found := [kernel.name for kernel in kernels.own() if kernel.built and kernel.built.source.startswith(source)]:
        print(f"{suite}: {found[0]} is there already")
        return
    kernels.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetched-", dir=kernels.cache()) as temporary:
        place = Path(temporary)
        version = _download(place, suite, uri)
        made = place / "made"
        release = _arranged(place / "tree", made)
        digest = kernels.sha256(made / "linux.uml")
        (made / "kernel.json").write_text(kernels.describe(Built(release, f"{source}, {version}", "", "", digest)))
        made.chmod(0o755)
        directory = kernels.cache() / release
        shutil.rmtree(directory, ignore_errors=True)
        made.rename(directory)
    print(f"{suite}: {release}, {version}")


def _download(place: Path, suite: str, uri: str) -> str:
    """Unpacks the packages of a suite in `place`/tree; the version of the kernel's."""
    for name in ("state", "lists/partial", "cache/archives/partial", "tree"):
        (place / name).mkdir(parents=True)
    (place / "status").touch()
    (place / "sources.list").write_text(f"deb [signed-by={KEYS}] {uri} {suite} main\n")
    (place / "apt.conf").write_text(CONFIGURATION.format(place=place))
    apt = ["apt-get", "--quiet", "--config-file", str(place / "apt.conf")]
    _run([*apt, "update"], place)
    _run([*apt, "download", *PACKAGES], place)
    archives = {archive.name.partition("_")[0]: archive for archive in place.glob("*.deb")}
    if missing := [name for name in PACKAGES if name not in archives]:
        raise FetchError(f"{suite}: apt-get did not download {', '.join(missing)}")
    for archive in archives.values():
        _run(["dpkg-deb", "--extract", str(archive), str(place / "tree")], place)
    return _run(["dpkg-deb", "--field", str(archives["user-mode-linux"]), "Version"], place).strip()


def _arranged(tree: Path, made: Path) -> str:
    """Puts what a kernel takes of the unpacked packages into `made`; its release."""
    libraries = tree / "usr" / "lib" / "x86_64-linux-gnu"
    (made / "lib").mkdir(parents=True)
    shutil.copy2(libraries / "libc.so.6", made / "lib")
    shutil.copy2(libraries / "ld-linux-x86-64.so.2", made / "ld.so")
    program = (tree / "usr" / "bin" / "linux.uml").read_bytes()
    (made / "linux.uml").write_bytes(_with_loader(program, jail.KERNEL / "ld.so"))
    (made / "linux.uml").chmod(0o755)
    (tree / "usr" / "lib" / "uml" / "modules").rename(made / "modules")
    (release,) = (directory.name for directory in (made / "modules").iterdir())
    return release


def _with_loader(program: bytes, loader: Path) -> bytes:
    """A program with another loader, whose path may not be longer than the usual one's."""
    name = str(loader).encode().ljust(len(LOADER), b"\0")
    if program.count(LOADER) != 1 or len(name) > len(LOADER) or not name.endswith(b"\0"):
        raise FetchError("the kernel does not name its loader as programs do")
    return program.replace(LOADER, name)


def _run(command: list[str], directory: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=True, timeout=FETCH_HOST_S_MAX
        )
    except subprocess.CalledProcessError as error:
        raise FetchError(f"{command[0]} failed with status {error.returncode}:\n{error.stderr.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(str(error)) from error
    return done.stdout


if __name__ == "__main__":
    try:
        for chosen in sys.argv[1:] or SUITES:
            fetch(chosen, mirror())
    except FetchError as error:
        sys.exit(f"kernels: {error}")
