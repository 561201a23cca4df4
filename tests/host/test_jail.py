"""A guest can write nowhere but into its run directory, whatever its root user tries."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dilaton.host import files
from dilaton.host.here.jail import jail, limits
from tests.conftest import RunLab, started
from tests.host.processes import kernels


def tried_by_root(script: str) -> str:
    """A lab in which guest root has the whole of what its kernel sees at /tmp/host, and does this."""
    lines = ["mkdir -p /tmp/host", "mount -t hostfs -o / none /tmp/host && echo mounted", *script.strip().splitlines()]
    indented = "".join(f"        {line}\n" for line in lines)
    return (
        "name: tried\nnodes: {a: {}}\nrun:\n"
        f"  - on: a\n    name: try\n    expect_exit: any\n    exec:\n      - sh\n      - -c\n      - |\n{indented}"
    )


WRITE_OUTSIDE = """
for target in TARGETS; do
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
    outcome = run_lab(tried_by_root(WRITE_OUTSIDE.replace("TARGETS", " ".join(map(str, targets)))))
    assert "mounted" in outcome.stdout("a", "try"), "the attempt must get as far as hostfs to prove anything"
    for target in targets:
        assert not target.exists() and not Path(f"{target}.d").exists()


SECRET = "open-in-the-caller"

DISK_BYTES = 3 << 30
"""What its run directory may take; more than its memory."""

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
        started(
            "run",
            lab,
            "--out",
            out,
            "--max-disk",
            f"{DISK_BYTES >> 30}GiB",
            stderr=subprocess.PIPE,
            pass_fds=[secret.fileno()],
        ) as run,
    ):
        assert run.stderr is not None
        assert b"started" in run.stderr.readline()
        yield Path(f"/proc/{kernels(run.pid)[0]}")


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
        "/dev/shm",  # noqa: S108
        "/dev/pts",
    }


FILL = """
for place in /tmp /run /dev /dev/pts /dev/shm/deep; do
  mkdir -p /tmp/host/dev/shm/deep
  dd if=/dev/zero of=/tmp/host$place/fill bs=1M count=COUNT 2>/dev/null
  echo $place $(stat -c %s /tmp/host$place/fill)
  rm -f /tmp/host$place/fill
done
"""


def test_guest_root_takes_no_more_of_the_hosts_memory_than_the_places_of_its_jail_have(run_lab: RunLab) -> None:
    outcome = run_lab(tried_by_root(FILL.replace("COUNT", "16")))
    sizes = dict(line.partition(" ")[::2] for line in outcome.stdout("a", "try").splitlines())
    # Its own memory is in /dev/shm, where it may write what is left beside it.
    assert sizes.pop("/dev/shm/deep") == str(16 << 20)  # noqa: S108
    assert sizes.pop("/tmp") == str(16 << 20)  # noqa: S108
    assert sizes == {"mounted": "", "/run": str(jail.RUN_BYTES), "/dev": "", "/dev/pts": ""}
    outcome = run_lab(tried_by_root(FILL.replace("COUNT", "100").replace(" /dev/shm/deep;", ";")))
    sizes = dict(line.partition(" ")[::2] for line in outcome.stdout("a", "try").splitlines())
    assert jail.TMP_BYTES - (1 << 20) <= int(sizes["/tmp"]) <= jail.TMP_BYTES  # noqa: S108


REACH_OUT = """
cd /tmp/host
for file in proc/1/mem proc/self/mem proc/1/oom_score_adj proc/self/setgroups proc/sysrq-trigger \\
    proc/sys/kernel/core_pattern proc/sys/vm/drop_caches sys/kernel/mm/ksm/run; do
  test -e $file && echo "there is $file"
  echo 1 > $file && echo "wrote $file"
done
mknod tmp/dilaton/run/disk b 8 0 && echo "made a disk"
mknod tmp/dilaton/run/memory c 1 1 && echo "made memory"
cp /bin/true tmp/dilaton/run/root && chmod 755 tmp/dilaton/run/root && echo "copied"
chmod 4755 tmp/dilaton/run/root && echo "made a program of the user's"
chmod 2755 tmp/dilaton/run/root && echo "made a program of the group's"
cp -p /bin/su tmp/dilaton/run/su && test -u tmp/dilaton/run/su && echo "made a copy of one"
for process in $(ls proc | grep '^[0-9]'); do test $process = $$ || kill -9 $process 2> /dev/null; done
echo "goes on"
"""


