"""`startup:`: a node runs FRR or BIRD with a configuration that is whole, as users of containerlab have them.

On this machine's file tree it is the machine's FRR or BIRD that runs. In an image it is the image's: the files are
where it looks for them, and its entry point starts what it is for, as in a container.
"""

from __future__ import annotations

import re

from dilaton.lab.beside.configs import DirectoryTexts, FileText
from dilaton.lab.parts.nodes import Startup
from dilaton.plan.kinds import bird, frr
from dilaton.plan.kinds.recipe import Site
from dilaton.plan.model import OwnFile, Process

SPEAKS = {
    "bgpd": r"router bgp\b|.*\bbgp community-list\b",
    "ospfd": r"router ospf(?!6)\b|\s+ip ospf\b",
    "ospf6d": r"router ospf6\b|\s+ipv6 ospf6\b",
    "ripd": r"router rip(?!ng)\b",
    "ripngd": r"router ripng\b",
    "isisd": r"router isis\b",
    "fabricd": r"router openfabric\b",
    "babeld": r"router babel\b",
    "eigrpd": r"router eigrp\b",
    "ldpd": r"mpls ldp\b",
    "pimd": r"router pim(?!6)\b|ip pim\b|\s+ip (pim|igmp)\b",
    "pim6d": r"router pim6\b|ipv6 pim\b|\s+ipv6 (pim|mld)\b",
    "nhrpd": r"\s+ip nhrp\b",
    "bfdd": r"bfd$|.*\bbfd\b",
    "vrrpd": r"\s+vrrp\b",
    "pbrd": r"pbr-map\b",
    "pathd": r"segment-routing\b",
}
"""Which lines of a configuration a daemon of FRR is for, each from its beginning."""

FRR_IN_IMAGES = "/etc/frr"
FRR_OWNER, FRR_MODE = "frr:frr", 0o640
BIRD_IN_IMAGES = "/etc/bird/bird.conf"
INTEGRATED = "service integrated-vtysh-config\n"


def parts(site: Site, startup: Startup) -> tuple[list[OwnFile], list[Process]]:
    """The files and the processes.

    Raises:
        LabError: A directory of FRR's does not say which daemons run, or names one that is not known.
    """
    in_image = site.node.image != "host"
    if isinstance(startup.bird, FileText):
        if in_image:
            return [OwnFile(path=BIRD_IN_IMAGES, text=startup.bird.text)], []
        return bird.own_parts(site, startup.bird.text)
    assert startup.frr is not None, "one of them is there"
    texts = _of_frr(startup.frr)
    if in_image:
        files = {"vtysh.conf": INTEGRATED} | texts
        return [
            OwnFile(path=f"{FRR_IN_IMAGES}/{name}", text=text, mode=FRR_MODE, owner=FRR_OWNER)
            for name, text in files.items()
        ], []
    return frr.own_parts(site, texts, "startup.frr")


def _of_frr(given: FileText | DirectoryTexts) -> dict[str, str]:
    """FRR's files: a directory's as they are; a single one is all of the configuration, and says which daemons run."""
    if isinstance(given, DirectoryTexts):
        return dict(given.texts)
    return {"daemons": _daemons(given.text), "frr.conf": given.text}


def _daemons(configuration: str) -> str:
    """FRR's file `daemons` for a configuration."""
    lines = [line.rstrip() for line in configuration.splitlines() if not line.lstrip().startswith(("!", "#"))]
    wanted = [name for name, begin in SPEAKS.items() if any(re.match(begin, line) for line in lines)]
    own = [
        *(f"{name}=yes" for name in wanted),
        "vtysh_enable=yes",
        *(f'{name}_options="-A 127.0.0.1"' for name in wanted),
    ]
    return "\n".join([*own, ""])
