"""`dilaton vpn`: this machine, or another one that reaches it, in the network of a run that goes on.

What stands between that machine's WireGuard and the lab is `service/vpn/gateway.py`, in this process. Virtual time runs
no faster than host time meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dilaton.cli.errors import BadInputError, FailedError, refusing
from dilaton.host.tasks import first_of
from dilaton.run.control.errors import ControlError
from dilaton.run.control.session_client import Reached, over, reached
from dilaton.run.control.terminal_client import Terminal
from dilaton.run.files.outputs import read_output
from dilaton.service.catalogue import find
from dilaton.service.live import AsyncRun

try:
    from dilaton.service.vpn.configuration import Way, WayError, way_into
    from dilaton.service.vpn.gateway import Gateway, ListenError, listening, places
except ImportError as error:
    raise BadInputError(f"a tunnel takes the package cryptography: pip install dilaton[vpn] ({error})") from None

INTERFACE_NAME = re.compile(r"[a-zA-Z0-9_=+.-]{1,15}")
"""What wg-quick takes for a file's name without its `.conf`, which becomes that of the interface."""


@refusing(ControlError)
def vpn(run: str, node: str | None, to: Path | None, listen: str) -> int:
    """Has a machine in a run's network until Ctrl-C or the end of the run; returns the exit status.

    Args:
        run: The run.
        node: By which it is entered; None: the first that forwards.
        to: Where the configuration goes; None: here, named after the run.
        listen: `ADDRESS[:PORT[-PORT]]` to listen on: a port, or the first of some that is free; none: any.

    Raises:
        BadInputError: there is no such run or node, or the address or the file cannot be had.
        FailedError: the node's kernel or its programs refuse a tunnel.
    """
    run_dir = find(run)

    async def ended() -> None:
        async with contextlib.aclosing(AsyncRun(run_dir).follow()) as happenings:
            async for _ in happenings:
                pass

    nodes = json.loads(read_output(run_dir / "plan.json"))["nodes"]
    return vpn_here(reached(run_dir), nodes, node, to, listen, ended)


def vpn_here(
    run: Reached,
    nodes: Sequence[Mapping[str, Any]],
    node: str | None,
    to: Path | None,
    listen: str,
    ended: Callable[[], Awaitable[None]],
) -> int:
    """As `vpn`, of any run.

    Args:
        run: The run.
        nodes: Those of its plan.
        node: By which it is entered.
        to: Where the configuration goes.
        listen: Where to listen.
        ended: Returns when the run has ended.
    """
    with refusing(WayError, ListenError):
        way, here = way_into(nodes, node), places(listen)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_entered(run, way, to or Path(default_name(run.name)), here, ended))
    return 0


async def _entered(
    run: Reached, way: Way, to: Path, here: Sequence[tuple[str, int]], ended: Callable[[], Awaitable[None]]
) -> None:
    gateway = Gateway(way)
    # Before the run learns of a tunnel that then could not be.
    with refusing(ListenError):
        transport = await listening(gateway, here)
    try:
        async with over(run.tunnel(way.node, list(map(str, way.addresses))), Terminal) as session:
            gateway.session = session
            if not await gateway.set_up(session):
                raise FailedError(f"{way.node}: {session.errors}")
            endpoint = transport.get_extra_info("sockname")
            write_configuration(to, gateway.configuration(endpoint[:2]))
            try:
                reached_there = ", ".join(map(str, way.reached))
                print(f"{endpoint[0]}:{endpoint[1]} -> {way.node}, which leads to {reached_there}")
                print(f"sudo wg-quick up {to.absolute()}", flush=True)
                await first_of(gateway.carry(session), gateway.keep_alive(), ended(), _told_to_end())
            finally:
                to.unlink(missing_ok=True)
            if wrong := session.errors:
                raise FailedError(f"{way.node}: {wrong}")
    finally:
        transport.close()


async def _told_to_end() -> None:
    """Waits for a signal by which others than Ctrl-C end programs, so that nothing is left by them either."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


def default_name(run: str) -> str:
    """The file for a run, whose name wg-quick takes."""
    kept = re.sub(r"[^a-zA-Z0-9_=+.-]", "", Path(run).name)
    return f"{kept[:15] or 'dilaton'}.conf"


def write_configuration(path: Path, text: str) -> None:
    """Writes the file, which nobody else may read.

    Raises:
        BadInputError: it exists, cannot be written, or has a name that wg-quick does not take.
    """
    if path.suffix != ".conf" or not INTERFACE_NAME.fullmatch(path.stem):
        raise BadInputError(f"{path}: wg-quick takes NAME.conf, NAME of at most 15 letters, digits and _ = + . -")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror or error}") from error
