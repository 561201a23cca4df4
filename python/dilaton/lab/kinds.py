"""The kinds of nodes. What a run makes of each is in `plan/kinds`, one file a kind."""

from __future__ import annotations

from typing import Final

HOST: Final = "host"
ROUTER: Final = "router"
SWITCH: Final = "switch"
OVS: Final = "ovs"
NAT: Final = "nat"
CONTROLLER: Final = "controller"

KINDS: Final = (HOST, ROUTER, NAT, SWITCH, OVS, CONTROLLER)

SWITCHES: Final = frozenset({SWITCH, OVS})
"""Kinds that pass frames on by their Ethernet addresses, and have no IP address."""

TRANSIT_DEGREE_MIN: Final = 2
"""Nodes of no kind with so many links are routers."""

OPENFLOW_PORT: Final = 6653
"""Where controllers listen, unless a lab says otherwise (IANA)."""

MANAGEMENT: Final = "mgmt"


def kind_of(said: str | None, degree: int) -> str:
    """What a node is that has so many links, of the kind that its lab says; None: it says none."""
    return said or (ROUTER if degree >= TRANSIT_DEGREE_MIN else HOST)


def is_management(interface: str) -> bool:
    """Whether an interface of an Open vSwitch is for its controller, and no port of it."""
    return interface.startswith(MANAGEMENT)
