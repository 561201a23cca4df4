"""Values that replace what a lab's file says: `links.0.rate=10Gbit`, as given on a command line or by a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dilaton.lab.errors import LabError, Problem
from dilaton.lab.text.document import read_document

Setting = tuple[str, str]
"""Where, as names and numbers of list items with dots between them, and what, as it would be written in the file."""


APPENDED = "+"
"""In place of the number of a list's item: one more."""

_SYSCTLS = "sysctls"


def parse_setting(text: str) -> Setting:
    """Splits `PATH=VALUE`.

    Raises:
        ValueError: it is none.
    """
    path, equals, value = text.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise ValueError(f"--set {text}: write PATH=VALUE, such as time.tdf=10 or links.0.rate=1Gbit")
    return path.strip(), value.strip()


def steps_of(path: str) -> tuple[str, ...]:
    """The names and numbers of a setting's path. Kernel parameters have dots, so what follows `sysctls` is one name."""
    way, sysctls, parameter = path.partition(f".{_SYSCTLS}.")
    return (*way.split("."), _SYSCTLS, parameter) if sysctls else tuple(way.split("."))


def apply_settings(data: Any, settings: Iterable[Setting]) -> tuple[tuple[str, ...], ...]:
    """Changes a lab's data.

    Args:
        data: As `Document.data`; a field that is not there yet is made, an item of a list must be there, or be `+`.
        settings: What to change, in order.

    Returns:
        The steps to each of them.

    Raises:
        LabError: a path leads nowhere, or a value is not YAML.
    """
    done = []
    for path, value in settings:
        *way, last = steps_of(path)
        place = data
        if last == APPENDED and way:
            done.append(_append(data, way, value, path))
            continue
        done.append((*way, last))
        for number, step in enumerate(way):
            place = _step(place, step, path, ".".join(way[:number]))
        new = read_document(value, f"--set {path}").data
        if isinstance(place, list):
            place[_index(place, last, path, ".".join(way))] = new
        elif isinstance(place, dict):
            place[last] = new
        else:
            raise _without_parts(path, ".".join(way), place)
    return tuple(done)


def _append(data: Any, way: list[str], value: str, path: str) -> tuple[str, ...]:
    """Puts one more item at the end of a list: the steps to it."""
    *before, name = way
    place = data
    for number, step in enumerate(before):
        place = _step(place, step, path, ".".join(before[:number]))
    if not isinstance(place, dict):
        raise _without_parts(path, ".".join(before), place)
    items = place.get(name)
    if items is None:
        items = place[name] = []
    if not isinstance(items, list):
        raise _problem(path, f"{'.'.join(way)} is no list, to which {APPENDED} could put one more item")
    items.append(read_document(value, f"--set {path}").data)
    return (*way, str(len(items) - 1))


def _step(place: Any, step: str, path: str, so_far: str) -> Any:
    if isinstance(place, list):
        return place[_index(place, step, path, so_far)]
    if isinstance(place, dict):
        if place.get(step) is None:
            place[step] = {}
        return place[step]
    raise _without_parts(path, so_far, place)


def _index(items: list[Any], step: str, path: str, so_far: str) -> int:
    if not step.isascii() or not step.isdigit() or int(step) >= len(items):
        raise _problem(path, f"{so_far} is a list of {len(items)}: {step} is none of its items, 0 to {len(items) - 1}")
    return int(step)


def _without_parts(path: str, so_far: str, value: Any) -> LabError:
    return _problem(
        path, f"{so_far} is {value}, which has no parts; set all of it, or write it as a mapping in the lab"
    )


def _problem(path: str, what: str) -> LabError:
    return LabError([Problem(f"--set {path}", 0, 0, "", what)])
