"""What becomes of a link that is changed while its run goes on.

The plan has told the agent everything that the link will become, each time as a whole. So a change that comes meanwhile
replaces all of that which is still to come: the link's course is planned anew from now on, with the new change among
the others, and a value that it does not name is neither reset now nor by a later change that was planned without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dilaton.lab.links import WAYS, Change, Link, effective
from dilaton.plan import guests
from dilaton.plan.changes import Course, changes_of, tables_of
from dilaton.plan.model import LinkUpdate


@dataclass(frozen=True)
class SteeredLink:
    """A link of a run that goes on: all its changes in the order of time, and what it becomes by them."""

    link: Link
    changes: tuple[Change, ...]
    course: Course

    @classmethod
    def planned(cls, link: Link, changes: Iterable[Change]) -> SteeredLink:
        """A link as it was planned."""
        return cls(link, tuple(changes), Course(link, tuple(changes)))

    def changed(self, change: Change, now_ns: int) -> SteeredLink:
        """The same link with one more change; the shapes that it has now are kept where they serve."""
        # Of one instant, the later one counts; and it is asked for later.
        changes = tuple(sorted([*self.changes, change], key=lambda one: one.at_ns))
        return SteeredLink(self.link, changes, Course(self.link, changes, now_ns, self.course.shapes))


def link_update(before: SteeredLink, after: SteeredLink, now_ns: int, modules: Sequence[str]) -> LinkUpdate:
    """What the agent is told of a change.

    Args:
        before: The link without the change.
        after: The link with it, planned from `now_ns` on.
        now_ns: Virtual time since the run's virtual 0.
        modules: Kernel modules that are loaded already.
    """
    written = [effective(*change.layers(way)) for change in after.changes for way in WAYS]
    changes = changes_of(after.link, [before.course.at(now_ns), *after.course.states])
    egress = [one for state in after.course.states for one in state.egress]
    return LinkUpdate(
        link=after.link.name,
        modules=[module for module in guests.link_modules(egress) if module not in modules],
        tables=tables_of([*written, *(after.link.direction(way) for way in WAYS)]),
        # At once, wherever the guest's clock, which counts in steps, is by now.
        changes=[one if one.at_ns > now_ns else one.model_copy(update={"at_ns": 0}) for one in changes],
    )
