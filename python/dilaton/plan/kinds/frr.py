"""FRR as the routing daemon of a router: zebra and ospfd, OSPFv2 in one area, over all interfaces with addresses."""

from __future__ import annotations

from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Adjacency, Site
from dilaton.plan.model import OwnFile, Process, ReadyTcp

PROGRAMS = "/usr/lib/frr"
ZEBRA_CONFIG, OSPFD_CONFIG = "/etc/dilaton/zebra.conf", "/etc/dilaton/ospfd.conf"
ZEBRA_PORT, OSPFD_PORT = 2601, 2604
"""The ports of their terminals, on which they listen once they are ready."""

PATHS_MAX = 16

START = "mkdir -p /run/frr && chown frr:frr /run/frr && exec {program} -f {config} -A 127.0.0.1 --log stdout"
"""FRR runs as its own user, which makes sockets in its own directory of /run."""


def parts(site: Site) -> tuple[list[OwnFile], list[Process]]:
    """The configurations and the processes; a given configuration is ospfd's."""
    files = [
        OwnFile(path=ZEBRA_CONFIG, text=f"hostname {site.name}\n"),
        OwnFile(path=OSPFD_CONFIG, text=site.node.config.text if site.node.config else _generate(site)),
    ]
    zebra = daemon(site.name, "zebra", _command("zebra", ZEBRA_CONFIG), ReadyTcp(port=ZEBRA_PORT))
    ospfd = daemon(site.name, "ospfd", _command("ospfd", OSPFD_CONFIG), ReadyTcp(port=OSPFD_PORT), [zebra.name])
    return files, [zebra, ospfd]


def _command(program: str, config: str) -> list[str]:
    return ["sh", "-c", START.format(program=f"{PROGRAMS}/{program}", config=config)]


def _generate(site: Site) -> str:
    lines = [f"hostname {site.name}", "interface lo", " ip ospf area 0"]
    for adjacency in site.adjacencies:
        lines += _interface(adjacency)
    lines += ["router ospf", f" ospf router-id {site.router_id}", f" maximum-paths {PATHS_MAX}", ""]
    return "\n".join(lines)


def _interface(adjacency: Adjacency) -> list[str]:
    lines = [f"interface {adjacency.interface}", " ip ospf area 0", f" ip ospf cost {adjacency.cost}"]
    if adjacency.is_point_to_point:
        lines.append(" ip ospf network point-to-point")
    if adjacency.is_stub:
        lines.append(" ip ospf passive")
    return lines
