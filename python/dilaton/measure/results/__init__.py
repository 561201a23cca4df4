"""From what a program printed to a result: a JSON object with fixed names and units.

A parser takes the program's arguments and its standard output. It returns the result, `{"error": why}` when the
program said, or its output shows, that there is none, or None when the output is not meant for parsing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dilaton.measure.results import iperf3, ping
from dilaton.measure.results.command import unwrap

Result = dict[str, Any]
Parser = Callable[[Sequence[str], str], Result | None]

PARSERS: dict[str, Parser] = {
    "iperf3": iperf3.parse,
    "ping": ping.parse,
    "ping4": ping.parse,
    "ping6": ping.parse,
}
"""By the base name of the program."""


def is_parsed(argv: Sequence[str]) -> bool:
    """Whether the output of this command is looked at."""
    return unwrap(argv)[0] in PARSERS


def parse(argv: Sequence[str], stdout: str) -> Result | None:
    """Takes a result out of what a command printed.

    Args:
        argv: The command, perhaps behind wrappers such as `timeout 5`.
        stdout: Its standard output.

    Returns:
        See `iperf3.parse` and `ping.parse`; None for programs that are not known here.
    """
    program, arguments = unwrap(argv)
    parser = PARSERS.get(program)
    return parser(arguments, stdout) if parser else None
