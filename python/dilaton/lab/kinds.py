"""The kinds of nodes. What a run makes of each is in `plan/kinds`, one file a kind."""

from __future__ import annotations

from typing import Final

HOST: Final = "host"
ROUTER: Final = "router"
SWITCH: Final = "switch"
OVS: Final = "ovs"

KINDS: Final = (HOST, ROUTER, SWITCH, OVS)

SWITCHES: Final = frozenset({SWITCH, OVS})
"""Kinds that pass frames on by their Ethernet addresses, and have no IP address."""

MANAGEMENT: Final = "mgmt"


def is_management(interface: str) -> bool:
    """Whether an interface of an Open vSwitch is for its controller, and no port of it."""
    return interface.startswith(MANAGEMENT)
