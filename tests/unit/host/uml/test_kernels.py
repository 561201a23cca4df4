"""Which kernel guests run, and how one of our own is configured, found and described; without building any."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dilaton.host.errors import HostLacksError
from dilaton.host.here.guests import kernel as starts
from dilaton.host.here.jail import jail
from dilaton.host.here.uml import interface, kernel_build, kernels, sharing
from dilaton.host.here.uml.kernel_build import BuildError, build, kconfig, lacking
from tests.conftest import ROOT, dilaton, environment
from tests.unit.host.uml.test_interface import kernel

RELEASE = "6.12.1-dilaton-00c0ffee"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has built and chosen nothing."""
    monkeypatch.delenv(kernels.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def built(source_sha256: str = "", fragment_sha256: str = "") -> Path:
    """The directory of a kernel of our own, which somebody has built."""
    directory = kernels.cache() / RELEASE
    directory.mkdir(parents=True)
    made = kernels.Built(RELEASE, "/usr/src/linux.tar.xz", source_sha256, fragment_sha256, "ab", ("CONFIG_NEW",))
    (directory / "kernel.json").write_text(kernels.describe(made))
    return directory


def made(program: Path, imports: frozenset[str], contents: bytes) -> None:
    """A kernel that imports these, with that in it."""
    kernel(program, imports)
    program.write_bytes(program.read_bytes() + contents)
    interface.why_no_seccomp.cache_clear()


def test_guests_run_the_stock_kernel_unless_another_is_chosen() -> None:
    assert kernels.chosen_name() == kernels.DEBIAN
    directory = built()
    assert kernels.choose(RELEASE).program == directory / "linux.uml"
    assert kernels.chosen().name == RELEASE
    kernels.choose(kernels.DEBIAN)
    assert kernels.chosen_name() == kernels.DEBIAN


def test_the_environment_is_heard_before_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    built()
    kernels.choose(RELEASE)
    monkeypatch.setenv(kernels.VARIABLE, kernels.DEBIAN)
    assert kernels.chosen_name() == kernels.DEBIAN


@pytest.mark.parametrize("name", ["6.12.9-dilaton-gone", "../kernels", "Debian"])
def test_a_kernel_that_is_not_there_is_not_chosen_and_those_that_are_are_named(name: str) -> None:
    built()
    with pytest.raises(HostLacksError, match=f"{name}.*debian, {RELEASE}"):
        kernels.choose(name)
    assert kernels.chosen_name() == kernels.DEBIAN


def test_a_kernel_that_was_chosen_and_is_gone_is_not_replaced_by_another() -> None:
    built()
    kernels.choose(RELEASE)
    (kernels.cache() / RELEASE / "kernel.json").unlink()
    with pytest.raises(HostLacksError, match=RELEASE):
        kernels.chosen()
    assert dilaton("kernel", "list").returncode == 1


def test_a_kernel_tells_what_it_was_made_of() -> None:
    directory = built(source_sha256="12")
    (kernel,) = kernels.own()
    assert kernel.built == kernels.Built(RELEASE, "/usr/src/linux.tar.xz", "12", "", "ab", ("CONFIG_NEW",))
    assert kernel.modules == directory / "modules"
    assert kernel.identity() == kernels.Identity(str(directory / "linux.uml"), "ab")


def test_a_kernel_runs_without_tracing_only_where_its_file_has_the_argument_and_imports_what_that_takes() -> None:
    directory = built()
    way = RELEASE + kernels.SECCOMP
    imports = interface.SECCOMP_DUTY.ways[0]
    for imported, argument in ((imports, b""), (imports - {"syscall"}, interface.SECCOMP_ARGUMENT)):
        made(directory / "linux.uml", imported, argument)
        with pytest.raises(HostLacksError, match=r"does not run programs without tracing them: Linux 6\.16"):
            kernels.choose(way)
    made(directory / "linux.uml", imports, interface.SECCOMP_ARGUMENT)
    kernels.choose(way)
    assert (kernels.chosen().name, kernels.chosen().has_seccomp) == (way, True)
    assert kernels.chosen().identity() == kernels.Identity(str(directory / "linux.uml"), "ab", has_seccomp=True)
    assert [kernel.name for kernel in kernels.there()] == [RELEASE, way]
    with pytest.raises(HostLacksError, match="there is no kernel"):
        kernels.choose(way + kernels.SECCOMP)


def test_the_list_shows_all_kernels_and_which_one_guests_run() -> None:
    built()
    listed = dilaton("kernel", "list", env=environment() | {kernels.VARIABLE: RELEASE}).stdout.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["debian", "the"], ["*", RELEASE]]


