"""The programs and files of this machine as nodes see them, and the packages that programs are in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dilaton.host import distribution
from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml import kernels

PACKAGES = {
    "ITGRecv": "d-itg",
    "ITGSend": "d-itg",
    "ab": "apache2-utils",
    "aria2c": "aria2",
    "bird": "bird2",
    "/usr/lib/frr/ospf6d": "frr",
    "/usr/lib/frr/ospfd": "frr",
    "/usr/lib/frr/bgpd": "frr",
    "/usr/lib/frr/staticd": "frr",
    "/usr/lib/frr/zebra": "frr",
    "/usr/sbin/apache2": "apache2",
    "curl": "curl",
    "dbench": "dbench",
    "dig": "bind9-dnsutils",
    "dnsmasq": "dnsmasq-base",
    "etcd": "etcd-server",
    "ethtool": "ethtool",
    "fio": "fio",
    "flent": "flent",
    "iperf": "iperf",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "mariadbd": "mariadb-server-core",
    "mn": "mininet",
    "mtr": "mtr-tiny",
    "nc": "netcat-openbsd",
    "netperf": "netperf",
    "netserver": "netperf",
    "nginx": "nginx-light",
    "nmap": "nmap",
    "node": "nodejs",
    "ovs-ofctl": "openvswitch-switch",
    "ovs-testcontroller": "openvswitch-testcontroller",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-switch",
    "ping": "iputils-ping",
    "python3": "python3",
    "redis-server": "redis-server",
    "sh": "dash",
    "socat": "socat",
    "ss": "iproute2",
    "stress-ng": "stress-ng",
    "tc": "iproute2",
    "tcpdump": "tcpdump",
    "traceroute": "traceroute",
    "tracepath": "iputils-tracepath",
    "tshark": "tshark",
    "vtysh": "frr",
    "wget": "wget",
    "wireshark": "wireshark",
    "wrk": "wrk",
    "x-terminal-emulator": "xterm",
    "xterm": "xterm",
}
"""The Debian package that brings each program that examples, documents and newcomers use; netperf is in non-free."""

HIDDEN = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/dev")))  # noqa: S108 - of nodes, which have their own
ALWAYS_THERE = frozenset({"cubic", "reno"})
"""The congestion controls that kernels have built in."""


def fix(lacking: Sequence[str]) -> str:
    """The command that installs programs; of those in no package that is known, what finds it."""
    return distribution.here().fix((program, PACKAGES.get(program)) for program in lacking)


def executes(program: str, search: str) -> bool:
    """Whether nodes find a program, by its path, or its name and a PATH."""
    places = [program] if "/" in program else [os.path.join(place, program) for place in search.split(":") if place]
    return any(reads(place) and os.access(place, os.X_OK) for place in places)


def reads(path: str) -> bool:
    """Whether nodes see a file of this machine."""
    return os.path.exists(path) and not _is_hidden(path)


def hides(path: str) -> bool:
    """Whether this machine has a file that nodes do not see."""
    return os.path.isabs(path) and os.path.exists(path) and _is_hidden(path)


def _is_hidden(path: str) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(place) for place in HIDDEN) and not real.is_relative_to("/dev/null")


def congestion_controls() -> frozenset[str] | None:
    """The congestion controls that guests have; None where that is not to be told from modules."""
    try:
        kernel = kernels.chosen()
    except HostLacksError:
        return None
    modules = list((kernel.modules or kernels.DEBIANS_MODULES).glob("*/kernel/net/ipv4/tcp_*.ko*"))
    if not modules:
        return None
    return ALWAYS_THERE | {path.name.partition(".")[0].removeprefix("tcp_") for path in modules}
