"""`controller`: an end system with an OpenFlow controller that makes learning switches of those who connect to it.

It is ovs-testcontroller(8) of Open vSwitch. Whoever wants another one writes it under `run`, on a host.
"""

from __future__ import annotations

from dilaton.lab.kinds import OPENFLOW_PORT
from dilaton.plan.kinds.daemon import daemon
from dilaton.plan.kinds.recipe import Parts, Recipe, Site
from dilaton.plan.model import ReadyTcp


def make(site: Site) -> Parts:
    """The controller's process."""
    argv = ["ovs-testcontroller", "--unixctl=none", f"ptcp:{OPENFLOW_PORT}"]
    return Parts(processes=[daemon(site.name, "controller", argv, ReadyTcp(port=OPENFLOW_PORT))])


RECIPE = Recipe(forwards=lambda interfaces: False, make=make)
