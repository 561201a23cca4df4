"""Events as bands and lines behind every time series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes

from dilaton.report.style import BLACK, RED

NOT_MARKED = {"started", "ready", "exited", "start-failed", "skipped", "ready-timeout", "link-steered"}
"""What happens to processes, which have bands, and what says who changed a link: that it changed is an event, too."""
LABELS_MAX = 6
LABEL_CHARACTERS_MAX = 16


@dataclass(frozen=True)
class Band:
    """From `begin_s` to `end_s` something was so; equal for what happened at an instant."""

    name: str
    begin_s: float
    end_s: float
    is_out_of_bounds: bool = False
    """Whether fidelity was, as a run that was watched has shown."""

    def unnamed(self) -> Band:
        """For further panels of a figure."""
        return replace(self, name="")


def bands_of(processes: pd.DataFrame, events: pd.DataFrame, end_s: float) -> list[Band]:
    """What is shown behind the series of a run: the processes that it waited for, and whatever else happened.

    Args:
        processes, events: Tables of a run.
        end_s: Its end.
    """
    ran = processes[processes.start_s.notna()]
    whole = [
        Band(row.name_, float(row.start_s), float(row.end_s if pd.notna(row.end_s) else end_s))
        for row in ran.rename(columns={"name": "name_"}).itertuples()
    ]
    # What runs all the time explains nothing.
    partial = [band for band in whole if band.end_s - band.begin_s < 0.95 * end_s]
    others = events[~events.kind.isin(NOT_MARKED)]
    return partial + [Band(str(row.kind), float(row.t_s), float(row.t_s)) for row in others.itertuples()]


def draw_bands(where: Axes, bands: Sequence[Band]) -> None:
    """Draws bands behind a series, with their names above it as long as there are few."""
    for number, band in enumerate(bands):
        if band.end_s > band.begin_s:
            colour, alpha = (RED, 0.2) if band.is_out_of_bounds else (BLACK, 0.04)
            where.axvspan(band.begin_s, band.end_s, color=colour, alpha=alpha, linewidth=0)
        else:
            where.axvline(band.begin_s, color=BLACK, alpha=0.4, linewidth=0.6, linestyle=":")
        if len(bands) <= LABELS_MAX:
            where.annotate(
                _short(band.name),
                (band.begin_s, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(1, 2 + 7 * (number % 2)),
                textcoords="offset points",
                fontsize=6,
                color="#555555",
                annotation_clip=True,
            )


def _short(name: str) -> str:
    return name if len(name) <= LABEL_CHARACTERS_MAX else name[: LABEL_CHARACTERS_MAX - 1] + "…"
