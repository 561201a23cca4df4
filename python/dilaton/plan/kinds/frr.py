"""FRR as the routing daemons of a router: zebra, and those that speak to other routers.

With OSPF these are ospfd, and ospf6d for IPv6, in one area over all interfaces; with BGP it is bgpd, with a session
with every router behind them. A directory of FRR's own configuration is taken as it is: `daemons` says which daemons
run and with which options, and each reads its own file, or vtysh gives all of them their parts of `frr.conf`, as FRR's
own script would have it.

FRR looks for its files in /etc/frr, which belongs to its user on this machine and may be closed to others. So the
node's files are elsewhere, and are mounted there before the first daemon starts; vtysh finds its own there, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.beside.configs import FileText
from dilaton.plan.course.entries import Awaited
from dilaton.plan.errors import lab_error
from dilaton.plan.kinds.daemon import daemon, setup
from dilaton.plan.kinds.recipe import Adjacency, Site
from dilaton.plan.model import OwnFile, Process, ReadyTcp
from dilaton.plan.network.addresses import Version

PROGRAMS = "/usr/lib/frr"
CONFIG = "/etc/dilaton/{program}.conf"
DIRECTORY = "/etc/dilaton/frr"
PORTS = {
    "zebra": 2601,
    "ripd": 2602,
    "ripngd": 2603,
    "ospfd": 2604,
    "bgpd": 2605,
    "ospf6d": 2606,
    "isisd": 2608,
    "babeld": 2609,
    "nhrpd": 2610,
    "pimd": 2611,
    "ldpd": 2612,
    "eigrpd": 2613,
    "pbrd": 2615,
    "staticd": 2616,
    "bfdd": 2617,
    "fabricd": 2618,
    "vrrpd": 2619,
    "pathd": 2621,
    "pim6d": 2622,
}
"""The ports of their terminals, on which they listen once they are ready."""

PATHS_MAX = 16

ARGUMENTS = ["-f", CONFIG, "-A", "127.0.0.1", "--log", "stdout"]
SCRIPT = "/etc/dilaton/frr.sh"
PREPARE = f"""set -e
mkdir -p /run/frr
chown frr:frr /run/frr
mount --bind {DIRECTORY} /etc/frr
exec "$@"
"""
"""FRR runs as its own user, which makes sockets in its own directory of /run; zebra is the first to do so."""
VTYSH = "no service integrated-vtysh-config\n"
"""What vtysh writes goes to the files of the daemons."""
ALWAYS = ("zebra", "staticd")
"""The daemons that FRR runs whatever `daemons` says."""

_SETTING = re.compile(r"^[ \t]*([a-z0-9_]+)=(.*?)[ \t]*$", re.MULTILINE)
"""A line of `daemons`, which is a shell's."""


@dataclass(frozen=True)
class _Ospf:
    """What a version of IP takes: its daemon, and the words of its configuration."""

    program: str
    router: str
    interface: str


OSPF: dict[Version, _Ospf] = {
    4: _Ospf("ospfd", "router ospf\n ospf", "ip ospf"),
    6: _Ospf("ospf6d", "router ospf6\n ospf6", "ipv6 ospf6"),
}


def parts(site: Site) -> tuple[list[OwnFile], list[Process]]:
    """The configurations and the processes; a given file is ospfd's or bgpd's."""
    versions = [version for version in OSPF if any(version in one.versions for one in site.adjacencies)]
    if site.as_number is not None:
        texts = {"bgpd": _bgp(site, versions)}
    else:
        texts = {OSPF[version].program: _generate(site, version) for version in versions}
    if isinstance(site.node.config, FileText):
        texts[next(iter(texts))] = site.node.config.text
    zebra = _daemon(site.name, "zebra", [])
    others = [_daemon(site.name, program, [zebra.name]) for program in texts]
    texts["zebra"] = f"hostname {site.name}\n"
    files = [OwnFile(path=CONFIG.format(program=program), text=text) for program, text in texts.items()]
    return [*files, *_shared({"vtysh.conf": VTYSH})], [zebra, *others]


