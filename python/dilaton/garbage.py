"""How often Python looks for cycles among objects that nobody refers to, and that it does not at the end."""

import gc

ALLOCATIONS_BETWEEN_COLLECTIONS = 200_000
"""The plan of a large lab is a million objects that live until the end. To look for cycles among them as often as
Python does by default, after 700, took two fifths of the time to plan. What a command imports are a hundred thousand
objects: a lab of few nodes is run without a look."""


def collect_rarely() -> None:
    """Has the whole process look as often as that."""
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)


def leave_the_rest() -> None:
    """Has the end of the process look for none, since what is left goes with it.

    Python would look several times, through all modules: a sixth of what a command takes.
    """
    gc.freeze()
