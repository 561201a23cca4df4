"""Kinds of nodes, which topology files pass as options; here they are only names."""

from __future__ import annotations


class Node:
    """Stands for itself."""


class Host:
    """Stands for itself."""


class CPULimitedHost:
    """Stands for itself."""


class Switch:
    """Stands for itself."""


class OVSSwitch:
    """Stands for itself."""


class OVSKernelSwitch:
    """Stands for itself."""


class OVSBridge:
    """Stands for itself."""


class UserSwitch:
    """Stands for itself."""


class Controller:
    """Stands for itself."""


class OVSController:
    """Stands for itself."""


class RemoteController:
    """Stands for itself."""
