"""`dilaton exec`: one command of this machine in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dilaton.cli.errors import BadInputError, complain, failing, refusing
from dilaton.cli.steering.attach import FORWARDED, Terminal, attend, signalled, wants_terminal
from dilaton.host.counters import Counters, Lack
from dilaton.host.errors import GuestError
from dilaton.host.here.doctor.doctor import require
from dilaton.host.port import Machine
from dilaton.host.sessions.frames import Request
from dilaton.lab.text import syntax, units
from dilaton.plan.alone import NODE, Alone
from dilaton.plan.bind import Bind
from dilaton.run import machines

ADDRESS_SPACE = "address space were asked for at once, and a guest's kernel gives a program less"

LACKS = {
    Lack.KVM: "/dev/kvm was asked for; a guest cannot have guests",
    Lack.OTHER_CPU: "another CPU than CPU 0 was asked for; a guest has one",
    Lack.AMX: "AMX was asked for; a guest does not have it",
    Lack.CPU_TIMER: "a timer of CPU time was set, for which computing takes no time on the event drive",
}


@dataclass(frozen=True)
class Options:
    """What the command line says.

    Attributes:
        tdf, drive, max_speed, memory, seed: As written; None for the default of `max_speed`.
        writable: Directories that the command may write.
        out: One more, which is made where it does not exist.
        terminal: Whether it gets a terminal; None: if we have one.
    """

    tdf: str
    drive: str
    max_speed: str | None
    memory: str
    seed: str
    writable: Sequence[Path]
    out: Path | None
    terminal: bool | None


def execute(argv: Sequence[str], options: Options) -> int:
    """Runs a command; returns its exit status, as a shell has it.

    Raises:
        BadInputError: An option is wrong.
        HostLacksError: This machine cannot run guests.
        FailedError: The guest did not start, or ended by itself.
    """
    has_terminal = wants_terminal(options.terminal)
    machine = machines.chosen()
    alone = _alone(options, machine, has_terminal)
    require(jailed=True)
    with Terminal() if has_terminal else contextlib.nullcontext() as terminal:
        return _run(machine, alone, argv, terminal)


def _run(machine: Machine, alone: Alone, argv: Sequence[str], terminal: Terminal | None) -> int:
    interruptions: list[int] = []
    try:
        with failing(GuestError):
            return asyncio.run(_execute(machine, alone, argv, terminal, interruptions))
    except asyncio.CancelledError:
        return signalled(interruptions[0])


async def _execute(
    machine: Machine, alone: Alone, argv: Sequence[str], terminal: Terminal | None, interruptions: list[int]
) -> int:
    words = [os.fsencode(word) for word in argv]
    size = terminal.size if terminal else None
    request = Request(NODE, words, os.environb, os.getcwd(), "root", size)
    with _interruptible(interruptions):
        async with machine.alone(alone, request) as (guest, session):
            ending = await attend(session, terminal)
            lacks = _lacks(guest.counters())
    if ending.reason:
        complain(ending.reason)
    elif ending.status:
        # It may also have done without, and failed for another reason: so this says what was, not why it failed.
        for lack in lacks:
            complain(lack)
    return ending.status


def _lacks(seen: Counters) -> list[str]:
    """What the programs of a guest asked for that it does not have."""
    space_bytes = seen.address_space_lacked_bytes
    spaces = [f"{space_bytes >> 30:,} GiB of {ADDRESS_SPACE}"] if space_bytes else []
    return spaces + [text for lack, text in LACKS.items() if lack in seen.lacks]


@contextlib.contextmanager
def _interruptible(interruptions: list[int]) -> Iterator[None]:
    """Lets signals cancel this task, until the command has been started and gets them itself."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def interrupt(number: int) -> None:
        # A second one must not break into how the first is answered.
        if not interruptions:
            task.cancel()
        interruptions.append(number)

    for number in FORWARDED:
        loop.add_signal_handler(number, interrupt, number)
    yield


def _alone(options: Options, machine: Machine, has_terminal: bool) -> Alone:
    speed: Fraction | None = Fraction(1) if has_terminal else None
    if options.max_speed is not None:
        speed = _parsed("--max-speed", syntax.parse_max_speed, options.max_speed)
    tdf = _parsed("--tdf", units.parse_tdf, options.tdf)
    drive = _parsed("--drive", syntax.parse_drive, options.drive)
    seed = _parsed("--seed", syntax.parse_seed, options.seed)
    memory_bytes = _memory_bytes(options.memory)
    return Alone(drive, tdf, speed, seed, memory_bytes, _binds(machine, options.writable, options.out))


def _memory_bytes(text: str) -> int:
    """Reads a size; `1G` is what other programs call 1 GiB."""
    size: int = _parsed("--memory", syntax.parse_memory, f"{text}iB" if text[-1:] in ("M", "G") else text)
    return size


def _parsed(option: str, parse: Callable[[object], Any], text: str) -> Any:
    with refusing(ValueError, option=option):
        return parse(text)


def _binds(machine: Machine, writable: Sequence[Path], out: Path | None) -> list[Bind]:
    """The directories that the command writes, and the present one where it would not see it otherwise."""
    binds = [Bind(path=str(_writable(machine, "--rw", path)), writable=True) for path in writable]
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"--out: {out}: {error.strerror}") from error
        binds.append(Bind(path=str(_writable(machine, "--out", out)), writable=True))
    here = Path.cwd()
    if any(place in here.parents for place in machine.own_places) and not any(
        Path(bind.path) in (here, *here.parents) for bind in binds
    ):
        binds.insert(0, Bind(path=str(here), writable=False))
    return binds


def _writable(machine: Machine, option: str, path: Path) -> Path:
    resolved = path.resolve()
    if not resolved.is_dir():
        raise BadInputError(f"{option}: {path}: not a directory")
    if not os.access(resolved, os.W_OK):
        raise BadInputError(f"{option}: {path}: you may not write there yourself")
    taken = resolved in (Path("/"), *machine.own_places) or machine.parts_place in (resolved, *resolved.parents)
    if taken:
        raise BadInputError(f"{option}: {path}: a guest has a place of its own there; take a directory below it")
    return resolved
