"""Kinds of links, which topology files pass as options; here they are only names."""

from __future__ import annotations


class Link:
    """Stands for itself."""


class TCLink:
    """Stands for itself."""


class TCULink:
    """Stands for itself."""


class OVSLink:
    """Stands for itself."""


class Intf:
    """Stands for itself."""


class TCIntf:
    """Stands for itself."""
