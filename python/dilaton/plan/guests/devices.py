"""The network devices of a guest: its ends of wires, of which its kernel is told on its command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dilaton.plan.errors import lab_error

if TYPE_CHECKING:
    from dilaton.plan.model import Wire

MTU_DEFAULT = 1500
"""The MTU of the kernel's vector devices (arch/um/drivers/vector_user.h: ETH_MAX_PACKET), and of wires between
agents."""

ARGUMENTS_BYTES_MAX = 3500
"""What a kernel can be told of its wires, whose command line has 4096 bytes in all (arch/um/include/asm/setup.h)."""


def device_arguments(wires: Sequence[Wire]) -> dict[str, list[str]]:
    """What the kernel of each guest is told on its command line of its ends of wires: a network device for each."""
    found: dict[str, list[str]] = {}
    for place, wire in enumerate(wires):
        # What is so by itself is left out.
        mtu = f",mtu={wire.mtu}" if wire.mtu != MTU_DEFAULT else ""
        for end in wire.ends:
            found.setdefault(end.guest, []).append(f"{end.device}:transport=tap,ifname=wire{place}{mtu}")
    return found


def check_counts(wires: Sequence[Wire]) -> None:
    """Refuses a guest with more wires than its kernel can be told of.

    Raises:
        LabError: Naming the guest, and how many it has.
    """
    for guest, arguments in device_arguments(wires).items():
        if len(" ".join(arguments)) > ARGUMENTS_BYTES_MAX:
            raise lab_error(
                "guests",
                f"guest {guest} would have {len(arguments)} wires to other guests, those of agents included, of which"
                " the first has one to each, and a kernel can be told of a hundred or so; divide the lab into fewer",
            )
