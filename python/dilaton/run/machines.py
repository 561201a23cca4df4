"""Where runs take place: the one place that chooses what implements the port."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.here.machine import Here
from dilaton.host.port import Machine

if TYPE_CHECKING:
    from dilaton.cluster.division.placement import Cut
    from dilaton.cluster.doctor import Examined
    from dilaton.cluster.engines.engine import Host
    from dilaton.cluster.engines.having import Has
    from dilaton.cluster.engines.hosts import Hosts
    from dilaton.plan.model import Plan

SHELL, PROGRAM, HUB = "DILATON_RSH", "DILATON_REMOTE", "DILATON_HUB"
"""Environment variables that say how other hosts are reached, as `cluster/engines/hosts.py` explains."""

LOOKS_MAX = 3
"""How often hosts are asked what they have where agents are lost meanwhile: that says nothing of what they have."""

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10"


def chosen(
    hidden: tuple[Path, ...] = (),
    machines: int = 1,
    onto: Sequence[str] = (),
    engine: Literal["local", "slurm", "ray"] = "local",
    behind: int = 0,
) -> Machine:
    """This machine, or as many that an engine has, or hosts by their names.

    Args:
        hidden: Directories that guests do not see.
        machines: How many.
        onto: The hosts.
        engine: What has the machines.
        behind: By how much nicer guests are than the process that starts them.

    Raises:
        ValueError: No host can have such a name.
    """
    # Who has one machine waits for nothing of this.
    if engine == "slurm":
        from dilaton.cluster.engines.slurm import Slurm
        from dilaton.cluster.machine import Cluster

        program, hub = shlex.split(os.environ.get(PROGRAM) or "dilaton"), os.environ.get(HUB, "")
        return Cluster(lambda: Slurm(machines, program, hub), hidden, behind)
    if engine == "ray":
        from dilaton.cluster.engines.ray import Ray
        from dilaton.cluster.machine import Cluster

        return Cluster(lambda: Ray(machines, os.environ.get(HUB, "")), hidden, behind)
    if onto:
        from dilaton.cluster.machine import Cluster

        _named(onto)
        return Cluster(lambda: _named(onto), hidden, behind)
    if machines > 1:
        from dilaton.cluster.engines.local import Local
        from dilaton.cluster.machine import Cluster

        return Cluster(lambda: Local(machines), hidden, behind)
    return Here(hidden, behind=behind)


def _named(names: Sequence[str]) -> Hosts:
    from dilaton.cluster.engines.hosts import Hosts, Way

    shell = shlex.split(os.environ.get(SHELL) or SSH)
    return Hosts(names, Way(shell, os.environ.get(PROGRAM) or "dilaton", os.environ.get(HUB, "")))


def at_hand(engine: Literal["local", "slurm", "ray"]) -> int | None:
    """How many machines an engine has for a run that does not say how many; None: it asks for one."""
    if engine != "slurm":
        return None
    from dilaton.cluster.engines import slurm

    return slurm.given()


@dataclass(frozen=True)
class Division:
    """How a plan is divided among machines.

    Attributes:
        names: Of the machines.
        homes: The machine of each guest, by number.
        cuts: The links between machines, the dearest first.
    """

    names: Sequence[str]
    homes: Sequence[int]
    cuts: Sequence[Cut]


def divided(planned: Plan, machines: int, onto: Sequence[str]) -> Division:
    """How a run would divide a plan; hosts that are named are asked what they have.

    Raises:
        ValueError: No host can have such a name.
        HostLacksError: A host lacks what the run needs.
        GuestError: A host cannot be asked, or has too little memory for what would be there.
    """
    from dilaton.cluster.division.placement import cuts, place
    from dilaton.cluster.engines.local import Local

    async def asked() -> Sequence[Host]:
        engine = _named(onto) if onto else Local(machines)
        try:
            return await engine.hosts(planned, jailed=True)
        finally:
            await engine.stop()

    hosts = asyncio.run(asked())
    homes = place(planned, hosts)
    return Division([host.name for host in hosts], homes, cuts(planned, homes))


def look(names: Sequence[str], plans: Sequence[Plan] = ()) -> list[tuple[Has | GuestError, list[str]]]:
    """What each of these hosts has, or why that is not known; and why it cannot have a part in a run of this machine.

    Args:
        names: Of the hosts.
        plans: What is to be run there in jails; none: whatever every run needs.

    Raises:
        ValueError: No host can have such a name.
        HostLacksError: A plan needs what only this machine has.
    """
    from dilaton.cluster.engines import having

    needed = having.together([having.needs(planned, jailed=True) for planned in plans])
    drive = "work" if any(planned.time.drive == "work" for planned in plans) else "event"

    async def asked() -> list[Has | GuestError]:
        hosts = _named(names)
        try:
            return await hosts.look(needed)
        finally:
            await hosts.stop()

    here = having.has(needed)
    for _ in range(LOOKS_MAX):
        found = asyncio.run(asked())
        if not any(isinstance(there, MachineLostError) for there in found):
            break
    return [(there, having.refusals(needed, here, there, drive=drive)) for there in found]


def examine(names: Sequence[str]) -> list[tuple[Examined, list[str]]]:
    """What each of these hosts has, and how it answers as in a run; and why it cannot have a part in one.

    Raises:
        ValueError: No host can have such a name.
    """
    from dilaton.cluster import doctor
    from dilaton.cluster.engines import having

    needed = having.Needs()
    _named(names)

    async def asked() -> list[Examined]:
        return await asyncio.gather(*(doctor.examine(_named([name]), needed) for name in names))

    here = having.has(needed)
    found = asyncio.run(asked())
    return [
        (each, having.refusals(needed, here, each.has, drive="event") + [each.why] * bool(each.why)) for each in found
    ]


def serve_agent() -> int:
    """Is the host agent of this machine for a run that is elsewhere; returns the exit status."""
    from dilaton.cluster.host_agent import serve

    return serve(says_what_it_has=True)


def start_cluster(address: str, machines: int) -> tuple[str, Path]:
    """Starts a cluster of Ray's on this machine; where others join it, and the file with the token that they need.

    Raises:
        ValueError: That is no address.
        GuestError: It does not start, or there is one already.
    """
    from dilaton.cluster import own

    return own.start(address, machines).head, own.directory() / "token"


def join_cluster(head: str, token: str, address: str) -> None:
    """Has this machine join a cluster; errors as of `start_cluster`."""
    from dilaton.cluster import own

    own.join(head, token, address, 1)


def stop_cluster() -> bool:
    """Ends what this machine has of a cluster; False: it has nothing.

    Raises:
        GuestError: It does not end.
    """
    from dilaton.cluster import own

    return own.stop()
