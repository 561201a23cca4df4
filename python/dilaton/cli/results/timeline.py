"""`dilaton logs --timeline`."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from dilaton.cli.errors import refusing
from dilaton.cli.terminal import Output
from dilaton.run.control.errors import ControlError
from dilaton.run.loading import load
from dilaton.run.record.record import RecordError
from dilaton.run.timeline import Moment, timeline


@refusing(RecordError)
def print_timeline(directory: Path, node: str, process: str) -> None:
    """Prints the events of a run and the lines of its outputs, in the order in which they came.

    Args:
        directory: Of the run.
        node: Whose outputs; `*` for all.
        process: The same.

    Raises:
        ControlError: It was not noted when outputs were written.
    """
    run = load(directory)
    if run.plan is None or not run.plan.measure.outputs:
        how = "run it with --set measure.outputs=true, or write that in the lab"
        raise ControlError(f"{directory}: it was not noted when its programs wrote what; {how}")
    console = Output()
    for moment in timeline(run, lambda at, name: node in ("*", at) and process in ("*", name)):
        console.print(_styled(moment), soft_wrap=True)


def _styled(moment: Moment) -> Text:
    begun = Text(f"{moment.instant}  ", style="dim").append(moment.whose, style="not dim bold")
    if moment.is_event:
        return begun.append(f" {moment.text}", style="yellow")
    return begun.append(f" | {moment.text}", style="default")
