"""The life of a run as the server keeps it: which state may follow which.

```text
requested ──► queued ──► starting ──► running ◄─► held ──► finished │ failed │ aborted
   │ └► refused  └► cancelled  └► refused, and back to queued when nothing began
   └► cancelled
```

What is more than its person may use by themselves is `requested`, until somebody approves or refuses it.

A run of a sweep that loses a machine goes back to `queued`, whatever it was.

`starting` is everything before virtual time first passes. Beyond it the run itself says what it is.
"""

from __future__ import annotations

from typing import Literal, get_args

RunState = Literal[
    "requested", "queued", "starting", "running", "held", "finished", "failed", "aborted", "refused", "cancelled"
]

WAITS: frozenset[RunState] = frozenset({"requested", "queued"})
FINAL: frozenset[RunState] = frozenset({"finished", "failed", "aborted", "refused", "cancelled"})
GOING: frozenset[RunState] = frozenset({"starting", "running", "held"})

_ENDS: frozenset[RunState] = frozenset({"finished", "failed", "aborted"})

NEXT: dict[RunState, frozenset[RunState]] = {
    "requested": frozenset({"queued", "refused", "cancelled"}),
    "queued": frozenset({"starting", "cancelled"}),
    "starting": frozenset({"queued", "running", "held", "refused", *_ENDS}),
    # It begins again when a watch finds it out of bounds.
    "running": frozenset({"held", "starting", *_ENDS}),
    "held": frozenset({"running", "starting", *_ENDS}),
    **{state: frozenset() for state in FINAL},
}


class LifeError(Exception):
    """A run cannot go from one state to another."""


def follows(state: str, following: RunState) -> bool:
    """Whether a run in `state` becomes something else by `following`.

    Raises:
        LifeError: that cannot follow.
    """
    present = known(state)
    if present == following:
        return False
    if following not in NEXT[present]:
        raise LifeError(f"a run that is {present} does not become {following}")
    return True


def known(state: str) -> RunState:
    """A state as the database has it."""
    return next(one for one in get_args(RunState) if one == state)
