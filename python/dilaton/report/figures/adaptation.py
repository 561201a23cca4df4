"""The TDF of a run that was watched, with what it followed: busy fraction and lateness of each epoch."""

from __future__ import annotations

import pandas as pd

from dilaton.report.figures.bands import Band, caption, draw_bands
from dilaton.report.style import BLUE, GREEN, ORANGE, Drawing, axes, time_axis, unit


def draw_adaptation(epochs: pd.DataFrame, late_us_max: float | None, bands: list[Band]) -> Drawing:
    """TDF, busy fraction and lateness over virtual time; `epochs` as `Run.epochs`, one at least."""
    figure, panels = axes(3, 1.3, sharex=True)
    series = (
        (epochs.tdf, "TDF", BLUE),
        (epochs.busy, "busy fraction", ORANGE),
        (epochs.late_us / 1e6, "1 % later than", GREEN),
    )
    edges = [epochs.begin_s.iloc[0], *epochs.end_s]
    for where, (values, label, colour) in zip(panels, series, strict=True):
        where.step(edges, [values.iloc[0], *values], where="pre", color=colour)
        where.set_ylabel(label)
        where.set_ylim(bottom=0)
        draw_bands(where, bands if where is panels[0] else [band.unnamed() for band in bands])
    unit(panels[2].yaxis, "s")
    if late_us_max is not None and late_us_max < 3 * (epochs.late_us.max() or late_us_max):
        panels[2].axhline(late_us_max / 1e6, color=GREEN, linestyle="--", linewidth=0.8)
    time_axis(panels[-1])
    words = (
        "The time dilation factor, and what it followed, epoch by epoch: the share of the time in which the busiest "
        "guest worked, and the lateness that one timer in a hundred exceeded (dashed: the bound)."
    )
    return Drawing("adaptation", "Time dilation", words + caption(bands), figure)
