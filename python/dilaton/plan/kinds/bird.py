"""BIRD 2 as the routing daemon of a router: OSPFv2 in one area, over all interfaces with IPv4 addresses."""

from __future__ import annotations

from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Adjacency, Site
from dilaton.plan.model import OwnFile, Process, ReadyOutput

CONFIG = "/etc/dilaton/bird.conf"

HEAD = """log stderr all;
router id {router_id};
protocol device {{ }}
protocol kernel {{ merge paths on; ipv4 {{ import none; export where source ~ [ RTS_OSPF, RTS_OSPF_IA ]; }}; }}
protocol ospf v2 {{
  ecmp on;
  ipv4 {{ import all; export none; }};
  area 0 {{
    interface "lo" {{ stub on; }};
"""
TAIL = """  };
}
"""


def parts(site: Site) -> tuple[list[OwnFile], list[Process]]:
    """The configuration and the process."""
    files = [OwnFile(path=CONFIG, text=site.node.config.text if site.node.config else _generate(site))]
    argv = ["bird", "-f", "-c", CONFIG, "-s", "/run/bird.ctl"]
    return files, [daemon(site.name, "bird", argv, ReadyOutput(regex="Started"))]


def _generate(site: Site) -> str:
    interfaces = "".join(f"    {_interface(adjacency)}\n" for adjacency in site.adjacencies)
    return HEAD.format(router_id=site.router_id) + interfaces + TAIL


def _interface(adjacency: Adjacency) -> str:
    kind = "type ptp; " if adjacency.is_point_to_point else ""
    stub = "stub on; " if adjacency.is_stub else ""
    return f'interface "{adjacency.interface}" {{ cost {adjacency.cost}; {kind}{stub}}};'
