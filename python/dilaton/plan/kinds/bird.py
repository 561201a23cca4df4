"""BIRD 2 as the routing daemon of a router.

With OSPF: OSPFv2, and OSPFv3 for IPv6, in one area over all its interfaces. With BGP: a session with every router
behind them, which is told of the networks that it is itself on and of all that it has learnt.
"""

from __future__ import annotations

from collections.abc import Sequence

from dilaton.lab.beside.configs import FileText
from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Adjacency, Site
from dilaton.plan.model import OwnFile, Process, ReadyOutput
from dilaton.plan.network.addresses import Version

CONFIG = "/etc/dilaton/bird.conf"

HEAD = """log stderr all;
router id {router_id};
protocol device {{ }}
"""
KERNEL = """protocol kernel {{
  merge paths on;
  ipv{version} {{ import none; export where source ~ [ RTS_OSPF, RTS_OSPF_IA ]; }};
}}
"""
OSPF = """protocol ospf v{protocol} {{
  ecmp on;
  ipv{version} {{ import all; export none; }};
  area 0 {{
{networks}  }};
}}
"""
BGP_HEAD = """protocol direct {{
{channels}}}
"""
BGP_KERNEL = """protocol kernel {{
  merge paths on;
  ipv{version} {{ import none; export where source = RTS_BGP; }};
}}
"""
BGP = """protocol bgp {name} {{
  local as {as_number};
  neighbor {peer.address} as {peer.as_number};
  ipv{peer.version} {{ import all; export where source ~ [ RTS_BGP, RTS_DEVICE ]; }};
}}
"""
PROTOCOLS: dict[Version, int] = {4: 2, 6: 3}
"""The version of OSPF that each version of IP takes."""


def parts(site: Site) -> tuple[list[OwnFile], list[Process]]:
    """The configuration and the process."""
    given = site.node.config
    return own_parts(site, given.text if isinstance(given, FileText) else _generate(site))


def own_parts(site: Site, text: str) -> tuple[list[OwnFile], list[Process]]:
    """The same for a configuration that is given."""
    files = [OwnFile(path=CONFIG, text=text)]
    argv = ["bird", "-f", "-c", CONFIG, "-s", "/run/bird.ctl"]
    return files, [daemon(site.name, "bird", argv, ReadyOutput(regex="Started"))]


def _generate(site: Site) -> str:
    versions = [version for version in PROTOCOLS if any(version in one.versions for one in site.adjacencies)]
    head = HEAD.format(router_id=site.router_id)
    if site.as_number is not None:
        return head + _bgp(site, versions)
    return head + "".join(_protocols(site, version) for version in versions)


def _bgp(site: Site, versions: Sequence[Version]) -> str:
    return (
        BGP_HEAD.format(channels="".join(f"  ipv{version};\n" for version in versions))
        + "".join(BGP_KERNEL.format(version=version) for version in versions)
        + "".join(
            BGP.format(name=f"peer{number}", as_number=site.as_number, peer=peer)
            for number, peer in enumerate(site.peers, 1)
        )
    )


def _protocols(site: Site, version: Version) -> str:
    networks = [f"stubnet {site.loopbacks[version]} {{ cost 0; }};"] if version in site.loopbacks else []
    networks += [_interface(one) for one in site.adjacencies if version in one.versions]
    lines = "".join(f"    {network}\n" for network in networks)
    return KERNEL.format(version=version) + OSPF.format(protocol=PROTOCOLS[version], version=version, networks=lines)


def _interface(adjacency: Adjacency) -> str:
    kind = "type ptp; " if adjacency.is_point_to_point else ""
    stub = "stub on; " if adjacency.is_stub else ""
    return f'interface "{adjacency.interface}" {{ cost {adjacency.cost}; {kind}{stub}}};'
