"""Both clocks of a run side by side: virtual time over host time, speed and TDF."""

from __future__ import annotations

import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter

from dilaton.report.style import BLUE, ORANGE, Drawing, axes, legend


def draw_clocks(clock: pd.DataFrame) -> Drawing:
    """Virtual time, its speed and the TDF, over host time; `clock` as `Run.clock`."""
    figure, (above, below) = axes(2, 1.5, sharex=True)
    above.plot(clock.host_s, clock.virtual_s, color=BLUE)
    above.set_ylabel("virtual time (s)")
    speed = clock.virtual_s.diff() / clock.host_s.diff()
    below.plot(clock.host_s, speed, color=BLUE, drawstyle="steps-pre", label="speed")
    below.plot(clock.host_s, 1 / clock.tdf, color=ORANGE, linestyle="--", label="1 / TDF")
    spread = (speed[speed > 0].max() or 1) / (speed[speed > 0].min() or 1)
    if spread > 10:
        below.set_yscale("log")
        below.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if spread < 100 else (1,)))
        below.yaxis.set_major_formatter("{x:g}")
        below.yaxis.set_minor_formatter(NullFormatter())
    else:
        below.set_ylim(0, 1.08 * max(speed.max(), 1 / clock.tdf.min()))
    below.set_ylabel("virtual s per host s")
    below.set_xlabel("host time since the clock's release (s)")
    below.margins(x=0.01)
    legend(below)
    caption = (
        "Virtual time over host time. On the wall drive the speed is 1 / TDF; on the work drive it is higher where the "
        "guest idles and lower where the host gives it less than a core."
    )
    return Drawing("clocks", "Clocks", caption, figure)
