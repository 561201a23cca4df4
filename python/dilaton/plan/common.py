"""What is the same in every plan."""

from __future__ import annotations

from typing import Final

FORMAT: Final = 20
"""The format of plans, as `model.py` and the agent know it."""

MODULES = ("ipv6", "overlay", "veth", "sch_netem")
"""`ipv6` is for programs that want ::1 or listen on `::`; the others make nodes, links and what most links do."""

GRACE_NS = 10**9
"""A second of virtual time from SIGTERM to SIGKILL."""
