"""What is wrong with a command line, and the exit status that says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

BAD_INPUT = 2
HOST_LACKS = 3


class BadInputError(Exception):
    """What the user gave cannot be used; the text says why, a line per problem."""


@contextlib.contextmanager
def refusing(*kinds: type[Exception], option: str = "") -> Iterator[None]:
    """Takes errors of these kinds for bad input, in words of their own, after the option's name if it is of one.

    For a block or a function.

    Raises:
        BadInputError: there was one.
    """
    try:
        yield
    except kinds as error:
        raise BadInputError(f"{option}: {error}" if option else str(error)) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Writes `path`, or files below it.

    Raises:
        BadInputError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise BadInputError(f"{error.filename or path}: cannot be written: {error.strerror}") from error
