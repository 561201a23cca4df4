"""Figures as a page has them: SVG with text as text, so that it can be searched, for wide and for narrow screens."""

from __future__ import annotations

import io
from dataclasses import dataclass

import matplotlib

from dilaton.report.drawings import draw
from dilaton.report.figures.topology import utilisation
from dilaton.report.fitting import NARROW_IN, fit
from dilaton.report.style import WIDTH_IN, Drawing, applied
from dilaton.run.loading import Run
from dilaton.run.record.record import RecordError


@dataclass(frozen=True)
class Picture:
    """A figure; `broad` and `narrow` are the same one laid out for two widths, as SVG elements."""

    name: str
    title: str
    caption: str
    broad: str
    narrow: str


@dataclass(frozen=True)
class Drawn:
    """What of a page takes drawing, and reading samples.

    Attributes:
        pictures: In their order.
        used: The mean share of its rate that each link carried, where that is known.
        missing: What the run should have and does not have, a sentence each.
    """

    pictures: list[Picture]
    used: dict[str, float]
    missing: list[str]


def draw_page(run: Run) -> Drawn:
    """Draws everything that a run has."""
    with applied():
        drawings, missing = draw(run)
        pictures = [picture_of(drawing) for drawing in drawings]
    try:
        used = utilisation(run.plan, run.interfaces) if run.plan else {}
    except RecordError:
        # Told among what is missing, since figures need the samples too.
        used = {}
    return Drawn(pictures, used, missing)


def picture_of(drawing: Drawing) -> Picture:
    """A figure for both widths, in whatever style is applied."""
    broad, narrow = svg(drawing, WIDTH_IN), svg(drawing, NARROW_IN)
    return Picture(drawing.name, drawing.title, drawing.caption, broad, narrow)


def svg(drawing: Drawing, width_in: float) -> str:
    """A figure as an SVG element, laid out for that width in inches."""
    fit(drawing.figure, width_in)
    file = io.StringIO()
    # Without a date, so that the same run gives the same page; ids are made from the salt, so that figures of one page
    # have different ones.
    name = f"{drawing.name}-{width_in:g}in"
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "svg.id": name}):
        drawing.figure.savefig(file, format="svg", metadata={"Date": None, "Title": drawing.title})
    text = file.getvalue()
    return text[text.index("<svg") :]
