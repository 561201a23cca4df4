"""What views of a run are drawn from: its plan, its events, its samples, as the run has written them so far.

Guests write into run directories, so nothing is read here, only passed on: whoever draws reads it, and bears what is in
it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from dilaton.run.files.directory import PLAN_FILE
from dilaton.run.files.verdict_log import VERDICTS_FILE
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, needs
from dilaton.server.api.runs.runs import Count, Start, sent
from dilaton.server.labs.drawing import Drawing
from dilaton.server.problems import Problem
from dilaton.server.runs.files import PART_BYTES_MAX, opened, part

ENDPOINTS = Endpoints()

READ = needs(("Run.Read", "run"))

GUEST = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/plan", READ, response_class=Response)
def show_plan(run: TheRun, server: Server) -> Response:
    """`plan.json`: nodes, links, programs and the course of a run, as `dilaton plan` prints them."""
    return sent(server, run, PLAN_FILE, "application/json")


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/drawing", READ)
def show_drawing(run: TheRun, server: Server) -> Drawing:
    """What is drawn of a run: nodes with their kinds, links, programs, what is measured and expected. It is there from
    the moment at which the run is asked for, and far smaller than the plan."""
    try:
        return Drawing.model_validate_json(server.keeper.drawing(run.identity).read_bytes())
    except FileNotFoundError:
        raise Problem(404, "missing", f"drawing: none is kept of run {run.identity}") from None


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/events", READ, response_class=Response)
def show_events(run: TheRun, server: Server) -> Response:
    """`events.jsonl`: what has happened in a run, a line of JSON each; `happenings` tells it as it happens."""
    return sent(server, run, "events.jsonl", "application/x-ndjson")


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/verdicts", READ, response_class=Response)
def show_verdicts(run: TheRun, server: Server) -> Response:
    """`verdicts.jsonl`: how the run stood while it went on, a line of JSON for each instant: its verdict, and how much
    each guest had worked and waited."""
    return sent(server, run, VERDICTS_FILE, "application/x-ndjson")


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/samples", READ, response_class=Response)
def show_samples(
    run: TheRun,
    server: Server,
    guest: Annotated[str, Query(pattern=GUEST)],
    table: Literal["interfaces", "tcp", "nodes", "outputs"] = "interfaces",
    start: Start = 0,
    count: Count = PART_BYTES_MAX,
) -> Response:
    """A piece of a table of samples (docs/measure.md), at most `count` bytes of it from byte `start` on, or where that
    is negative from so many before its end: at 0 comes the line with the names of its columns. A run that goes on
    appends; who asks again behind what they have misses nothing."""
    path = f"measure/{guest}/{table}.csv"
    try:
        file = opened(server.keeper.run_dir(run.identity), path)
    except OSError:
        raise Problem(404, "missing", f"{path}: the run measures none of these, or has none yet") from None
    return Response(part(file, start, count), media_type="text/csv; charset=utf-8")
