"""Unmodified Mininet in virtual time: what its own tests measure is what its links are."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.conftest import PATIENCE_HOST_S, dilaton, environment

NETWORK = "mn --topo linear,3 --link tc,bw=100,delay=5ms --test pingall+pingpair+iperf"

KINDS = {
    "Linux bridges": f"{NETWORK} --switch lxbr",
    "Open vSwitch under its controller": f"service openvswitch-switch start >/dev/null && {NETWORK}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_hosts_reach_each_other_and_two_have_the_rate_of_their_links(kind: str) -> None:
    # Its iperf test waits for two reports of the server, and this iperf makes one for a connection, unless it is told.
    given = {"env": environment() | {"IPERF_INTERVAL": "1"}, "stdin": subprocess.DEVNULL, "timeout": PATIENCE_HOST_S}
    done = dilaton("exec", "--tdf", "10", "--", "sh", "-c", KINDS[kind], **given)
    assert done.returncode == 0
    assert re.findall(r"(\d+)% dropped \((\d+)/", done.stderr) == [("0", "6"), ("0", "2")]
    rates = re.findall(r"'([\d.]+) Mbits/sec'", done.stderr)
    assert len(rates) == 2
    assert all(90 < float(rate) < 96 for rate in rates)


EXAMPLES = {"natnet": ("h1 ping -c 1 h0", "0% packet loss"), "linuxrouter": ("pingall", "0% dropped")}
"""Of Mininet's own, one with translated addresses and one with routes: what is typed, and what it prints then."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_mininet_runs_as_it_is(name: str) -> None:
    if name == "natnet" and dilaton("exec", "--", "modprobe", "-n", "-q", "ip_tables").returncode:
        pytest.skip("this kernel has no module ip_tables")
    typed, printed = EXAMPLES[name]
    prepare = "update-alternatives --set iptables /usr/sbin/iptables-legacy && service openvswitch-switch start"
    example = f"printf '{typed}\\nexit\\n' | /usr/bin/python3 -m mininet.examples.{name} 2>&1"
    given = {"stdin": subprocess.DEVNULL, "timeout": PATIENCE_HOST_S}
    done = dilaton("exec", "--", "sh", "-c", f"{prepare} && {example}", **given)
    assert done.returncode == 0
    assert f" {printed}" in done.stdout