def own_parts(site: Site, texts: Mapping[str, str], field: str = "config") -> tuple[list[OwnFile], list[Process]]:
    """The files and the processes of a directory of FRR's own configuration, which a field of the node names.

    Raises:
        LabError: it does not say which daemons run, or names one that is not known.
    """
    where = f"nodes.{site.name}.{field}"
    if "daemons" not in texts:
        raise lab_error(where, "no file daemons in this directory, which says which of FRR's daemons run: bgpd=yes")
    settings = {match[1]: match[2] for match in _SETTING.finditer(texts["daemons"])}
    wanted = [name for name, value in settings.items() if value == "yes" and name.endswith("d")]
    unknown = [name for name in wanted if name not in PORTS]
    if unknown:
        raise lab_error(where, f"daemons: {unknown[0]}: not a daemon that is known; known are {', '.join(PORTS)}")
    programs = list(dict.fromkeys([*ALWAYS, *wanted]))
    processes: list[Process] = []
    for program in programs:
        options = shlex.split(settings.get(f"{program}_options", "").strip("\"'"))
        needed = {"-A": "127.0.0.1", "-P": str(PORTS[program]), "--log": "stdout"}
        added = [word for name, value in needed.items() if name not in options for word in (name, value)]
        argv = [f"{PROGRAMS}/{program}", *options, *added]
        processes.append(_process(site.name, program, argv, [process.name for process in processes[:1]]))
    if "frr.conf" in texts:
        everything = [Awaited(name=process.name, moment="milestone") for process in processes]
        vtysh = setup(site.name, "vtysh", ["vtysh", "-b"])
        processes.append(vtysh.model_copy(update={"after": everything}))
    return _shared({"vtysh.conf": "" if "frr.conf" in texts else VTYSH} | dict(texts)), processes


def _shared(texts: Mapping[str, str]) -> list[OwnFile]:
    """What is to be in /etc/frr, and what mounts it there."""
    files = [OwnFile(path=f"{DIRECTORY}/{name}", text=text) for name, text in texts.items()]
    return [OwnFile(path=SCRIPT, text=PREPARE), *files]


def _daemon(node: str, program: str, after: list[str]) -> Process:
    argv = [f"{PROGRAMS}/{program}", *(part.format(program=program) for part in ARGUMENTS)]
    return _process(node, program, argv, after)


def _process(node: str, program: str, argv: list[str], after: list[str]) -> Process:
    """The process of a daemon; that which waits for none prepares what all need."""
    if not after:
        argv = ["sh", SCRIPT, *argv]
    return daemon(node, program, argv, ReadyTcp(port=PORTS[program]), after)


def _bgp(site: Site, versions: Sequence[Version]) -> str:
    lines = [f"hostname {site.name}", f"router bgp {site.as_number}", f" bgp router-id {site.router_id}"]
    # Without these FRR sends nothing to another system, and takes no two paths through different ones.
    lines += [" no bgp ebgp-requires-policy", " no bgp default ipv4-unicast", " bgp bestpath as-path multipath-relax"]
    lines += [f" neighbor {peer.address} remote-as {peer.as_number}" for peer in site.peers]
    for version in versions:
        lines += [f" address-family ipv{version} unicast", "  redistribute connected", f"  maximum-paths {PATHS_MAX}"]
        lines += [f"  neighbor {peer.address} activate" for peer in site.peers if peer.version == version]
        lines.append(" exit-address-family")
    return "\n".join([*lines, ""])


def _generate(site: Site, version: Version) -> str:
    words = OSPF[version]
    lines = [f"hostname {site.name}", "interface lo", f" {words.interface} area 0"]
    for adjacency in site.adjacencies:
        if version in adjacency.versions:
            lines += _interface(adjacency, words.interface)
    lines += [f"{words.router} router-id {site.router_id}", f" maximum-paths {PATHS_MAX}", ""]
    return "\n".join(lines)


def _interface(adjacency: Adjacency, words: str) -> list[str]:
    lines = [f"interface {adjacency.interface}", f" {words} area 0", f" {words} cost {adjacency.cost}"]
    if adjacency.is_point_to_point:
        lines.append(f" {words} network point-to-point")
    if adjacency.is_stub:
        lines.append(f" {words} passive")
    return lines