def test_guest_root_reaches_no_process_device_or_setting_of_the_host(run_lab: RunLab) -> None:
    outcome = run_lab(tried_by_root(REACH_OUT))
    lines = outcome.stdout("a", "try").splitlines()
    assert {"mounted", "there is proc/1/mem", "there is proc/self/mem", "copied"} <= set(lines), (
        "else this proves nothing"
    )
    assert [line for line in lines if line.startswith(("wrote", "made"))] == []
    # What it kills by the numbers of its kernel's processes are processes of its own.
    assert lines[-1] == "goes on" and outcome.record["state"] == "finished"
    kinds = [path.lstat().st_mode for path in outcome.path.rglob("*")]
    assert not any(stat.S_ISBLK(mode) or stat.S_ISCHR(mode) for mode in kinds)
    assert not any(mode & (stat.S_ISUID | stat.S_ISGID) for mode in kinds if stat.S_ISREG(mode))


def test_every_place_in_memory_that_can_be_written_has_a_size(kernel: Path) -> None:
    sizes = {}
    for line in (kernel / "mountinfo").read_text().splitlines():
        fields, _, source = line.partition(" - ")
        root, place, options = fields.split()[3:6]
        kind, _, shown = source.split(maxsplit=2)
        if kind == "tmpfs" and root == "/" and "rw" in options.split(","):
            given = [option.removeprefix("size=") for option in shown.split(",") if option.startswith("size=")]
            sizes[place] = int(given[0].removesuffix("k")) << 10 if given else None
    memory = next(word for word in (kernel / "cmdline").read_text().split("\0") if word.startswith("mem="))
    memory_bytes = int(memory.removeprefix("mem=").removesuffix("M")) << 20
    assert sizes == {
        "/dev/shm": memory_bytes + jail.BESIDE_MEMORY_BYTES,  # noqa: S108
        "/tmp": jail.TMP_BYTES,  # noqa: S108
        "/run": jail.RUN_BYTES,
    }


def test_the_kernel_has_limits_of_processes_and_files_and_leaves_no_core(kernel: Path) -> None:
    # A column of 26 characters for the name, then soft and hard limit.
    found = {line[:26].strip(): line[26:].split()[:2] for line in (kernel / "limits").read_text().splitlines()}
    memory = int(next(word for word in (kernel / "cmdline").read_text().split("\0") if word.startswith("mem="))[4:-1])
    assert found["Max core file size"] == ["0", "0"]
    assert found["Max file size"] == [str(DISK_BYTES)] * 2
    assert found["Max processes"] == [str(limits.processes_max(memory << 20))] * 2
    soft, hard = found["Max open files"]
    assert soft == hard


HANDLES = ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/sys/power")
"""Files by which who may write them has power over the whole machine."""


def test_nothing_in_the_jail_has_power_over_the_machine_even_if_root_started_it(tmp_path: Path) -> None:
    script = f"for file in {' '.join(HANDLES)}; do test -w $file && echo $file; done; find /run /tmp -type s"
    bwrap = files.program("bwrap", "bubblewrap")
    command = jail.command(bwrap, jail.Parts(tmp_path, files.AGENT, files.CLOCK_LIBRARY), environment={})
    done = subprocess.run([*command, "/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_what_is_hidden_is_empty_in_the_jail_and_cannot_be_written(tmp_path: Path) -> None:
    run_dir, hidden = tmp_path / "run", files.ROOT / "target" / f"hidden-{os.getpid()}"
    run_dir.mkdir()
    (hidden / "inner").mkdir(parents=True)
    (hidden / "secret").write_text("nobody's business")
    script = f"ls -A {hidden}; touch {hidden}/x 2>/dev/null && echo written; cat {hidden}/secret 2>/dev/null; true"
    try:
        parts = jail.Parts(run_dir, files.AGENT, files.CLOCK_LIBRARY, hidden=(hidden,))
        bwrap = files.program("bwrap", "bubblewrap")
        command = [*jail.command(bwrap, parts, environment={}), "/bin/sh", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        shown = jail.command(bwrap, jail.Parts(run_dir, files.AGENT, files.CLOCK_LIBRARY), environment={})
        control = subprocess.run([*shown, "/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(hidden)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "nobody's business" in control.stdout, "it is there to be hidden"


def test_the_kernel_inherits_no_descriptor_of_the_caller(kernel: Path) -> None:
    held = [os.readlink(path) for path in (kernel / "fd").iterdir()]
    assert any("dilaton-clock" in target for target in held)
    assert [target for target in held if target.endswith(SECRET)] == []
