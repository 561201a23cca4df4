"""The tables of a run: what its samplers wrote, with columns that tell rates. Pure: text in, tables out.

Samples are counters that only go up, taken at exact virtual instants. What people look at is mostly how fast they went,
so a column of differences is added for each that has a rate: `tx_bytes` gives `tx_bit_per_s`, over the interval that
ends at its row. The first row of each interface, flow or node has none.
"""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from dilaton.measure.layouts import Layout


class TableError(Exception):
    """A table cannot be read; the message says what is wrong with it."""


def read_samples(layout: Layout, texts: list[str]) -> pd.DataFrame:
    """Reads what the samplers of all guests wrote about one thing.

    Args:
        layout: What it is.
        texts: CSV, each with its header line. A last line without its end, as a killed run leaves it, is left out.

    Returns:
        A row for each sample, in the order of `t_ns` within each key: `t_ns`, `t_s`, the key, numbers and rates.

    Raises:
        TableError: a text is not such a table.
    """
    frames = [_read(layout, text) for text in texts]
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    table = pd.concat(frames, ignore_index=True) if frames else _empty(layout)
    for column in layout.numbers:
        if column not in table:
            table[column] = float("nan")
    table = table.sort_values([*layout.key, "t_ns"], kind="stable", ignore_index=True)
    table.insert(1, "t_s", table["t_ns"] / 1e9)
    return _with_rates(layout, table)


def _read(layout: Layout, text: str) -> pd.DataFrame:
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return _empty(layout)
    words = {name: "str" for name in (*layout.key, *layout.text) if not name.endswith("_port")}
    try:
        table = pd.read_csv(io.StringIO(whole), dtype={"t_ns": "int64", **words}, keep_default_na=False, na_values=[""])
    except (ValueError, TypeError, OverflowError) as error:
        raise TableError(str(error)) from error
    if lacking := [name for name in ("t_ns", *layout.key) if name not in table]:
        raise TableError(f"it has no column {lacking[0]}")
    if table.empty:
        return _empty(layout)  # of columns without a value pandas cannot know that they are numbers
    for column in layout.numbers:
        if column in table and not pd.api.types.is_numeric_dtype(table[column]):
            raise TableError(f"column {column} has something that is no number")
    return table


def _empty(layout: Layout) -> pd.DataFrame:
    types = {"t_ns": "int64"} | {name: "int64" if name.endswith("_port") else "str" for name in layout.key}
    types |= dict.fromkeys(layout.text, "str") | dict.fromkeys(layout.numbers, "float64")
    return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in types.items()})


def _with_rates(layout: Layout, table: pd.DataFrame) -> pd.DataFrame:
    groups = table.groupby(list(layout.key), observed=True, sort=False)
    elapsed_s = groups["t_ns"].diff() / 1e9

    def counted(counter: str) -> pd.Series[Any]:
        # Where a node has booted with another kernel, counters begin anew.
        steps = groups[counter].diff()
        return steps.where(~(steps < 0))

    added: dict[str, Any] = {
        rate.name: counted(rate.counter) * rate.scale / elapsed_s for rate in layout.rates if rate.counter in table
    }
    return table.assign(**added)
