"""Where control groups can be made, and with what limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.host.here.jail import control_groups
from dilaton.host.here.jail.control_groups import Place
from dilaton.host.here.jail.limits import PROCESS_BYTES_MIN

V2 = "34 25 0:29 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "34 25 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
CONTAINER = "34 25 0:29 /docker/12ab /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "expected"),
    [
        ("0::/user.slice/a.scope\n", V2, "/sys/fs/cgroup/user.slice/a.scope"),
        ("4:memory:/x\n0::/\n", V2, "/sys/fs/cgroup"),
        ("0::/docker/12ab/below\n", CONTAINER, "/sys/fs/cgroup/below"),
        ("0::/docker/12abc\n", CONTAINER, None),
        ("4:memory:/x\n0::/\n", V1, None),
        ("4:memory:/x\n", V1, None),
    ],
)
def test_the_own_group_is_found(cgroup: str, mountinfo: str, expected: str | None) -> None:
    found = control_groups.own_directory(cgroup, mountinfo)
    assert found == (None if expected is None else Path(expected))


def groups(directory: Path, *, own: str | None, parent: str) -> Path:
    """The /proc directory of a process in a made-up group; with what that and its parent hand down."""
    place = directory / "groups" / "parent" / "own"
    place.mkdir(parents=True)
    for group, handed_down in ((place, own), (place.parent, parent)):
        (group / "cgroup.procs").touch()
        if handed_down is not None:
            (group / "cgroup.subtree_control").write_text(handed_down + "\n")
    (directory / "cgroup").write_text("0::/parent/own\n")
    (directory / "mountinfo").write_text(f"34 25 0:29 / {directory}/groups rw - cgroup2 cgroup2 rw\n")
    return directory


@pytest.mark.parametrize(
    ("own", "parent", "directory", "controllers"),
    [
        ("", "cpuset cpu io memory pids", "parent", ("memory", "pids", "cpu")),
        ("", "memory pids", "parent", ("memory", "pids")),
        ("memory", "cpu memory pids", "parent/own", ("memory",)),
    ],
)
def test_groups_are_made_where_controllers_are_handed_down(
    tmp_path: Path, own: str, parent: str, directory: str, controllers: tuple[str, ...]
) -> None:
    found = control_groups.find(groups(tmp_path, own=own, parent=parent))
    assert found == Place(tmp_path / "groups" / directory, controllers)


def test_where_nothing_is_handed_down_there_are_no_groups(tmp_path: Path) -> None:
    assert control_groups.find(groups(tmp_path, own="", parent="io")) is None


def test_a_guest_has_more_memory_and_processes_than_it_can_use() -> None:
    limits = control_groups.limits(1 << 30, 5, control_groups.CONTROLLERS)
    assert int(limits["memory.max"]) > 2 * (1 << 30)
    assert int(limits["pids.max"]) > (1 << 30) // PROCESS_BYTES_MIN
    assert limits["memory.oom.group"] == "1"
    assert limits["cpu.weight.nice"] == "5"
    assert set(control_groups.limits(1 << 30, 5, ("pids",))) == {"pids.max"}
