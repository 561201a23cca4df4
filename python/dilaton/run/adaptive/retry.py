"""Running again, from the start, with the TDF that a violation needed. Pure."""

from __future__ import annotations

from dilaton.plan.model import Plan, Tdf
from dilaton.run.adaptive.ledger import Span

ATTEMPTS_MAX = 5


def replanned(plan: Plan, span: Span) -> Plan | None:
    """The plan with a TDF that does not fall below what `span` needed; None when it may not rise so far.

    A TDF that stays is replaced by another that stays.
    """
    watch = plan.time.watch
    if watch is None or watch.on_violation != "retry":
        return None
    needed = Tdf.of(span.tdf_needed)
    if watch.least == watch.most:
        watch = watch.model_copy(update={"least": needed, "most": needed})
    elif span.tdf_needed > watch.most.ratio:
        return None
    else:
        watch = watch.model_copy(update={"least": needed})
    time = plan.time.model_copy(update={"tdf": needed, "watch": watch})
    return plan.model_copy(update={"time": time})
