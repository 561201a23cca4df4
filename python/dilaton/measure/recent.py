"""The latest samples of a run that goes on, without reading all that were written. Pure: text in, rows out."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator
from typing import Any

from dilaton.measure.layouts import Layout

DIGITS_MAX = 20
"""The most digits of a number of 64 bits."""

Row = dict[str, Any]
"""A sample: its key and text as text, all else as numbers, None where there is none; with the rates of its layout."""


def latest(layout: Layout, header: str, tail: str) -> list[Row]:
    """The last sample of each key, with the rates since the one before it.

    Args:
        layout: What the samples are of.
        header: The first line of the table.
        tail: The end of the table; its first line may be cut off at its beginning, its last at its end.

    Returns:
        A row for each key in `tail`, in the order of the keys. Without an earlier sample in `tail` rates are None.
    """
    names = next(csv.reader([header]), [])
    last: dict[tuple[str, ...], Row] = {}
    before: dict[tuple[str, ...], Row] = {}
    for row in _rows(layout, names, tail):
        key = tuple(row[name] for name in layout.key)
        if key in last:
            before[key] = last[key]
        last[key] = row
    return [_with_rates(layout, last[key], before.get(key)) for key in sorted(last)]


def _rows(layout: Layout, names: list[str], tail: str) -> Iterator[Row]:
    """The rows that are samples: a guest may have written anything else."""
    whole = tail[tail.find("\n") + 1 : tail.rfind("\n") + 1]
    texts = {*layout.key, *layout.text}
    missing: Row = dict.fromkeys((*layout.key, *layout.text, *layout.numbers, "t_ns"))
    # A field may be too long for csv.
    with contextlib.suppress(csv.Error):
        for values in csv.reader(whole.splitlines()):
            if len(values) != len(names):
                continue
            pairs = zip(names, values, strict=True)
            row = missing | {name: value if name in texts else _number(value) for name, value in pairs}
            if row["t_ns"] is not None and all(row[name] and row[name].isprintable() for name in layout.key):
                yield row


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= DIGITS_MAX else None


def _with_rates(layout: Layout, row: Row, before: Row | None) -> Row:
    found = row | {"t_s": row["t_ns"] / 1e9} | dict.fromkeys((rate.name for rate in layout.rates), None)
    if before is None or row["t_ns"] <= before["t_ns"]:
        return found
    elapsed_s = (row["t_ns"] - before["t_ns"]) / 1e9
    for rate in layout.rates:
        old, new = before.get(rate.counter), row.get(rate.counter)
        if old is not None and new is not None:
            found[rate.name] = (new - old) * rate.scale / elapsed_s
    return found
