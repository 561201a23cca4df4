"""What is wrong with a command line, and the exit status that says so."""

from __future__ import annotations

BAD_INPUT = 2
HOST_LACKS = 3


class BadInputError(Exception):
    """What the user gave cannot be used; the text says why, a line per problem."""
