"""Comparisons: whether runs, or the runs of a sweep by the value of a field, differ in what they have measured."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, model_validator
from sqlalchemy import select

from dilaton.host.processes import PYTHON
from dilaton.run.files.directory import RECORD_FILE
from dilaton.run.points import points
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.tables import RunRow, SweepRow
from dilaton.server.problems import Problem, missing
from dilaton.server.state import State
from dilaton.server.workers import BrokenError, answer_of, jail

ENDPOINTS = Endpoints()

WORKER = (*PYTHON, "-m", "dilaton.server.runs.comparing")

RUNS_MAX = 200

TOLERANCE = 0.05
"""As `dilaton compare` has it."""

Identity = Annotated[str, Field(max_length=16)]
Sets = dict[str, dict[str, list[RunRow]]]
"""Runs, by the name of their set and by what else tells them apart, "" for nothing."""


class NewComparison(Asked):
    """What is to be compared: runs with the first of them, or the runs of a sweep."""

    runs: Annotated[list[Identity], Field(max_length=RUNS_MAX)] = Field(default=[])
    sweep: Identity | None = None
    by: Annotated[str | None, Field(max_length=200)] = None
    """The field of the sweep by whose values its runs are told apart; null: the only one that varies."""
    tolerance: Annotated[float, Field(ge=0, le=1)] = TOLERANCE
    """A relative difference up to this is of no relevance."""

    @model_validator(mode="after")
    def _one(self) -> NewComparison:
        if bool(self.runs) == bool(self.sweep) or (self.runs and len(set(self.runs)) < max(2, len(self.runs))):
            raise ValueError("runs: two or more, each once; or a sweep")
        return self


class Brief(BaseModel):
    """A set of values in brief; null where there are too few."""

    count: int
    mean: float | None
    cov: float | None
    """Standard deviation over mean."""
    iqr: float | None
    """Interquartile range."""


class Apart(BaseModel):
    """How far two sets of values are apart."""

    ks: float | None
    """Largest difference of the two distribution functions."""
    p: float | None
    """Probability of one as large between samples of one distribution."""
    wasserstein: float | None
    relative: float | None
    """That over the reference's mean."""


class ComparedRow(BaseModel):
    """One metric of one run, or set of runs, beside that of the reference."""

    metric: str
    unit: str
    run: str
    reference: Brief
    other: Brief
    distance: Apart
    is_different: bool
    by_chance: float | None
    """Of sets of runs, the relative distance that chance exceeds in 5 of 100 cases."""
    is_untold: bool
    """Whether so few runs cannot tell."""


class ComparedTogether(BaseModel):
    """All metrics of a set of runs together beside those of the reference."""

    run: str
    p: float | None
    is_different: bool


class Comparison(BaseModel):
    """What `dilaton compare` says."""

    rows: list[ComparedRow]
    missing: list[str]
    """Metrics that some run does not have, which are not compared."""
    together: list[ComparedTogether]
    least_p: float
    """Of sets of runs, the smallest p that one of them and the reference can give."""
    verdict: str
    """In a sentence."""
    is_different: bool


@ENDPOINTS.add("POST", f"{PREFIX}/comparisons", needs(("Run.Read", "each")))
async def compare_runs(asked: NewComparison, who: Who, server: Server) -> Comparison:
    """Compares what runs have measured, whole distributions of it, as `dilaton compare` does."""
    sets = await asyncio.to_thread(_sets, server, who, asked)
    places = {
        name: {where: [str(_directory(server, run)) for run in runs] for where, runs in by_where.items()}
        for name, by_where in sets.items()
    }
    reads = [Path(place) for by_where in places.values() for found in by_where.values() for place in found]
    wanted = json.dumps({"sets": places, "tolerance": asked.tolerance}).encode()
    async with server.comparing:
        try:
            said = await answer_of([*jail(server.settings.directory.resolve(), reads=reads), *WORKER], wanted)
        except BrokenError as error:
            raise Problem(422, "comparison", f"cannot be compared: {error}") from None
    if "wrong" in said:
        raise Problem(422, "comparison", said["wrong"].replace(f"{server.settings.runs.resolve()}/", ""))
    return Comparison(**said)


def _directory(server: State, run: RunRow) -> Path:
    found = server.keeper.run_dir(run.identity).resolve()
    if not os.path.lexists(found / RECORD_FILE):
        raise Problem(409, "state", f"run {run.identity}: has left no record{'' if run.ended_ms else ' yet'}")
    return found


def _sets(server: State, who: Caller, asked: NewComparison) -> Sets:
    if asked.sweep is None:
        runs = _runs(server, who, asked.runs)
        return {f"{run.name} #{run.number}": {"": [run]} for run in runs}
    with server.store.reading() as session:
        sweep = session.scalar(select(SweepRow).where(SweepRow.identity == asked.sweep))
        if sweep is None or not who.access.may("Run.Read", sweep.path):
            raise missing("sweep", asked.sweep)
        wanted = select(RunRow).where(RunRow.sweep == sweep.identity, RunRow.state == "finished")
        rows = [row for row in session.scalars(wanted.order_by(RunRow.point)) if who.access.may("Run.Read", row.path)]
    values = {one["path"]: one["values"] for one in sweep.fields}
    varied = [path for path in values if len(values[path]) > 1]
    field = asked.by or (varied[0] if len(varied) == 1 else None)
    if field is None or field not in varied:
        raise Problem(422, "argument", f"by: one of {', '.join(varied) or 'none, for nothing varies'}", field="by")
    work = points(values, sweep.repeat)
    sets: Sets = {}
    for row in rows:
        settings = dict(work[row.point or 0].settings)
        where = " ".join(f"{other}={settings[other]}" for other in varied if other != field)
        sets.setdefault(f"{field}={settings[field]}", {}).setdefault(where, []).append(row)
    everywhere = {where for by_where in sets.values() for where in by_where}
    if len(sets) < 2 or any(set(by_where) != everywhere for by_where in sets.values()):
        raise Problem(409, "state", f"not every value of {field} has a run that has finished")
    return sets


def _runs(server: State, who: Caller, identities: list[str]) -> list[RunRow]:
    with server.store.reading() as session:
        found = {row.identity: row for row in session.scalars(select(RunRow).where(RunRow.identity.in_(identities)))}
    for identity in identities:
        if identity not in found or not who.access.may("Run.Read", found[identity].path):
            raise missing("run", identity)
    return [found[identity] for identity in identities]
