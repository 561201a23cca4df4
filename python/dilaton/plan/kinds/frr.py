"""FRR as the routing daemons of a router: zebra, ospfd, and ospf6d for IPv6, in one area over all its interfaces."""

from __future__ import annotations

from dataclasses import dataclass

from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Adjacency, Site
from dilaton.plan.model import OwnFile, Process, ReadyTcp
from dilaton.plan.network.addresses import Version

PROGRAMS = "/usr/lib/frr"
CONFIG = "/etc/dilaton/{program}.conf"
PORTS = {"zebra": 2601, "ospfd": 2604, "ospf6d": 2606}
"""The ports of their terminals, on which they listen once they are ready."""

PATHS_MAX = 16

ARGUMENTS = ["-f", CONFIG, "-A", "127.0.0.1", "--log", "stdout"]
MAKE_DIRECTORY = "mkdir -p /run/frr && chown frr:frr /run/frr"
"""FRR runs as its own user, which makes sockets in its own directory of /run; zebra is the first to do so."""


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
    """The configurations and the processes; a given configuration is ospfd's."""
    versions = [version for version in OSPF if any(version in one.versions for one in site.adjacencies)]
    texts = {OSPF[version].program: _generate(site, version) for version in versions}
    if site.node.config:
        texts[OSPF[4].program] = site.node.config.text
    zebra = _daemon(site.name, "zebra", [])
    ospf = [_daemon(site.name, program, [zebra.name]) for program in texts]
    texts["zebra"] = f"hostname {site.name}\n"
    files = [OwnFile(path=CONFIG.format(program=program), text=text) for program, text in texts.items()]
    return files, [zebra, *ospf]


def _daemon(node: str, program: str, after: list[str]) -> Process:
    argv = [f"{PROGRAMS}/{program}", *(part.format(program=program) for part in ARGUMENTS)]
    if not after:
        argv = ["sh", "-c", f"{MAKE_DIRECTORY} && exec {' '.join(argv)}"]
    return daemon(node, program, argv, ReadyTcp(port=PORTS[program]), after)


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
