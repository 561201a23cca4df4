"""`dilaton suspend` and `resume`: a run goes on another time; or one that is over, from an instant of it."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.errors import refusing
from dilaton.cli.steering.asking import Reach, here
from dilaton.cli.steering.control import print_clock
from dilaton.measure import numbers
from dilaton.run.control.answers import RESUME, SUSPEND
from dilaton.run.control.errors import ControlError
from dilaton.service.catalogue import find


@refusing(ControlError)
def suspend(run: str, reach: Reach = here) -> None:
    """Puts a run away, which `reach` finds."""
    with reach(run) as asked:
        away = asked.request(SUSPEND)
    memory, at = f"{away['memory_bytes'] / 1e6:,.0f} MB", numbers.duration(away["virtual_s"])
    print(f"suspended at {at}: {memory} of memory are on disk; dilaton resume {run} lets it go on")


@refusing(ControlError)
def resume(run: str, reach: Reach = here) -> None:
    """Lets a run go on that was put away, and that `reach` finds."""
    with reach(run) as asked:
        print_clock(asked.request(RESUME))


@refusing(ControlError)
def repeat(run: str, at: str, out: Path | None) -> None:
    """Repeats a run that is over up to an instant, where it is held."""
    from dilaton.host.errors import HostLacksError
    from dilaton.lab.errors import LabError
    from dilaton.service.errors import RequestError
    from dilaton.service.saved.repeat import resumed

    with refusing(RequestError, LabError, HostLacksError):
        found = resumed(find(run), at, out)
    print(
        f"{found.path} is held at {at}, in the state that {run} had: {found.events} events and {found.bytes:,} bytes "
        f"that guests wrote are the same\nto go on: dilaton clock {found.path} release"
    )
