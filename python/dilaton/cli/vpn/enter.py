"""`dilaton vpn`: this machine, or another one that reaches it, in the network of a run that goes on.

Between a machine's WireGuard and a node of the lab stands this process: datagrams come by a socket of UDP, what is in
them passes `flows.py` into a session of the run, whose program puts it into the node's network at the virtual instant
at which it comes there. Virtual time runs no faster than host time meanwhile; where it stands, packets wait for it,
as many as a session keeps, and others are lost, as on any way that is too slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import re
import secrets
import signal
import struct
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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
    from dilaton.cli.vpn.configuration import Way, configuration, default_name, way_into, write_configuration
    from dilaton.cli.vpn.wireguard import Peer, new_key
except ImportError as error:
    raise BadInputError(f"a tunnel takes the package cryptography: pip install dilaton[vpn] ({error})") from None
from dilaton.cli.vpn.flows import Flows

LENGTH = struct.Struct(">H")
"""Before each packet of a session."""

LOOK_HOST_S = 1.0
"""How often it is looked whether the peer waits for an answer."""

PORT_MAX = 65_535

LISTEN = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(:(?P<first>[0-9]{1,5})(-(?P<last>[0-9]{1,5}))?)?", re.ASCII
)


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
    way, here = way_into(nodes, node), places(listen)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_entered(run, way, to or Path(default_name(run.name)), here, ended))
    return 0


def places(text: str) -> list[tuple[str, int]]:
    """Where to listen, of which the first counts that can be had.

    Raises:
        BadInputError: it is no address, or has no such ports.
    """
    found = LISTEN.fullmatch(text)
    first = int(found["first"] or 0) if found else -1
    last = int(found["last"] or first) if found else -1
    if found is None or not first <= last <= PORT_MAX or (found["last"] and not first):
        raise BadInputError(
            f"{text}: not ADDRESS[:PORT[-PORT]], as 127.0.0.1:51820, 0.0.0.0:51820-51829 or [::]:51820, with ports up "
            f"to {PORT_MAX}"
        )
    return [(found["host"].strip("[]"), port) for port in range(first, last + 1)]


async def _listening(gateway: _Gateway, here: Sequence[tuple[str, int]]) -> asyncio.DatagramTransport:
    """A socket at the first of these places that can be had.

    Raises:
        BadInputError: none can.
    """
    for host, port in here:
        try:
            made = asyncio.get_running_loop().create_datagram_endpoint(lambda: gateway, local_addr=(host, port))
            return (await made)[0]
        except OSError as error:
            wrong = error
            if error.errno != errno.EADDRINUSE:
                break
    ports = str(here[0][1]) if len(here) == 1 else f"{here[0][1]} to {here[-1][1]}"
    raise BadInputError(f"{here[0][0]}, port {ports}: {wrong.strerror or wrong}") from wrong


async def _entered(
    run: Reached, way: Way, to: Path, here: Sequence[tuple[str, int]], ended: Callable[[], Awaitable[None]]
) -> None:
    own, theirs, shared = new_key(), new_key(), secrets.token_bytes(32)
    gateway = _Gateway(Peer(own, theirs.public_key(), shared), Flows(way.addresses))
    # Before the run learns of a tunnel that then could not be.
    transport = await _listening(gateway, here)
    try:
        async with over(run.tunnel(way.node, list(map(str, way.addresses))), Terminal) as session:
            gateway.session = session
            endpoint = transport.get_extra_info("sockname")
            write_configuration(to, configuration(way, theirs, own.public_key(), shared, endpoint[:2]))
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


class _Gateway(asyncio.DatagramProtocol):
    """What stands between a machine's WireGuard and the session."""

    def __init__(self, peer: Peer, flows: Flows) -> None:
        self.session: Terminal | None = None
        """Until there is one, datagrams are lost."""
        self._peer = peer
        self._flows = flows
        self._transport: asyncio.DatagramTransport | None = None
        self._where: tuple[str, int] | None = None
        """From where the last authentic datagram came (section 2.1: roaming)."""

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if self.session is None or (received := self._peer.receive(data, time.monotonic())) is None:
            return
        self._where = addr
        for answer in received.answers:
            self._send(answer)
        if received.packet and self._flows.takes(received.packet):
            # Where too many wait, this one is lost.
            self.session.write(LENGTH.pack(len(received.packet)) + received.packet)

    async def carry(self, session: Terminal) -> None:
        """Carries what comes out of the node until the session ends."""
        kept = bytearray()
        while data := await session.read():
            kept += data
            for packet in _packets(kept):
                if self._flows.answers(packet):
                    self._send(self._peer.send(packet, time.monotonic()))

    async def keep_alive(self) -> None:
        """Answers a peer that only sends, for ever."""
        while True:
            await asyncio.sleep(LOOK_HOST_S)
            self._send(self._peer.keep_alive(time.monotonic()))

    def _send(self, datagram: bytes | None) -> None:
        if datagram is not None and self._where is not None and self._transport is not None:
            self._transport.sendto(datagram, self._where)


def _packets(kept: bytearray) -> Iterator[bytes]:
    """Takes whole packets out of what has come."""
    while len(kept) >= LENGTH.size and len(kept) >= LENGTH.size + (length := LENGTH.unpack_from(kept)[0]):
        yield bytes(kept[LENGTH.size : LENGTH.size + length])
        del kept[: LENGTH.size + length]
