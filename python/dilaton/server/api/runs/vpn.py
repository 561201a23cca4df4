"""Machines of people in the networks of runs, by WireGuard that ends at this server; see `server.runs.tunnels`."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.runs.reaching import plan_of
from dilaton.server.api.runs.terminals import noted, stay_allowed
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import tell
from dilaton.server.database.tables import RunRow
from dilaton.server.problems import Problem, missing
from dilaton.server.runs import tunnels
from dilaton.server.state import State
from dilaton.service.vpn.gateway import Gateway, ListenError, listening

ENDPOINTS = Endpoints()

VPN = f"{PREFIX}/runs/{{run}}/vpn"
ENTER = needs(("Run.Vpn", "run"))


class NewVpn(Asked):
    """A machine of one's own that is to be in the network of a run."""

    node: str | None = Field(default=None, max_length=255)
    """By which node it comes in; null: the first that forwards."""


class Vpn(BaseModel):
    """A machine that is in the network of a run."""

    tunnel: str
    """Its identity."""
    node: str
    """By which node it comes in."""
    reached: list[str]
    """The addresses and networks that it reaches there."""
    addresses: list[str]
    """Its own, in the lab."""
    port: int
    """The UDP port of this server that it sends to."""

    @classmethod
    def of(cls, tunnel: tunnels.Tunnel) -> Vpn:
        """As the server keeps it."""
        way = tunnel.way
        reached, addresses = list(map(str, way.reached)), list(map(str, way.addresses))
        return cls(tunnel=tunnel.identity, node=way.node, reached=reached, addresses=addresses, port=tunnel.port)


class OpenedVpn(Vpn):
    """One that was just made."""

    configuration: str
    """The file for its WireGuard, with keys that are told once."""


@ENDPOINTS.add("POST", VPN, ENTER, status_code=201)
async def enter_run(asked: NewVpn, run: TheRun, who: Who, server: Server) -> OpenedVpn:
    """Has a machine of one's own in the network of a run, until run, permission or server end."""
    if (ports := server.settings.vpn) is None:
        raise Problem(409, "vpn", "the server's file names no ports for vpn; `dilaton vpn` takes none")
    if run.state not in ("running", "held"):
        raise Problem(409, "state", f"the run is {run.state}; its nodes cannot be reached", state=run.state)
    run_dir = server.keeper.run_dir(run.identity)
    way = await server.checker.way_into(await asyncio.to_thread(plan_of, run_dir), asked.node)

    async def ended(tunnel: tunnels.Tunnel, wrong: str) -> None:
        await asyncio.to_thread(_tell_end, server, run, tunnel, wrong)

    with contextlib.ExitStack() as undo:
        undo.enter_context(server.sessions.one_of(who.name))
        gateway = Gateway(way)
        try:
            transport = await listening(gateway, ports.places)
        except ListenError as error:
            raise Problem(409, "vpn", f"the server has no port for it: {error}") from None
        undo.callback(transport.close)
        done = ["vpn", *map(str, way.addresses)]
        await asyncio.to_thread(noted, server, who, run.path, way.node, done, "run.vpn")
        port = int(transport.get_extra_info("sockname")[1])
        allowed = stay_allowed(server, who, run.path, "Run.Vpn")
        begun = server.tunnels.begin(run.identity, who.name, run_dir, gateway, port, allowed, ended, undo.pop_all())
    shown = Vpn.of(await begun)
    endpoint = ports.name or urlsplit(server.settings.origin).hostname or "", port
    return OpenedVpn(**shown.model_dump(), configuration=gateway.configuration(endpoint))


@ENDPOINTS.add("GET", VPN, ENTER)
async def list_vpns(run: TheRun, who: Who, server: Server) -> list[Vpn]:
    """One's own machines that are in the network of a run by this server's WireGuard."""
    return [Vpn.of(tunnel) for tunnel in server.tunnels.of(run.identity, who.name)]


@ENDPOINTS.add("DELETE", f"{VPN}/{{tunnel}}", ENTER, status_code=204)
async def leave_run(tunnel: str, run: TheRun, who: Who, server: Server) -> None:
    """Has a machine of one's own in the network of a run no longer."""
    if tunnel not in {mine.identity for mine in server.tunnels.of(run.identity, who.name)}:
        raise missing("tunnel", tunnel)
    await server.tunnels.end(tunnel)


def _tell_end(server: State, run: RunRow, tunnel: tunnels.Tunnel, wrong: str) -> None:
    with server.store.writing() as session:
        data = {"run": run.identity, "tunnel": tunnel.identity, "state": "ended", "reason": wrong}
        tell(session, "Run.Vpn", run.path, "tunnel", **data)
