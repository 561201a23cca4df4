"""What curl prints with `-w`: the variables in its format, once for each transfer.

The format that was given becomes the pattern that its output is read with, so any format does, `%{json}` too, and what
else is on standard output does not matter.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

_VARIABLE = re.compile(r"%\{(\w+)\}")
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}
_FAILED_MIN = 400
"""Statuses from here are errors; 0 is no answer."""


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what curl printed.

    Args:
        arguments: Of curl; without `-w` there is nothing to read.
        stdout: Its standard output.

    Returns:
        - `requests`: transfers; `errors`: those whose `http_code` is 0 or at least 400, if it was written.
        - `latency`: `min`, `avg` and `max` of `time_total`, in seconds; `samples`: all of them.
        - `throughput`: the mean of `speed_download`, in bit/s.
        - `transfers`: everything that was written of each, as numbers where they are some.

        None without `-w`; `{"error": …}` when nothing was written.
    """
    form = _format(arguments)
    if form is None:
        return None
    transfers = list(_json(stdout) if "%{json}" in form else _formatted(form, stdout))
    if not transfers:
        return {"error": "curl was ended before it wrote what -w asks for"}
    result: dict[str, Any] = {"requests": len(transfers), "transfers": transfers}
    if statuses := _numbers(transfers, "http_code"):
        result["errors"] = sum(status == 0 or status >= _FAILED_MIN for status in statuses)
    if times := _numbers(transfers, "time_total"):
        result["latency"] = {"min": min(times), "avg": sum(times) / len(times), "max": max(times)}
        result["samples"] = times
    if speeds := _numbers(transfers, "speed_download"):
        result["throughput"] = 8 * sum(speeds) / len(speeds)
    return result


def _format(arguments: Sequence[str]) -> str | None:
    for number, argument in enumerate(arguments):
        if argument in ("-w", "--write-out") and number + 1 < len(arguments):
            return arguments[number + 1]
        if argument.startswith("--write-out="):
            return argument.partition("=")[2]
        if argument.startswith("-w") and argument != "-w" and not argument.startswith("--"):
            return argument[2:]
    return None


def _json(stdout: str) -> Iterator[dict[str, Any]]:
    for line in stdout.splitlines():
        start = line.find('{"')
        try:
            data = json.loads(line[start:]) if start >= 0 else None
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and "time_total" in data:
            yield data


def _formatted(form: str, stdout: str) -> Iterator[dict[str, Any]]:
    for written, meant in _ESCAPES.items():
        form = form.replace(written, meant)
    names = _VARIABLE.findall(form)
    texts = _VARIABLE.split(form)[::2]
    if not names:
        return
    pattern = re.escape(texts[0]) + "".join(rf"(\S*?){re.escape(text)}" for text in texts[1:])
    # The last variable would match nothing where no text follows it.
    pattern = re.sub(r"\(\\S\*\?\)$", r"(\\S+)", pattern)
    for match in re.finditer(pattern, stdout):
        yield {name: _value(text) for name, text in zip(names, match.groups(), strict=True)}


def _value(text: str) -> float | int | str:
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text  # a word such as infinity
    return int(number) if number.is_integer() and "." not in text else number


def _numbers(transfers: Sequence[dict[str, Any]], name: str) -> list[float]:
    found = [transfer.get(name) for transfer in transfers]
    return [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
