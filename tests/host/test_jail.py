"""A guest can write nowhere but into its run directory, whatever its root user tries."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import RunLab

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


NO_NETWORK = """
name: no-network
nodes: {a: {}}
run:
  - {on: a, name: interfaces, exec: ls /sys/class/net}
"""


def test_a_node_sees_its_own_interfaces_only(run_lab: RunLab) -> None:
    outcome = run_lab(NO_NETWORK)
    assert outcome.stdout("a", "interfaces").split() == ["lo"]
