"""CPUs of nodes: which are the TDF of a guest, and which are shares of one.

A node that is alone in its guest on the work drive has all of that guest's CPU. Its speed is then the guest's TDF, and
whatever the node does, forwarding included, takes as long as on such a CPU. Where nodes share a guest, and on the wall
drive, on which all guests have one TDF, a CPU is a *share*: the node's programs work as fast as the guest can, and
sleep until a CPU of the node's speed would have done it (`crates/virtual-time/src/node_cpu.rs`). Together, shares
cannot be more than the guest's CPU, which is as fast as its TDF; where that follows the load, it follows the shares
that are used, and they cannot be more than the highest TDF.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from dilaton.lab import model as lab_model
from dilaton.lab.model import Lab
from dilaton.plan.cpu import Cpu
from dilaton.plan.errors import lab_error
from dilaton.plan.guests.pace import highest_tdf
from dilaton.plan.model import Tdf

SHARES_MAX = 8191
"""Nodes of a guest with a CPU of their own: as many as the clock has room for."""


def guest_tdf(lab: Lab, nodes: Collection[str], name: str) -> Tdf | None:
    """The TDF of its own that guest `name` with these nodes has, if it has one.

    Raises:
        LabError: It is written where there can be none, or twice.
    """
    written = lab.guests[name].tdf if name in lab.guests else None
    alone = next(iter(nodes)) if len(nodes) == 1 else None
    speed = lab.nodes[alone].cpu if alone is not None and lab.time.drive == "work" else None
    if written is not None and lab.time.clocks == "apart":
        return None  # the rate of its clock (`clocks.py`)
    if written is not None and lab.time.drive == "event":
        raise lab_error(
            f"guests.{name}.tdf", "on the event drive CPUs take no time; use the work drive, or leave it out"
        )
    if written is not None and lab.time.drive == "wall":
        raise lab_error(
            f"guests.{name}.tdf",
            "on the wall drive clocks of different TDFs run apart; write clocks: apart below time if that is wanted, "
            "or use the work drive",
        )
    if written is not None and speed is not None:
        message = f"guest {name} has a tdf, which is the speed of its CPU; write one of the two"
        raise lab_error(f"nodes.{alone}.cpu", message)
    found = written or speed
    return None if found is None else Tdf.of(found)


def shares(lab: Lab, guest_of: Mapping[str, str]) -> dict[str, Cpu]:
    """The CPUs of nodes that are shares of their guest's, by node, given each node's guest.

    Raises:
        LabError: A guest has not that much, or CPUs take no time.
    """
    found: dict[str, Cpu] = {}
    for guest in dict.fromkeys(guest_of.values()):
        nodes = [node for node in lab.nodes if guest_of[node] == guest]
        own = {node: cpu for node in nodes if (cpu := lab.nodes[node].cpu) is not None}
        if own and lab.time.drive == "event":
            field = f"nodes.{next(iter(own))}.cpu"
            raise lab_error(field, "on the event drive CPUs take no time; use the work drive, or leave it out")
        if not own or (len(nodes) == 1 and lab.time.drive == "work"):
            continue
        tdf = None if lab.time.clocks == "apart" else lab.guests.get(guest, lab_model.Guest()).tdf
        name = "max" if tdf is None and lab.time.tdf == "auto" else "tdf"
        _check_sum(own, tdf or highest_tdf(lab.time), name, guest)
        found |= {node: Cpu.of(number, cpu) for number, (node, cpu) in enumerate(own.items(), 1)}
    return found


def _check_sum(own: Mapping[str, Fraction], most: Fraction, name: str, guest: str) -> None:
    """Refuses more than a guest has at most, by the field of this name."""
    first, total = next(iter(own)), sum(own.values())
    if len(own) > SHARES_MAX:
        message = f"guest {guest} has {len(own)} nodes with a CPU of their own, at most {SHARES_MAX} can be"
        raise lab_error(f"nodes.{first}.cpu", message)
    if total > most:
        several = f"the CPUs of {len(own)} nodes are {float(total):g} together" if len(own) > 1 else f"{total}"
        raise lab_error(
            f"nodes.{first}.cpu",
            f"{several}, but guest {guest}, which they are in, has a CPU of speed {float(most):g}, its {name}; "
            f"write a {name} of {-(-total.numerator // total.denominator)} or more, or guests: per-node",
        )
