"""`dilaton compare`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from dilaton.cli.errors import refusing, writing
from dilaton.cli.terminal import Output
from dilaton.lab.text import units
from dilaton.measure import numbers
from dilaton.run.record.record import RecordError

if TYPE_CHECKING:
    from dilaton.report.comparison import Comparison, Row

PLAIN_COLUMNS = 160


def compare_runs(paths: list[Path], tolerance: str, figure: Path | None, by: str | None = None) -> int:
    """Compares runs with the first, or in a sweep the runs with each value of a field with those with the first.

    Returns:
        The exit status: 0 indistinguishable, 1 different, 2 nothing to compare, or runs too few to tell.

    Raises:
        BadInputError: What is given is no run or sweep, or has mistakes.
    """
    from dilaton.report.comparison import compare, compare_sets, draw_comparison, pooled
    from dilaton.report.export import FIGURE_FORMATS, save
    from dilaton.report.metrics import metrics_of
    from dilaton.report.style import applied
    from dilaton.report.sweeps import sets_of
    from dilaton.run.files.directory import SWEEP_FILE
    from dilaton.run.loading import load

    with refusing(ValueError, option="--tolerance"):
        share = float(units.parse_ratio(tolerance))
    with refusing(RecordError, OSError, ValueError):
        if figure and figure.suffix[1:] not in FIGURE_FORMATS:
            raise ValueError(f"--figure: {figure}: its name must end in one of .{', .'.join(FIGURE_FORMATS)}")
        if len(paths) == 1 and (paths[0] / SWEEP_FILE).exists():
            sets = {
                name: {where: [metrics_of(load(path)) for path in runs] for where, runs in by_where.items()}
                for name, by_where in sets_of(paths[0], by).items()
            }
            outcome, drawn = compare_sets(sets, share), pooled(sets)
        elif by:
            raise ValueError("--by: tells the runs of a sweep apart; give the directory of one")
        else:
            names = run_names(paths)
            drawn = {name: metrics_of(load(path)) for name, path in zip(names, paths, strict=True)}
            outcome = compare(drawn, share)
        if figure and outcome.rows:
            shown = list(dict.fromkeys([*outcome.different, *(row.metric for row in outcome.rows)]))
            with applied(), writing(figure):
                save(draw_comparison(drawn, shown), figure)
    return tell(next(iter(drawn)), outcome)


def tell(reference: str, outcome: Comparison) -> int:
    """Prints the outcome of a comparison with `reference`; returns the exit status, as of `compare_runs`."""
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    if outcome.rows:
        # What differs comes first: there may be dozens of metrics.
        different = set(outcome.different)
        console.print(_table(reference, sorted(outcome.rows, key=lambda row: row.metric not in different)))
    if outcome.missing:
        console.print(Text(f"not in every run, not compared: {', '.join(outcome.missing)}", style="dim"))
    for each in (each for each in outcome.together if not math.isnan(each.p)):
        console.print(f"{each.run}, all metrics together: p = {_number(each.p)}")
    is_open = not outcome.rows or (bool(outcome.untold) and not outcome.is_different)
    style = "bold red" if outcome.is_different else "bold yellow" if is_open else "bold green"
    console.print(Text(outcome.verdict, style=style))
    if is_open:
        return 2
    return 1 if outcome.is_different else 0


def run_names(paths: list[Path]) -> list[str]:
    """The shortest ends of paths that tell runs apart.

    Raises:
        ValueError: there are fewer than two, or one is given twice.
    """
    whole = [path.resolve() for path in paths]
    if len(whole) < 2:
        raise ValueError("compare takes at least two runs, or a sweep")
    if twice := next((path for path in whole if whole.count(path) > 1), None):
        raise ValueError(f"{twice}: given twice; a run is compared with others")
    length = 1
    while len({path.parts[-length:] for path in whole}) < len(whole):
        length += 1
    return ["/".join(path.parts[-length:]) for path in whole]


def _table(reference: str, rows: list[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"compared with {reference}", title_justify="left")
    table.add_column("metric", overflow="fold")
    table.add_column("run", overflow="fold")
    of_sets = any(not math.isnan(row.by_chance) for row in rows)
    for heading in ("n", "mean", "CoV", "IQR", "KS", "p", "Wasserstein", *(["by chance"] if of_sets else [])):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in rows:
        left, right = row.reference, row.other
        table.add_row(
            row.metric,
            f"{reference}\n{row.run}",
            f"{left.count}\n{right.count}",
            f"{_quantity(left.mean, row.unit)}\n{_quantity(right.mean, row.unit)}",
            f"{_number(left.cov)}\n{_number(right.cov)}",
            f"{_quantity(left.iqr, row.unit)}\n{_quantity(right.iqr, row.unit)}",
            _number(row.distance.ks),
            _number(row.distance.p),
            f"{_quantity(row.distance.wasserstein, row.unit)}\n{_percent(row.distance.relative)}",
            *([f"\n{_percent(row.by_chance)}"] if of_sets else []),
            _outcome(row),
        )
    return table


def _outcome(row: Row) -> Text:
    if row.is_untold:
        return Text("not told", style="yellow")
    return Text("different", style="bold red") if row.is_different else Text("same", style="green")


def _quantity(value: float, unit: str) -> str:
    return "" if math.isnan(value) else numbers.quantity(value, unit)


def _percent(ratio: float) -> str:
    return f"{numbers.significant(ratio * 100, 3) if math.isfinite(ratio) else ratio} %"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"
