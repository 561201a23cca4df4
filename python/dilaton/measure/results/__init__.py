"""Makes a result of what a program printed: a JSON object with fixed names and units.

A parser takes the program's arguments and its standard output. It returns the result, `{"error": why}` when the
program said, or its output shows, that there is none, or None when the output is not meant for parsing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dilaton.measure.results import access_log, curl, ditg, fio, iperf3, ping, wrk
from dilaton.measure.results.command import unwrap

Result = dict[str, Any]
Parser = Callable[[Sequence[str], str], Result | None]

PARSERS: dict[str, Parser] = {
    "iperf3": iperf3.parse,
    "ITGDec": ditg.parse,
    "apache2": access_log.parse,
    "curl": curl.parse,
    "fio": fio.parse,
    "httpd": access_log.parse,
    "nginx": access_log.parse,
    "ping": ping.parse,
    "ping4": ping.parse,
    "ping6": ping.parse,
    "wrk": wrk.parse,
}
"""The parsers, by the base name of the program."""


def is_parsed(argv: Sequence[str]) -> bool:
    """Whether the output of this command is looked at."""
    return unwrap(argv)[0] in PARSERS


def parse(argv: Sequence[str], stdout: str) -> Result | None:
    """Takes a result out of what a command printed.

    Args:
        argv: The command, perhaps behind wrappers such as `timeout 5`.
        stdout: Its standard output.

    Returns:
        See `parse` of the modules here; None for programs that are not known.
    """
    program, arguments = unwrap(argv)
    parser = PARSERS.get(program)
    try:
        result = parser(arguments, stdout) if parser else None
        _check_numbers(result)
        return result
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        # What calls itself so may print anything; the run's record is to be written all the same.
        return {"error": f"what {program} printed is not as expected: {type(error).__name__}: {error}"}


def _check_numbers(value: object) -> None:
    """Refuses a result in which a number is none, as JSON may have them.

    Raises:
        ValueError: a number is infinite, or not one.
        OverflowError: an integer is larger than any float.
    """
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_numbers(part)
    elif isinstance(value, int | float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number")
