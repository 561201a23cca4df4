"""A lab with more time for its guests' CPUs: what a run is confirmed by.

A speed that the lab gives to a CPU (`cpu:` at a node) is a part of what it describes, and stays. A TDF, that of the lab
or one of a guest's own, only says how much time there is for the work.
"""

from __future__ import annotations

from fractions import Fraction

from dilaton.lab.model import Lab
from dilaton.plan.model import Plan


def refusal(lab: Lab, plan: Plan) -> str:
    """Why runs of a lab cannot be confirmed, with what to write instead; empty if they can."""
    if lab.time.drive == "event":
        return (
            "on the event drive CPUs take no time, so that no result can depend on a TDF; leave it out, or use "
            "the work drive"
        )
    scaled = {name for name, guest in lab.guests.items() if guest.tdf is not None}
    if all(guest.tdf is not None and guest.name not in scaled for guest in plan.guests):
        return (
            "every guest has one node, with a cpu of a given speed, so that the TDF of the lab changes nothing; leave "
            "it out, or a cpu"
        )
    if kept := next((node.name for node in plan.nodes if node.disk and node.disk.image), None):
        return f"the disk of {kept} keeps what a run writes, so that another would not begin as this one; remove image"
    return ""


def with_more_time(lab: Lab, tdf: Fraction, factor: Fraction, seed: int) -> Lab:
    """The lab at a fixed TDF.

    Args:
        lab: As it is written.
        tdf: What its TDF is then.
        factor: By what the TDFs of its guests, where they have their own, are multiplied.
        seed: Instead of its own.
    """
    guests = {
        name: guest if guest.tdf is None else guest.model_copy(update={"tdf": guest.tdf * factor})
        for name, guest in lab.guests.items()
    }
    time = lab.time.model_copy(update={"tdf": tdf, "on_violation": "continue"})
    return lab.model_copy(update={"time": time, "guests": guests, "seed": seed})


def again(lab: Lab, seed: int) -> Lab:
    """The lab with another seed; nobody is there who would release a clock that it holds."""
    on_violation = "retry" if lab.time.on_violation == "retry" else "continue"
    time = lab.time.model_copy(update={"on_violation": on_violation})
    return lab.model_copy(update={"time": time, "seed": seed})
