"""TCP's buffers: what Linux gives a connection by itself, and nodes that give theirs more.

What is in buffers is under way, or waits for a program. So where a node may fill larger ones, its guest has to have the
memory for them, and the wires to other guests the room.
"""

from __future__ import annotations

from dilaton.lab.parts.nodes import Node

USUAL = {"net/ipv4/tcp_rmem": "4096 131072 6291456", "net/ipv4/tcp_wmem": "4096 16384 4194304"}
"""The least, first and largest size in bytes, for receiving and for sending, on a machine with 1 GiB or more. By itself
a kernel with less gives a connection less, and a flow would be as fast as its guest is large."""


def larger_bytes(node: Node) -> int:
    """The largest buffer that a node gives its connections; 0 where none is larger than usual."""
    sizes = ((_largest(node.sysctls.get(key, usual)), _largest(usual)) for key, usual in USUAL.items())
    return max((asked for asked, usual in sizes if asked > usual), default=0)


def _largest(sizes: str) -> int:
    """The last of a sysctl's three sizes; 0 for what the kernel will refuse."""
    *_, largest = sizes.split() or [""]
    return int(largest) if largest.isdecimal() else 0
