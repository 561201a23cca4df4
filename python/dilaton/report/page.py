"""The report: one page that needs no network and no other file, for people who were not there.

Figures are in the page as SVG with their text as text, so that it can be searched, each for wide and for narrow
screens, of which a browser shows one. Outputs of processes are linked, as they may be large, relative to the run
directory in which the page is.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from dilaton.measure import numbers
from dilaton.measure.expect import quantity
from dilaton.report.drawings import draw
from dilaton.report.figures.topology import utilisation
from dilaton.report.fitting import NARROW_IN, fit
from dilaton.report.style import LEVELS, WIDTH_IN, Drawing, applied
from dilaton.run import words
from dilaton.run.directory import replace_file
from dilaton.run.link_words import links_of
from dilaton.run.loading import REPORT, Run
from dilaton.run.record import RecordError

EVENTS_MAX = 500
"""More events are in `events.jsonl`."""

LINKS_MAX, LINKS_OPEN_MAX = 200, 10
"""More links are in `plan.json`; a table of many is shown when it is wanted."""

_TEMPLATES = Path(__file__).parent / "templates"


def write_report(run: Run) -> Path:
    """Writes the report of a run into its directory; returns its path.

    Raises:
        OSError: it cannot be written.
    """
    with applied():
        drawings, missing = draw(run)
        page = render(run, drawings, missing)
    path = run.path / REPORT
    replace_file(path, page.encode())
    return path


def render(run: Run, drawings: Sequence[Drawing], missing: Sequence[str]) -> str:
    """The page as HTML.

    Args:
        run: What it is about.
        drawings: Its figures, in their order.
        missing: What the run should have and does not have, a sentence each.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters |= {name: getattr(numbers, name) for name in ("counted", "duration", "significant")}
    record = run.record
    return environment.get_template("report.html.j2").render(
        record=record,
        verdict=record.verdict,
        adaptation=record.fidelity.adaptation if record.fidelity else None,
        verdict_colour=LEVELS[record.verdict.level] if record.verdict else "#777777",
        speed=record.time.virtual_s / record.time.host_s if record.time.host_s else 0.0,
        checks=[(check, quantity(check.text, check.value)) for check in record.checks],
        processes=[(process, words.outcome(process), _outputs(run, process)) for process in record.processes],
        events=_events(run),
        missing=missing,
        links=_links(run),
        link_count=len(run.plan.links) if run.plan else 0,
        links_open_max=LINKS_OPEN_MAX,
        figures=[(drawing, svg(drawing, WIDTH_IN), svg(drawing, NARROW_IN)) for drawing in drawings],
    )


def svg(drawing: Drawing, width_in: float) -> str:
    """A figure as an SVG element, laid out for that width in inches."""
    fit(drawing.figure, width_in)
    file = io.StringIO()
    # Without a date, so that the same run gives the same page; ids are made from the salt, so that figures of one page
    # have different ones.
    import matplotlib

    name = f"{drawing.name}-{width_in:g}in"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "svg.id": name}):
        drawing.figure.savefig(file, format="svg", metadata={"Date": None, "Title": drawing.title})
    text = file.getvalue()
    return text[text.index("<svg") :]


def _links(run: Run) -> list[tuple[str, str, float | None]]:
    """The first links: their names, what they were asked to do, and the mean share of their rate that they carried."""
    if run.plan is None:
        return []
    try:
        used = utilisation(run.plan, run.interfaces)
    except RecordError:
        # Told among what is missing, since figures need the samples too.
        used = {}
    return [(link.name, asked, used.get(link.name)) for link, asked in links_of(run.plan)[:LINKS_MAX]]


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
    """The first events: when, whose, what."""
    try:
        table = run.events
    except RecordError:
        # Told among what is missing, since the bands of figures need them too.
        return []
    rows = []
    for row in table.head(EVENTS_MAX).to_dict("records"):
        event = {name: _plain(value) for name, value in row.items() if value is not None and value == value}
        rows.append((float(row["t_s"]), words.subject(event), words.happened(event)))
    return rows


def _plain(value: Any) -> Any:
    """A whole number as one, which a column with gaps has as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
