"""`dilaton --server URL compare`: of runs, which are copied for that long, or of a sweep, which the server compares."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from dilaton.cli.errors import BadInputError, refusing
from dilaton.cli.results.compare import compare_runs, tell
from dilaton.cli.runs.remote import any_at, asking
from dilaton.lab.text import units
from dilaton.remote.answers import Apart, Brief, Compared
from dilaton.remote.server import Server


def compare_there(url: str, names: list[str], tolerance: str, figure: Path | None, by: str | None) -> int:
    """As `compare_runs`, of what runs of a server have left, or of the runs of its sweep of an identity."""
    if len(names) == 1:
        return _compare_sweep(url, names[0], tolerance, figure, by)
    if by is not None:
        raise BadInputError("--by: tells the runs of a sweep apart; give the identity of one, and nothing else")
    with tempfile.TemporaryDirectory(prefix="dilaton-") as place, asking():
        paths = []
        for run in names:
            left = any_at(Server(url), run)
            paths.append(Path(place) / left.identity)
            if not paths[-1].exists():
                left.fetch(paths[-1])
        return compare_runs(paths, tolerance, figure)


def _compare_sweep(url: str, sweep: str, tolerance: str, figure: Path | None, by: str | None) -> int:
    if figure is not None:
        raise BadInputError("--figure: not of a server's sweep; dilaton --server URL sweep has it here, with figures")
    with refusing(ValueError, option="--tolerance"):
        share = float(units.parse_ratio(tolerance))
    with asking():
        server = Server(url)
        found = server.compare_sweep(sweep, by, share)
        fields = server.show_sweep(sweep)["fields"]
    reference = next(one for one in fields if len(one["values"]) > 1 and by in (None, one["path"]))
    return tell(f"{reference['path']}={reference['values'][0]}", _read(found))


def _read(said: Compared) -> Any:
    """A comparison as it was before it was JSON, which has no NaN."""
    from dilaton.measure.statistics import Distance, Summary
    from dilaton.report.comparison import Comparison, Row, Together

    def brief(one: Brief) -> Summary:
        return Summary(one["count"], _number(one["mean"]), _number(one["cov"]), _number(one["iqr"]))

    def apart(one: Apart) -> Distance:
        return Distance(*(_number(one[name]) for name in ("ks", "p", "wasserstein", "relative")))

    rows = [
        Row(
            one["metric"],
            one["unit"],
            one["run"],
            brief(one["reference"]),
            brief(one["other"]),
            apart(one["distance"]),
            one["is_different"],
            _number(one["by_chance"]),
            one["is_untold"],
        )
        for one in said["rows"]
    ]
    together = [Together(one["run"], _number(one["p"]), one["is_different"]) for one in said["together"]]
    return Comparison(rows, said["missing"], together, said["least_p"])


def _number(said: float | None) -> float:
    return math.nan if said is None else said
