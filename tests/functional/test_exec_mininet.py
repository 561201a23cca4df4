"""Unmodified Mininet in virtual time: what its own tests measure is what its links are."""

from __future__ import annotations

import subprocess

from tests.conftest import dilaton

LINKS = "tc,bw=100,delay=5ms"


def mininet(*arguments: str, prepare: str = "true") -> subprocess.CompletedProcess[str]:
    """Runs Mininet at TDF 10; it writes to standard error."""
    script = f"{prepare} && exec mn {' '.join(arguments)}"
    return dilaton("exec", "--tdf", "10", "--", "sh", "-c", script, stdin=subprocess.DEVNULL)


def test_all_hosts_reach_each_other_over_linux_bridges() -> None:
    done = mininet("--topo", "linear,3", "--switch", "lxbr", "--link", LINKS, "--test", "pingall")
    assert done.returncode == 0
    assert "0% dropped" in done.stderr


def test_all_hosts_reach_each_other_over_open_vswitches_under_a_controller() -> None:
    start = "service openvswitch-switch start > /dev/null"
    done = mininet("--topo", "linear,3", "--link", LINKS, "--test", "pingall", prepare=start)
    assert done.returncode == 0
    assert "0% dropped" in done.stderr