def test_a_source_with_the_same_fragment_is_not_built_twice(home: Path) -> None:
    archive = home / "linux.tar.xz"
    archive.write_bytes(b"Linux")
    built(kernels.sha256(archive), kernels.sha256(kernels.FRAGMENT))
    said: list[str] = []
    assert build(archive, said.append).name == RELEASE
    assert "already" in said[0]


def test_what_is_no_source_is_refused_and_leaves_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built, for which not all machines have the tools."""
    monkeypatch.setattr(kernel_build, "TOOLS", {"tar": "tar"})
    with pytest.raises(BuildError, match="neither a tree of Linux nor an archive"):
        build(home, print)
    archive = home / "other.tar"
    subprocess.run(["tar", "-cf", archive, "-C", "/usr/share/doc", "bash"], check=True)
    with pytest.raises(BuildError, match="not an archive of Linux"):
        build(archive, print)
    assert [path.name for path in kernels.cache().iterdir()] == ["build.lock"]


def test_a_missing_package_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_build, "SOURCE", home / "none")
    with pytest.raises(HostLacksError) as caught:
        build(None, print)
    assert caught.value.fix == "sudo apt-get install linux-source-6.12"


def test_what_the_clock_asks_for_is_found_in_a_stripped_kernel_and_nothing_else(tmp_path: Path) -> None:
    source, program, stripped = (tmp_path / name for name in ("x.c", "linux", "linux.uml"))
    names = (*sharing.FUNCTIONS, "other", "main")
    source.write_text("".join(f"int {name}(void) {{ return 0; }}\n" for name in names))
    subprocess.run(["cc", "-no-pie", "-o", program, source], check=True)
    kernel_build.strip(program, stripped, tmp_path / "log")
    assert [sharing.address(stripped, name) for name in sharing.FUNCTIONS] == [
        sharing.address(program, name) for name in sharing.FUNCTIONS
    ]
    assert all(sharing.address(stripped, name) for name in sharing.FUNCTIONS)
    assert sharing.address(program, "other") and not sharing.address(stripped, "other")


def test_our_ticks_come_before_those_of_the_source() -> None:
    top = 'mainmenu "Linux"\n\nsource "init/Kconfig"\n\nsource "net/Kconfig"\n'
    assert kconfig(top) == (
        'mainmenu "Linux"\n\nconfig HZ\n\tint\n\tdefault 1000\n\nsource "init/Kconfig"\n\nsource "net/Kconfig"\n'
    )


def test_options_that_a_source_does_not_have_are_found() -> None:
    fragment = "# words\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\n"
    assert lacking(fragment, "CONFIG_A=y\nCONFIG_D=y\n# CONFIG_B is not set\n") == ("CONFIG_B", "CONFIG_D")


def test_the_fragment_names_no_option_twice_and_builds_no_modules() -> None:
    options = [line.split("=")[0] for line in kernels.FRAGMENT.read_text().splitlines() if line.startswith("CONFIG")]
    assert len(options) == len(set(options))
    assert not [line for line in kernels.FRAGMENT.read_text().splitlines() if line.endswith("=m")]


def test_a_kernel_may_bring_its_libraries_and_then_runs_in_a_jail_alone() -> None:
    directory = built()
    assert kernels.named(RELEASE).libraries is None
    (directory / "lib").mkdir()
    assert kernels.named(RELEASE).libraries == directory / "lib"
    nothing: Any = None
    starting = starts.Kernel(
        starts.Wanted("guest0", 1 << 28), starts.Placement(None, jailed=False), nothing, (), 0, nothing
    )
    kernels.choose(RELEASE)
    with pytest.raises(HostLacksError, match=f"{RELEASE} finds its libraries only in a jail"):
        asyncio.run(starting.spawn())


def test_the_loader_of_a_fetched_kernel_is_that_of_the_jail() -> None:
    spec = importlib.util.spec_from_file_location("kernels", ROOT / "scripts" / "kernels.py")
    assert spec and spec.loader
    fetching = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fetching)
    usual = b"/lib64/ld-linux-x86-64.so.2\0"
    changed = fetching._with_loader(b"\x7fELF" + usual + b"rest", jail.KERNEL / "ld.so")
    assert changed == b"\x7fELF/tmp/dilaton/kernel/ld.so\0\0\0rest"
    for other in (b"\x7fELF", usual + usual):
        with pytest.raises(fetching.FetchError, match="does not name its loader"):
            fetching._with_loader(other, jail.KERNEL / "ld.so")
    with pytest.raises(fetching.FetchError, match="does not name its loader"):
        fetching._with_loader(usual, jail.KERNEL / "too" / "long")
