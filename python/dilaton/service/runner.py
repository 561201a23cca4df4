"""The process of a run that somebody launched: `python -m dilaton.service.runner`, with a request as its input.

Tidings go to its standard output; what happens in the run, to its standard error, in plain text.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from dilaton.garbage import collect_rarely
from dilaton.host.errors import HostLacksError
from dilaton.host.processes import have_session_nice
from dilaton.lab.errors import LabError
from dilaton.plan.model import Plan
from dilaton.run.observer import Observer
from dilaton.run.record.model import ClockChange
from dilaton.run.record.record import Record, State
from dilaton.service.conduct import conduct, went_well
from dilaton.service.errors import RequestError
from dilaton.service.journal import Journal, Lines
from dilaton.service.request import RunRequest, from_json
from dilaton.service.tidings import Begun, Ended, Tiding, line_of, refused

WELL, NOT_WELL, REFUSED = 0, 1, 2
"""Exit statuses."""


class _Teller(Journal):
    """Tells whoever launched the run what becomes of it, beside what a journal writes."""

    def __init__(self, tell: Callable[[Tiding], None], *, is_held: bool) -> None:
        super().__init__(sys.stderr)
        self._tell = tell
        self._is_held = is_held
        self._run_dir = Path()

    def observer(self, run_dir: Path) -> Observer:
        return _Beginning(self.write, lambda: self._tell(Begun(run_dir=run_dir)), is_held=self._is_held)

    def concluded(self, plan: Plan, record: Record, run_dir: Path) -> None:
        super().concluded(plan, record, run_dir)
        self._run_dir = run_dir

    def ended(self, record: Record) -> None:
        """All is over."""
        is_well = went_well(record)
        self._tell(Ended(run_dir=self._run_dir, state=record.state, reason=record.reason, is_well=is_well))


class _Beginning(Lines):
    """Waits for the moment from which a run can be steered."""

    def __init__(self, write: Callable[[str], None], begun: Callable[[], None], *, is_held: bool) -> None:
        super().__init__(write)
        self._begun = begun
        self._wanted = {"running", "held"} if is_held else {"running"}

    def state(self, state: State) -> None:
        self._reached(state)

    def clock_changed(self, change: ClockChange) -> None:
        super().clock_changed(change)
        if change.tdf is None:
            self._reached("held")

    def _reached(self, what: str) -> None:
        if what in self._wanted:
            self._wanted.remove(what)
            if not self._wanted:
                self._begun()


def main() -> int:
    """Runs what the standard input asks for; returns the exit status."""
    tidings = os.dup(1)
    # What else is printed here is no tiding.
    os.dup2(2, 1)

    def tell(tiding: Tiding) -> None:
        # Who launched the run may be gone, and then somebody else steers it.
        with contextlib.suppress(OSError), open(tidings, "wb", closefd=False) as line:
            line.write(line_of(tiding))

    request = RunRequest.model_validate(from_json(sys.stdin.buffer.read()))
    teller = _Teller(tell, is_held=request.hold_at is not None)
    try:
        record = conduct(request, teller)
    except (LabError, RequestError, HostLacksError) as error:
        teller.write(str(error))
        tell(refused(error))
        return REFUSED
    except MemoryError:
        lack = HostLacksError(
            "memory: there is not enough for this", "close other programs, or raise the limit (ulimit -v)"
        )
        tell(refused(lack))
        return REFUSED
    teller.ended(record)
    return WELL if went_well(record) else NOT_WELL


if __name__ == "__main__":
    collect_rarely()
    asyncio.run(have_session_nice(os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)))
    sys.exit(main())
