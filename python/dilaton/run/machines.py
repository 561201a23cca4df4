"""Where runs take place: the one place that chooses what implements the port."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.host.here.machine import Here
from dilaton.host.port import Machine

if TYPE_CHECKING:
    from dilaton.cluster.having import Has
    from dilaton.cluster.hosts import Hosts

SHELL, PROGRAM, HUB = "DILATON_RSH", "DILATON_REMOTE", "DILATON_HUB"
"""Environment variables that say how other hosts are reached, as `cluster/hosts.py` explains."""

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10"


def chosen(hidden: tuple[Path, ...] = (), machines: int = 1, onto: Sequence[str] = ()) -> Machine:
    """This machine, or as many that are made of it, or hosts by their names; guests do not see what is in `hidden`.

    Raises:
        ValueError: No host can have such a name.
    """
    # Who has one machine waits for nothing of this.
    if onto:
        from dilaton.cluster.machine import Cluster

        _named(onto)
        return Cluster(lambda: _named(onto), hidden)
    if machines > 1:
        from dilaton.cluster.local import Local
        from dilaton.cluster.machine import Cluster

        return Cluster(lambda: Local(machines), hidden)
    return Here(hidden)


def _named(names: Sequence[str]) -> Hosts:
    from dilaton.cluster.hosts import Hosts, Way

    shell = shlex.split(os.environ.get(SHELL) or SSH)
    return Hosts(names, Way(shell, os.environ.get(PROGRAM) or "dilaton", os.environ.get(HUB, "")))


def look(names: Sequence[str]) -> list[tuple[Has | str, list[str]]]:
    """What each of these hosts has, or why that is not known; and why it cannot have a part in a run of this machine.

    Raises:
        ValueError: No host can have such a name.
    """
    from dilaton.cluster import having

    async def asked() -> list[Has | str]:
        hosts = _named(names)
        try:
            return await hosts.look(having.Needs())
        finally:
            await hosts.stop()

    here = having.has(having.Needs())
    return [(there, having.refusals(having.Needs(), here, there, drive="event")) for there in asyncio.run(asked())]


def serve_agent() -> int:
    """Is the host agent of this machine for a run that is elsewhere; returns the exit status."""
    from dilaton.cluster.agent import serve

    return serve(says_what_it_has=True)
