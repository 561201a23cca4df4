"""`dilaton check` and `dilaton plan`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dilaton.cli.errors import BAD_INPUT, HOST_LACKS, complain, spelled, warn
from dilaton.cli.output import visible
from dilaton.cli.verbs.options import read_lab
from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError
from dilaton.measure import numbers
from dilaton.service.errors import RequestError
from dilaton.service.prepare import Prepared, doubts, measures_nothing, prepare, refuse_hopeless, says_cost, says_no_end
from dilaton.service.request import LabText, Overrides, RunRequest


def check_labs(paths: list[Path], overrides: Overrides) -> int:
    """Checks labs, with what the command line says instead; returns the exit status."""
    bad = 0
    for path in paths:
        try:
            prepared = _prepared(path, overrides)
            for doubt in doubts(prepared):
                warn(doubt)
            refuse_hopeless(prepared)
        except LabError as error:
            complain(error)
            bad = BAD_INPUT
        except RequestError as error:
            complain(spelled(error))
            bad = BAD_INPUT
        except HostLacksError as error:
            complain(error)
            bad = bad or HOST_LACKS
        else:
            lab, plan = prepared.lab, prepared.plan
            counts = {"node": len(plan.nodes), "link": len(plan.links), "process": len(plan.processes)}
            shown = ", ".join(numbers.counted(count, what) for what, count in counts.items())
            good = "good for dilaton up; dilaton run needs a stop_after" if measures_nothing(lab) else "good"
            good += f"; {without_end}" if (without_end := says_no_end(lab)) else ""
            good += f"; {cost}" if (cost := says_cost(prepared)) else ""
            print(f"{prepared.text.name}: {lab.name}: {shown}: {good}")
    return bad


def _prepared(path: Path, overrides: Overrides) -> Prepared:
    """The lab at a path, or the saved one of that name."""
    text, saved = read_lab(path, is_here=True)
    if saved is None:
        return prepare(text, overrides)
    from dilaton.service.saved.restore import reading, restored

    with reading(saved) as tree:
        return restored(RunRequest(lab=text, overrides=overrides, saved=saved), tree)


def print_plan(path: Path, overrides: Overrides, machines: int, onto: Sequence[str]) -> None:
    """Prints the plan of a lab; with how it is divided among machines, what that costs beside it."""
    from dilaton.cli.labs import division

    plan = prepare(LabText.read(path), overrides).plan
    if found := division.divided(plan, machines, onto):
        plan = division.placed(plan, found)
    print(plan.model_dump_json(indent=1))
    for line in division.words(plan, found) if found else ():
        print(visible(line), file=sys.stderr)
