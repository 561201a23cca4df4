"""`dilaton up`: a lab that stays, to work in by hand."""

from __future__ import annotations

import contextlib
import os
import shlex

from dilaton.cli.errors import refusing
from dilaton.cli.output import from_here
from dilaton.run.control.errors import ControlError
from dilaton.service import plain
from dilaton.service.request import RunRequest


def bring_up(request: RunRequest, *, detached: bool) -> int:
    """Starts a lab that stays, and gives its prompt; the lab ends with it. Detached: it goes on. Returns the status."""
    from dilaton.cli.prompt.prompt import converse

    with refusing(ControlError):
        with _progress():
            run = plain.begin(request, detached=detached)
        if detached:
            path = from_here(run.path)
            named = shlex.quote(path)
            print(f"{path} is up; dilaton cli {named} for its prompt, dilaton down {named} to end it")
            return 0
        with run:
            status = converse(run)
    if not os.isatty(0):
        print("the lab ended with its input, which is no terminal; --detach has it stay")
    print(f"outputs and record: {run.path}")
    return status


def _progress() -> contextlib.AbstractContextManager[object]:
    """Shows at a terminal that something goes on, as a large lab takes a while to come up."""
    if not os.isatty(2):
        return contextlib.nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("kernels boot, then nodes and links are made")
