"""Which program a command really runs, behind wrappers that only change how it runs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Wrapper:
    """A program that runs the command in its arguments.

    Attributes:
        valued: Its options that take the next argument as their value.
        operands: How many arguments of its own come before the command.
        variables: Whether `NAME=value` may come before the command.
    """

    valued: frozenset[str] = frozenset()
    operands: int = 0
    variables: bool = False


WRAPPERS = {
    "busybox": Wrapper(),
    "env": Wrapper(frozenset({"-u", "--unset", "-C", "--chdir"}), variables=True),
    "nice": Wrapper(frozenset({"-n", "--adjustment"})),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "stdbuf": Wrapper(frozenset({"-i", "--input", "-o", "--output", "-e", "--error"})),
    "timeout": Wrapper(frozenset({"-k", "--kill-after", "-s", "--signal"}), operands=1),
}

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


def unwrap(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The base name and the arguments of the program that a command runs.

    A wrapper without a command is the program itself. Shells are not looked into: what they print is not one
    program's.
    """
    words = list(argv)
    while words:
        wrapper = WRAPPERS.get(posixpath.basename(words[0]))
        inner = _inner(wrapper, words[1:]) if wrapper else []
        if not inner:
            return posixpath.basename(words[0]), words[1:]
        words = inner
    return "", []


def _inner(wrapper: Wrapper, words: list[str]) -> list[str]:
    """What remains behind a wrapper's own arguments."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        if words[position] == "--":
            position += 1
            break
        position += 2 if words[position] in wrapper.valued else 1
    position += wrapper.operands
    while wrapper.variables and position < len(words) and _VARIABLE.fullmatch(words[position]):
        position += 1
    return words[position:]
