"""What a wheel carries is complete, runs where the wheel says, and is found where it is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from dilaton.host import files
from dilaton.host.here.uml import kernels
from tests.conftest import ROOT

RELEASE = "6.12.1-dilaton-00c0ffee"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`scripts/wheel.py`, which gathers into the test's own directory."""
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "scripts" / "wheel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "WHEEL", tmp_path / "wheel")
    monkeypatch.setattr(module, "CARRIED", tmp_path / "wheel" / "carried")
    return module


@pytest.fixture
def kernel(tmp_path: Path) -> kernels.Kernel:
    """What `dilaton kernel build` would leave, but for the kernel itself, which is another program."""
    directory, source = tmp_path / "cache" / RELEASE, tmp_path / "linux.tar.xz"
    (directory / "modules" / RELEASE).mkdir(parents=True)
    (directory / "modules" / RELEASE / "modules.dep").touch()
    shutil.copy2(files.CLOCK_LIBRARY, directory / "linux.uml")
    (directory / "config").write_text("CONFIG_HOSTFS=y\n")
    source.write_bytes(b"Linux")
    built = kernels.Built(RELEASE, str(source), kernels.sha256(source), "", kernels.sha256(directory / "linux.uml"))
    (directory / "kernel.json").write_text(kernels.describe(built))
    return kernels.Kernel(RELEASE, directory / "linux.uml", directory / "modules", built)


def installed(wheel: ModuleType, place: Path) -> Path:
    """A directory for PYTHONPATH with the package as the gathered wheel would install it."""
    shutil.copytree(ROOT / "python" / "dilaton", place / "dilaton")
    wheel.CARRIED.rename(place / "dilaton" / "carried")
    return place


def test_what_is_built_runs_with_the_libc_that_wheels_promise(wheel: ModuleType) -> None:
    wheel.check_glibc(files.CLOCK_LIBRARY)
    assert wheel.glibc_needed(files.CLOCK_LIBRARY) > (2,)
    assert wheel.glibc_needed(files.AGENT) == wheel.glibc_needed(files.WARDEN) == ()


def test_a_program_that_needs_a_newer_libc_is_refused(wheel: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "promised_glibc", lambda: "2.3")
    with pytest.raises(wheel.WheelError, match=r"libdilaton_clock.so needs glibc 2\.\d+, wheels promise 2.3"):
        wheel.check_glibc(files.CLOCK_LIBRARY)


def test_an_installed_dilaton_finds_all_its_parts_and_runs_its_own_kernel(
    wheel: ModuleType, kernel: kernels.Kernel, tmp_path: Path
) -> None:
    wheel.gather(kernel)
    place = installed(wheel, tmp_path / "site")
    own = {"XDG_CACHE_HOME": str(tmp_path / "none"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    environment = os.environ | {"PYTHONPATH": str(place)} | own
    environment.pop(kernels.VARIABLE, None)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=True).stdout

    carried = place / "dilaton" / "carried"
    program = "from dilaton.host import files; print(*map(files.part, files.PARTS), sep='\\n')"
    assert run("-c", program).splitlines() == [str(carried / name) for name in files.PARTS]
    assert all((carried / name).exists() for name in files.PARTS)
    assert (carried / "examples/dumbbell/lab.yaml").is_file()

    def chosen() -> str:
        return next(line.split()[1] for line in run("-m", "dilaton", "kernel", "list").splitlines() if line[0] == "*")

    assert chosen() == RELEASE
    run("-m", "dilaton", "kernel", "use", "debian")
    assert chosen() == "debian"
    run("-m", "dilaton", "kernel", "use", RELEASE)
    assert chosen() == RELEASE
    assert not (tmp_path / "config/dilaton/kernel").exists()


def test_the_source_of_the_kernel_and_all_licences_come_along(
    wheel: ModuleType, kernel: kernels.Kernel, tmp_path: Path
) -> None:
    wheel.gather(kernel)
    (archive,) = wheel.WHEEL.glob("*.tar")
    with tarfile.open(archive) as tar:
        names = {Path(name).name for name in tar.getnames()}
        source = tar.extractfile(f"linux-{RELEASE}/linux.tar.xz")
        assert source and source.read() == b"Linux"
    assert names == {"linux.tar.xz", "config", "kernel.config", "kernel_build.py", "HOW"}
    licences = wheel.CARRIED / "licences"
    assert archive.name in (licences / "README.md").read_text()
    assert "GENERAL PUBLIC LICENSE" in (licences / "GPL-2.0").read_text()
    crates = sorted((licences / "crates").iterdir())
    assert any(crate.name.startswith("libc-") for crate in crates)
    assert [crate.name for crate in crates if not any(crate.iterdir())] == []


def test_a_kernel_whose_source_is_gone_is_not_given_away(wheel: ModuleType, kernel: kernels.Kernel) -> None:
    assert kernel.built
    Path(kernel.built.source).write_bytes(b"another")
    with pytest.raises(wheel.WheelError, match="no longer the archive"):
        wheel.gather(kernel)
    with pytest.raises(wheel.WheelError, match="debian: a wheel carries a kernel that `dilaton kernel build` has made"):
        wheel.gather(kernels.Kernel("debian", Path("/usr/bin/linux.uml")))


def test_what_is_loaded_into_the_kernel_may_be_under_its_licence() -> None:
    wanted, seen = ["clock"], set()
    while wanted:
        crate = wanted.pop()
        seen.add(crate)
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        assert manifest["package"]["license"] == "Apache-2.0 OR GPL-2.0-only", crate
        uses = (use for use in manifest.get("dependencies", {}).values() if "path" in use)
        wanted += {use["path"].removeprefix("../") for use in uses} - seen
    assert {"virtual-time", "wire", "disk"} <= seen
