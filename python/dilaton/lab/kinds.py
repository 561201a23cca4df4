"""The kinds of nodes. What a run makes of each is in `plan/kinds`, one file a kind."""

from __future__ import annotations

from typing import Final

HOST: Final = "host"
ROUTER: Final = "router"
SWITCH: Final = "switch"

KINDS: Final = (HOST, ROUTER, SWITCH)

SWITCHES: Final = frozenset({SWITCH})
"""Kinds that pass frames on by their Ethernet addresses, and have no IP address."""
