"""Sweeps: from their runs to a table and plots."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dilaton.measure import numbers
from dilaton.measure.numbers import counted
from dilaton.measure.results.fairness import FAIRNESS, fairness
from dilaton.measure.statistics import half_interval
from dilaton.report.figures.names import names_of
from dilaton.report.figures.repeats import connections_of, draw_repeats
from dilaton.report.figures.swept import draw_sweep, figure_name
from dilaton.report.metrics import scalars_of
from dilaton.report.style import Drawing
from dilaton.run import loading
from dilaton.run.files.directory import SWEEP_FILE
from dilaton.run.points import Labels, Point, Values
from dilaton.run.record import record as records
from dilaton.run.record.model import Record
from dilaton.run.record.record import RecordError


def table_of(done: Sequence[tuple[Point, Path, Record]]) -> pd.DataFrame:
    """A row for each run: its settings, how it went, and every number that its programs measured.

    Where several of them are iperf3's clients, `fairness` is Jain's index of the rates of all their streams.
    """
    rows = []
    for point, path, record in done:
        row: dict[str, Any] = dict(point.settings)
        row |= {
            "repeat": point.repeat,
            "run": str(path),
            "state": record.state,
            "verdict": record.verdict.level if record.verdict else None,
            "passed": all(check.passed for check in record.checks) if record.checks else None,
            "virtual_s": record.time.virtual_s,
            "host_s": record.time.host_s,
        }
        for process in record.processes:
            row |= {f"{process.name}.{name}": value for name, _, value in scalars_of(process.result or {})}
        row |= _of_all(record)
        rows.append(row)
    return pd.DataFrame(rows)


def _of_all(record: Record) -> dict[str, float]:
    """What no program measured alone."""
    results = [process.result or {} for process in record.processes]
    measured = [result["streams"] for result in results if result.get("streams")]
    index = fairness(list(itertools.chain(*measured))) if len(measured) > 1 else None
    return {} if index is None else {FAIRNESS: index}


@dataclass(frozen=True)
class Swept:
    """What the runs of a sweep measured.

    Attributes:
        lab: Its name.
        values: The values of each field.
        table: As of `table_of`.
        units: As of `units_of`, those first that are asked for.
        directory: Where it is.
        labels: What its fields and numbers are called.
        asked: The numbers that the lab expects something of, or that have labels.
    """

    lab: str
    values: Values
    table: pd.DataFrame
    units: Mapping[str, str]
    directory: Path
    labels: Labels
    asked: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, directory: Path, done: Sequence[tuple[Point, Path, Record]], values: Values, labels: Labels | None = None
    ) -> Swept:
        """From the runs that have left a record, one at least."""
        labels, units, checks = labels or {}, units_of(done), done[0][2].checks
        expected = {check.text.split(maxsplit=1)[0] for check in checks}
        asked = tuple(column for column in units if column in expected or column in labels)
        units = {column: units[column] for column in (*asked, *units)}
        return cls(done[0][2].lab, values, table_of(done), units, directory, labels, asked)

    @cached_property
    def means(self) -> pd.DataFrame:
        """As of `means_of`."""
        return means_of(self.table, self.values, self.units)

    def named(self, name: str) -> str:
        """What a field or a number is called."""
        return self.labels.get(name, name)

    @property
    def means_labelled(self) -> pd.DataFrame:
        """The same, with the heads that people read."""
        known = {column: self.named(column) for column in (*self.values, *self.units)}
        return self.means.rename(columns=known | {f"{column} ±": f"{self.named(column)} ±" for column in self.units})

    @cached_property
    def constant(self) -> list[str]:
        """The numbers that nobody has asked for and that were the same in all runs, of which a figure shows nothing."""
        return [column for column in self.units if column not in self.asked and self.table[column].nunique() < 2]

    @property
    def further(self) -> set[str]:
        """The names of figures that nobody has asked for, where something is asked for."""
        return {figure_name(column) for column in self.units if self.asked and column not in self.asked}

    def said(self, columns: Iterable[str]) -> tuple[list[str], list[list[str]]]:
        """The means of some numbers as people read them: heads, and a row for each combination of values."""
        columns = list(columns)
        heads = [*map(self.named, self.values), "runs", *map(self.named, columns)]
        rows = [
            [
                *(row[field] for field in self.values),
                str(row["runs"]),
                *(_with_interval(row[name], row[f"{name} ±"], self.units[name]) for name in columns),
            ]
            for row in self.means.to_dict("records")
        ]
        return heads, rows

    def drawings(self) -> Iterator[Drawing]:
        """As of `draw_sweep`, and the connections of TCP over repeats, where they were sampled."""
        drawn = {column: symbol for column, symbol in self.units.items() if column not in self.constant}
        yield from draw_sweep(self.table, self.values, drawn, self.labels)
        runs: dict[str, list[pd.DataFrame]] = {}
        damaged = 0
        for row in self.table.to_dict("records"):
            names = {field: self.labels.get(field, field.rpartition(".")[2]) for field in self.values}
            words = ", ".join(f"{name} {row[field]}" for field, name in names.items())
            try:
                run = loading.load(self.directory / row["run"])
                runs.setdefault(words, []).append(connections_of(run.tcp, names_of(run.plan)))
            except RecordError:
                damaged += 1
        without = f" Without {counted(damaged, 'run')}, whose samples are damaged." if damaged else ""
        yield from draw_repeats(runs, without)


def load(directory: Path) -> Swept:
    """A sweep that has come to its end.

    Raises:
        ValueError: There is none, it is damaged, or none of its runs has finished.
        RecordError: The record of a run is gone or damaged.
    """
    fields, table = read(directory)
    done = []
    for row in table.to_dict("records"):
        point = Point(tuple((field, row[field]) for field in fields), row["repeat"])
        done.append((point, Path(row["run"]), records.load(directory / row["run"])))
    if not done:
        raise ValueError(f"{directory}: none of its runs has finished")
    labels = json.loads((directory / SWEEP_FILE).read_text()).get("labels", {})
    return Swept.of(directory, done, {field: list(dict.fromkeys(table[field])) for field in fields}, labels)


def read(directory: Path) -> tuple[list[str], pd.DataFrame]:
    """The fields of a sweep that has come to its end, and its table, in which fields are texts.

    Raises:
        ValueError: There is none, or it is damaged.
    """
    try:
        fields = [str(field) for field in json.loads((directory / SWEEP_FILE).read_text())["fields"]]
        table = pd.read_csv(directory / "sweep.csv", dtype=dict.fromkeys(fields, str), keep_default_na=False)
        return fields, table[table.state == "finished"]
    except FileNotFoundError as error:
        missing = f"{directory}: has no {Path(error.filename).name}"
        raise ValueError(f"{missing}; a sweep writes it at its end, and goes on by the same command") from error
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{directory}: not a sweep, or a damaged one ({error})") from error


def sets_of(directory: Path, by: str | None) -> dict[str, dict[str, list[Path]]]:
    """The runs of a sweep, by the value of one field, and by the values of the others.

    Args:
        directory: The sweep's.
        by: The field; None for the only one.

    Raises:
        ValueError: It is no sweep, has no such field, or a value without a run.
    """
    fields, table = read(directory)
    if not fields:
        raise ValueError(f"{directory}: sweeps no field, so there are no sets to compare")
    if by is None and len(fields) > 1:
        raise ValueError(f"{directory}: sweeps {', '.join(fields)}; say by --by which of them tells sets apart")
    if by is not None and by not in fields:
        raise ValueError(f"--by {by}: not a field of this sweep, which has {', '.join(fields)}")
    field = by or fields[0]
    others = [each for each in fields if each != field and table[each].nunique() > 1]
    sets: dict[str, dict[str, list[Path]]] = {}
    for row in table.to_dict("records"):
        where = " ".join(f"{other}={row[other]}" for other in others)
        sets.setdefault(f"{field}={row[field]}", {}).setdefault(where, []).append(directory / row["run"])
    if len(sets) < 2:
        raise ValueError(f"{directory}: {field} has one value; a comparison takes two")
    reference, *rest = sets.values()
    for where in {where: None for by_where in sets.values() for where in by_where}:
        for other in rest:
            if not (reference.get(where) and other.get(where)):
                raise ValueError(
                    f"{directory}: not every value of {field} has a run{f' with {where}' if where else ''}"
                )
    return sets


def units_of(done: Sequence[tuple[Point, Path, Record]]) -> dict[str, str]:
    """The unit of each measured column of `table_of`."""
    units = {
        f"{process.name}.{name}": unit
        for _, _, record in done
        for process in record.processes
        for name, unit, _ in scalars_of(process.result or {})
    }
    return units | {name: "" for _, _, record in done for name in _of_all(record)}


def means_of(table: pd.DataFrame, values: Values, units: Mapping[str, str]) -> pd.DataFrame:
    """A row for each combination of values: how many runs it has, and of each measured number the mean of those that
    have it, and half the 95 % confidence interval of that, which is missing where there is one.

    Args:
        table: As of `table_of`.
        values: Of the fields.
        units: As of `units_of`.
    """
    fields = list(values)
    groups = table.groupby(fields, sort=False) if fields else [((), table)]
    rows = []
    for combination, runs in groups:
        row: dict[str, Any] = dict(zip(fields, combination, strict=True)) | {"runs": len(runs)}
        for column in units:
            measured = runs[column].dropna()
            row |= {column: measured.mean(), f"{column} ±": half_interval(measured)}
        rows.append(row)
    return pd.DataFrame(rows)


def write_means(directory: Path, swept: Swept) -> None:
    """Writes the means of a sweep as tables, for programs and for LaTeX, with the heads that people read."""
    swept.means_labelled.to_csv(directory / "sweep-means.csv", index=False)
    (directory / "sweep-means.tex").write_text(latex_of(swept.means, swept.values, swept.units, swept.labels))


def latex_of(means: pd.DataFrame, values: Values, units: Mapping[str, str], labels: Labels | None = None) -> str:
    """The table of `means_of` for LaTeX, with the package booktabs."""
    named = (labels or {}).get
    heads = [*(named(field, field) for field in values), "runs"]
    heads += [f"{named(column, column)}{f' ({symbol})' if symbol else ''}" for column, symbol in units.items()]
    lines = [
        f"\\begin{{tabular}}{{{'l' * len(values)}{'r' * (1 + len(units))}}}",
        "\\toprule",
        f"{' & '.join(map(_escaped, heads))} \\\\",
        "\\midrule",
    ]
    for row in means.to_dict("records"):
        cells = [_escaped(str(row[field])) for field in values] + [str(row["runs"])]
        cells += [_latex_interval(row[column], row[f"{column} ±"]) for column in units]
        lines.append(f"{' & '.join(cells)} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _with_interval(mean: float, half: float, symbol: str) -> str:
    if math.isnan(mean):
        return "none"
    text = numbers.quantity(mean, symbol)
    return text if math.isnan(half) else f"{text} ± {numbers.quantity(half, symbol)}"


def _latex_interval(mean: float, half: float) -> str:
    if math.isnan(mean):
        return "--"
    return f"${mean:.4g}$" if math.isnan(half) else f"${mean:.4g} \\pm {half:.2g}$"


def _escaped(text: str) -> str:
    """A text as LaTeX prints it."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter) or (f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def _half_interval(values: Any) -> float:
    return half_interval(values.dropna())
