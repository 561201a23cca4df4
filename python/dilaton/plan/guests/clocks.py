"""How fast the clock of a guest runs where clocks run apart, as in "To Infinity and Beyond" (NSDI'06).

Every guest keeps the run's virtual time, in which links, instants of the lab and the record are, and on which all
agree. What its kernel and programs *read* runs at a rate of its own (`crates/virtual-time/src/face.rs`): a guest of
twice the lab's TDF sees half of the run's seconds pass, and so the network twice as fast. The rate stays when the TDF
of the run changes.
"""

from __future__ import annotations

from fractions import Fraction

from dilaton.lab.model import Lab
from dilaton.plan.errors import lab_error

RATE_MAX = 100
"""A clock runs at most so many times as fast, or as slow, as the run's virtual time; kernels boot by it, too."""


def clock_rate(lab: Lab, guest: str) -> Fraction:
    """Seconds of a guest's clock per virtual second.

    Raises:
        LabError: It is too fast or too slow, or nobody can say what it is.
    """
    tdf = lab.guests[guest].tdf if guest in lab.guests else None
    if lab.time.clocks == "together" or tdf is None:
        return Fraction(1)
    if lab.time.tdf == "auto":
        raise lab_error(
            f"guests.{guest}.tdf",
            "where clocks run apart this is a rate beside the TDF of the lab, which therefore has to be a number "
            "and not auto",
        )
    rate = lab.time.tdf / tdf
    if not Fraction(1, RATE_MAX) <= rate <= RATE_MAX:
        raise lab_error(
            f"guests.{guest}.tdf",
            f"{tdf}: a clock runs at most {RATE_MAX} times as fast or as slow as virtual time, and the tdf of the lab "
            f"is {lab.time.tdf}",
        )
    return rate
