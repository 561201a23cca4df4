"""A guest can write nowhere but into its run directory, whatever its root user tries."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.host import files, jail
from tests.conftest import RunLab, started
from tests.host.processes import descendants, name_of

ATTEMPT = """
name: escape
nodes: {{a: {{}}}}
run:
  - on: a
    name: attempt
    expect_exit: any
    exec:
      - sh
      - -c
      - |
        mkdir -p /tmp/host
        mount -t hostfs -o / none /tmp/host && echo mounted
        for target in {targets}; do
          for root in "" /tmp/host; do
            echo escaped > "$root$target" && echo "wrote $root$target"
            mkdir -p "$root$target.d"
          done
        done
        mount -o remount,rw /tmp/host; echo escaped > /tmp/host/etc/dilaton-escaped
        mknod /tmp/disk b 254 0 && cat /tmp/disk > /dev/null
        kill -9 -1 2>/dev/null
"""


def test_guest_root_cannot_write_outside_the_run_directory(run_lab: RunLab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    places = [outside, Path.home(), Path("/tmp"), Path("/dev/shm"), Path("/etc"), Path("/var/tmp")]  # noqa: S108
    targets = [place / "dilaton-escaped" for place in places]
    outcome = run_lab(ATTEMPT.format(targets=" ".join(map(str, targets))))
    assert "mounted" in outcome.stdout("a", "attempt"), "the attempt must get as far as hostfs to prove anything"
    for target in targets:
        assert not target.exists() and not Path(f"{target}.d").exists()


SECRET = "open-in-the-caller"

LAB = """
name: inside
time: {drive: wall} # the others would be over at once
nodes: {a: {}}
run: [{on: a, name: wait, exec: sleep 1000}]
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The /proc directory of a guest's kernel whose lab runs."""
    directory = tmp_path_factory.mktemp("jail")
    lab, out = directory / "lab.yaml", directory / "run"
    lab.write_text(LAB)
    with (
        (directory / SECRET).open("w") as secret,
        started("run", lab, "--out", out, stderr=subprocess.PIPE, pass_fds=[secret.fileno()]) as run,
    ):
        assert run.stderr is not None
        assert b"started" in run.stderr.readline()
        yield next(Path(f"/proc/{pid}") for pid in descendants(run.pid) if name_of(pid) == "linux.uml")


def status_of(kernel: Path) -> dict[str, str]:
    """The fields of its /proc status."""
    lines = (kernel / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_kernel_has_no_capability_and_can_gain_none(kernel: Path) -> None:
    status = status_of(kernel)
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("kind", ["user", "net", "pid", "ipc", "uts", "mnt"])
def test_the_kernel_shares_no_namespace_with_the_host(kernel: Path, kind: str) -> None:
    assert os.readlink(kernel / "ns" / kind) != os.readlink(f"/proc/self/ns/{kind}")


def test_the_kernel_has_no_network(kernel: Path) -> None:
    interfaces = [line.split(":")[0].strip() for line in (kernel / "net/dev").read_text().splitlines()[2:]]
    assert interfaces == ["lo"]


def test_the_kernel_can_write_nothing_but_the_run_directory_and_private_memory(kernel: Path) -> None:
    writable = {}
    for line in (kernel / "mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        place, options = fields.split()[4:6]
        if "rw" in options.split(","):
            writable[place] = source.split()[0]
    assert writable.pop("/tmp/dilaton/run")  # noqa: S108
    # Devices that say nothing and keep nothing; the rest is memory that goes with the jail.
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    assert {place for place in writable if writable[place] not in ("tmpfs", "devpts")} <= devices
    assert {place for place in writable if writable[place] in ("tmpfs", "devpts")} <= devices | {
        "/tmp",  # noqa: S108
        "/run",
        "/dev",
        "/dev/shm",  # noqa: S108
        "/dev/pts",
    }


HANDLES = ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/sys/power")
"""Files by which who may write them has power over the whole machine."""


def test_nothing_in_the_jail_has_power_over_the_machine_even_if_root_started_it(tmp_path: Path) -> None:
    script = f"for file in {' '.join(HANDLES)}; do test -w $file && echo $file; done; find /run /tmp -type s"
    bwrap = files.program("bwrap", "bubblewrap")
    command = jail.command(bwrap, jail.Parts(tmp_path, files.AGENT, files.CLOCK_LIBRARY), environment={})
    done = subprocess.run([*command, "/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_kernel_inherits_no_descriptor_of_the_caller(kernel: Path) -> None:
    held = [os.readlink(path) for path in (kernel / "fd").iterdir()]
    assert any("dilaton-clock" in target for target in held)
    assert [target for target in held if target.endswith(SECRET)] == []
