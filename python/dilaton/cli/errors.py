"""What is wrong with a command line, how that is said, and the exit status.

As the GNU coding standards have it: a mistake in a file begins with its name, line and column, where editors look for
them; any other with the program's name. Then come the thing, what is wrong with it, and what would be right.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from typer.exceptions import TyperException

from dilaton.cli.output import discard, visible
from dilaton.lab.errors import LabError

FAILED = 1
BAD_INPUT = 2
HOST_LACKS = 3

PROGRAM = "dilaton: "


class BadInputError(Exception):
    """What the user gave cannot be used; the text says why, a line per problem."""


class FailedError(Exception):
    """What was asked for makes sense, and could not be done; the text says why, a line per problem."""


def complain(error: object) -> None:
    """Prints what is wrong, a line per problem; where that cannot be, the exit status has to say it."""
    if isinstance(error, LabError):
        lines = [("" if problem.line else PROGRAM) + str(problem) for problem in error.problems]
    else:
        lines = [PROGRAM + line for line in str(error).splitlines()]
    try:
        for line in lines:
            print(visible(line), file=sys.stderr)
    except OSError:
        discard(sys.stderr)


def warn(problem: object) -> None:
    """Prints what is likely to be a mistake; what was asked for goes on."""
    with contextlib.suppress(OSError):
        print(visible(f"{problem} (a warning)"), file=sys.stderr)


def usage(error: TyperException) -> str:
    """What the parser found wrong with the command line, in one line, and which help says what would be right."""
    message = re.sub("^Invalid value for '(.+?)'", r"\1", error.format_message())
    if not message:
        return ""  # it has shown the help
    sentences = message.removesuffix(".").split(". ")
    context = getattr(error, "ctx", None)
    verb = context.command_path if context else "dilaton"
    return "; ".join(f"{text[:1].lower()}{text[1:]}" for text in (*sentences, f"see {verb} --help"))


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
        raise BadInputError(f"{option}: {error}" if option else spelled(error)) from error


def spelled(error: Exception) -> str:
    """What is wrong, with the field of a request as the command line spells it."""
    # Here, since no verb that is well needs it.
    from dilaton.service.errors import RequestError

    if isinstance(error, RequestError) and error.field:
        option = "-".join(filter(None, (error.field, error.word)))
        return f"--{option.replace('_', '-')}: {error.message}"
    return str(error)


@contextlib.contextmanager
def failing(*kinds: type[Exception]) -> Iterator[None]:
    """Takes errors of these kinds for a failure of what was asked for, in words of their own.

    Raises:
        FailedError: there was one.
    """
    try:
        yield
    except kinds as error:
        raise FailedError(str(error)) from error


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
