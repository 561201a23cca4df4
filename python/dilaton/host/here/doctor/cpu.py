"""What the text of /proc/cpuinfo says of the CPU."""

from __future__ import annotations


def cpu_model(cpuinfo: str) -> str:
    """The model name in the text of /proc/cpuinfo, or "unknown"."""
    return _field(cpuinfo, "model name") or "unknown"


def cpu_flags(cpuinfo: str) -> frozenset[str]:
    """The flags of the first CPU in the text of /proc/cpuinfo."""
    return frozenset(_field(cpuinfo, "flags").split())


def _field(text: str, name: str) -> str:
    """The value of the first line `name : value`; empty when there is none."""
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return ""
