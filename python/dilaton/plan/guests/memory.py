"""Whether the memory that a lab promises its nodes is there.

Only what is written counts: a node with `memory:` is to have it, whatever the others do. What guests are given by
themselves is an estimate from above, of which the host pays for what is touched.
"""

from __future__ import annotations

from collections.abc import Iterable

from dilaton.lab.model import Guest, Lab
from dilaton.lab.text import units
from dilaton.plan.errors import lab_error
from dilaton.plan.guests.kernels import MEMORY_MAX
from dilaton.plan.guests.placement import Placement


def check_memory(lab: Lab, placement: Placement, host_bytes: int | None) -> None:
    """Refuses a lab that promises its nodes more memory than their guest or the host has.

    Args:
        lab: The lab.
        placement: Of its nodes.
        host_bytes: What the host has; None: not asked.

    Raises:
        LabError: Naming the guest and the sums.
    """
    total = 0
    for guest in placement.guests:
        held = [name for name, at in placement.of_node.items() if at == guest]
        limits = [limit for name in held if (limit := lab.nodes[name].memory_bytes) is not None]
        written = lab.guests.get(guest, Guest()).memory_bytes
        promised, has = sum(limits), written or MEMORY_MAX
        if promised > has:
            field = f"guests.{guest}.memory" if written else f"nodes.{_largest(lab, held)}.memory"
            fixes = ["give nodes less"]
            if promised <= MEMORY_MAX:
                fixes.insert(0, "give it more")
            elif len(held) > 1:
                fixes.insert(0, "write guests: per-node, or a guest: on some")
            what = f"nodes of guest {guest} may take {_shown(promised)} in sum, and it has {_shown(has)}"
            raise lab_error(field, f"{what}; {', or '.join(fixes)}")
        total += written or promised
    if host_bytes is not None and total > host_bytes:
        raise lab_error(
            f"nodes.{_largest(lab, lab.nodes)}.memory",
            f"the lab may take {_shown(total)} of memory in sum, and this machine has {_shown(host_bytes)}; give nodes "
            "and guests less",
        )


def _largest(lab: Lab, names: Iterable[str]) -> str:
    return max(names, key=lambda name: lab.nodes[name].memory_bytes or 0)


def _shown(size_bytes: int) -> str:
    """Writes a size with three digits or so: sums and machines are no round numbers."""
    return units.format_size(size_bytes if size_bytes < 10**9 else size_bytes // 10**8 * 10**8)
