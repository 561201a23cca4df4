"""The report: one page that needs no network and no other file, for people who were not there.

Outputs of processes are linked, as they may be large, relative to the run directory in which the page is. What draws
takes longer to import than many runs last, so there are pages without figures, which do without it.

To compile the templates takes a tenth of what a short run does. So they are kept compiled as Python keeps its modules:
beside them, if whoever runs this may write there, who then could change the modules as well.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import jinja2

from dilaton.measure import numbers
from dilaton.measure.expect import quantity
from dilaton.run.files.directory import replace_file
from dilaton.run.loading import REPORT, Run
from dilaton.run.record import words
from dilaton.run.record.events import faults_of
from dilaton.run.record.link_words import links_of
from dilaton.run.record.model import ComparisonRecord, Record
from dilaton.run.record.record import RecordError

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

    from dilaton.report.pictures import Drawn, Picture
    from dilaton.report.sweeps import Swept

LEVELS = {"confirmed": "#00674b", "valid": "#00674b", "suspect": "#8f5600", "invalid": "#b33000"}
"""Colours of verdicts, dark enough for white text on them."""

EVENTS_MAX = 500
"""More events are in `events.jsonl`."""

LINKS_MAX = 200
"""More links are in `plan.json`."""

ROWS_OPEN_MAX = 10
"""A table of more links or faults is shown when it is wanted."""

CHANGES_MAX = 30
"""More results that were compared are in `run.json`."""

_TEMPLATES = Path(__file__).parent / "templates"
_COMPILED = _TEMPLATES / "__pycache__"
_OPTIONS: dict[str, Any] = {"autoescape": True, "trim_blocks": True}


def write_report(run: Run, *, with_figures: bool = True) -> Path:
    """Writes the report of a run into its directory; returns its path.

    Raises:
        OSError: it cannot be written.
    """
    drawn = None
    if with_figures:
        from dilaton.report.pictures import draw_page

        drawn = draw_page(run)
    path = run.path / REPORT
    replace_file(path, render(run, drawn).encode())
    return path


def render(run: Run, drawn: Drawn | None) -> str:
    """The page as HTML.

    Args:
        run: What it is about.
        drawn: Its figures, and what else comes from samples; None for a page without.
    """
    links = _links(run, drawn.used if drawn else {})
    damaged = list(drawn.missing) if drawn else []
    try:
        events, faults = _events(run), faults_of(run.happened)
    except RecordError as error:
        events, faults = [], []
        damaged.append(str(error))
    record = run.record
    return _template("report.html.j2").render(
        record=record,
        verdict=record.verdict,
        from_outside=words.from_outside(record),
        comparisons=_comparisons(record),
        adaptation=record.fidelity.adaptation if record.fidelity else None,
        verdict_colour=LEVELS[record.verdict.level] if record.verdict else "#777777",
        speed=record.time.virtual_s / record.time.host_s if record.time.host_s else 0.0,
        checks=[(check, quantity(check.text, check.value)) for check in record.checks],
        processes=[
            (process, words.command(process), words.outcome(process), _outputs(run, process))
            for process in record.processes
        ],
        events=events[:EVENTS_MAX],
        event_count=len(events),
        faults=faults,
        missing=list(dict.fromkeys([*run.missing, *damaged])),
        links=links,
        link_count=len(run.plan.links) if run.plan else 0,
        rows_open_max=ROWS_OPEN_MAX,
        drawn=drawn,
    )


def write_sweep(directory: Path, swept: Swept, pictures: list[Picture]) -> Path:
    """Writes the report of a sweep into its directory; returns its path.

    Args:
        directory: The sweep's.
        swept: What its runs measured.
        pictures: Its figures.

    Raises:
        OSError: it cannot be written.
    """
    fields = list(swept.values)
    by_verdict = swept.table.verdict.value_counts()
    runs = [
        ([row[field] for field in fields], *(row[each] for each in ("repeat", "state", "verdict", "passed", "run")))
        for row in swept.table.to_dict("records")
    ]
    heads, means = swept.said(swept.units)
    page = _template("sweep.html.j2").render(
        lab=swept.lab,
        run_count=len(swept.table),
        fields=[swept.named(field) for field in fields],
        verdicts=[(level, LEVELS[level], by_verdict[level]) for level in LEVELS if level in by_verdict],
        heads=heads,
        means=means,
        pictures=[picture for picture in pictures if picture.name not in swept.further],
        further=[picture for picture in pictures if picture.name in swept.further],
        constant=[swept.named(name) for name in swept.constant],
        runs=runs,
        rows_open_max=ROWS_OPEN_MAX,
    )
    path = directory / REPORT
    replace_file(path, page.encode())
    return path


class _Compiled(jinja2.FileSystemBytecodeCache):
    """Templates as compiled by this jinja2 with these options. One that cannot be read is compiled again."""

    def __init__(self) -> None:
        """None is read or written yet."""
        options = ",".join(f"{name}={value}" for name, value in _OPTIONS.items())
        super().__init__(str(_COMPILED), f"%s.jinja2-{jinja2.__version__},{options}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """See jinja2."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """See jinja2."""
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):
                _COMPILED.mkdir(exist_ok=True)
                super().dump_bytecode(bucket)


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        bytecode_cache=_Compiled(),
        **_OPTIONS,
    )
    environment.filters |= {name: getattr(numbers, name) for name in ("counted", "duration", "significant")}
    return environment.get_template(name)


def _comparisons(record: Record) -> list[tuple[ComparisonRecord, list[tuple[str, str, str, str, str, bool]]]]:
    """What a run was confirmed by, each with its results: here, with more time, how far apart, by chance, whether
    that is a change."""
    confirmation = record.confirmation
    return [
        (
            each,
            [
                (
                    change.metric,
                    numbers.quantity(change.value, change.unit),
                    numbers.quantity(change.reference, change.unit),
                    numbers.apart(change.change),
                    "" if change.by_chance is None else numbers.apart(change.by_chance),
                    change.is_different,
                )
                for change in each.told(CHANGES_MAX)
            ],
        )
        for each in (confirmation.comparisons if confirmation else [])
    ]


def _links(run: Run, used: dict[str, float]) -> list[tuple[str, str, float | None]]:
    """The first links: their names, what they were asked to do, and the mean share of their rate that they carried."""
    links = links_of(run.plan)[:LINKS_MAX] if run.plan else []
    return [(link.name, asked, used.get(link.name)) for link, asked in links]


def _outputs(run: Run, process: Any) -> list[tuple[str, str]]:
    """The outputs of a process that are not empty: what they are called, and where they are."""
    found = []
    for stream in ("stdout", "stderr"):
        relative = f"nodes/{process.node}/{process.name}.{stream}"
        path = run.path / relative
        if path.is_file() and not path.is_symlink() and path.stat().st_size:
            found.append((stream, relative))
    return found


def _events(run: Run) -> list[tuple[float, str, str]]:
    """All events: when, whose, what."""
    return [(event.t_ns / 1e9, words.subject(event), words.happened(event)) for event in run.happened]
