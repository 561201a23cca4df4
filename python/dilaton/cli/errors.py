"""What is wrong with a command line."""

from __future__ import annotations


class BadInputError(Exception):
    """What the user gave cannot be used; the text says why, a line per problem."""
