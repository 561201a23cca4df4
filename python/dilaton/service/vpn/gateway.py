"""Between a machine's WireGuard and the session in a run: datagrams come by a socket of UDP, and what is in them passes
`flows.py` into a session of the run, whose program puts it into the node's network at the virtual instant at which it
comes there. Where virtual time stands, packets wait for it, as many as a session keeps, and others are lost, as on any
way that is too slow.
"""

from __future__ import annotations

import asyncio
import errno
import re
import secrets
import struct
import time
from collections.abc import Iterator, Sequence

from dilaton.run.control.terminal_client import Terminal
from dilaton.service.vpn.configuration import Way, configuration
from dilaton.service.vpn.flows import Flows
from dilaton.service.vpn.wireguard import Peer, new_key

LENGTH = struct.Struct(">H")
"""Before each packet of a session."""

LOOK_HOST_S = 1.0
"""How often it is looked whether the peer waits for an answer."""

PORT_MAX = 65_535

LISTEN = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(:(?P<first>[0-9]{1,5})(-(?P<last>[0-9]{1,5}))?)?", re.ASCII
)


class Gateway(asyncio.DatagramProtocol):
    """What stands between a machine's WireGuard and the session, with keys that are made for the two alone."""

    def __init__(self, way: Way) -> None:
        """Datagrams are lost until there is a session.

        Args:
            way: How the lab is entered.
        """
        self.session: Terminal | None = None
        self.way = way
        self._own, self._theirs, self._shared = new_key(), new_key(), secrets.token_bytes(32)
        self._peer = Peer(self._own, self._theirs.public_key(), self._shared)
        self._flows = Flows(way.addresses)
        self._transport: asyncio.DatagramTransport | None = None
        self._kept = bytearray()
        """What has come out of the node, up to the end of a packet that is not whole yet."""
        self._where: tuple[str, int] | None = None
        """From where the last authentic datagram came (section 2.1: roaming)."""

    def configuration(self, endpoint: tuple[str, int]) -> str:
        """What the machine outside is told, to which this one is there."""
        return configuration(self.way, self._theirs, self._own.public_key(), self._shared, endpoint)

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Answers go by `transport` from now on."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Takes what has come from an address, which may be anybody's."""
        if self.session is None or (received := self._peer.receive(data, time.monotonic())) is None:
            return
        self._where = addr
        for answer in received.answers:
            self._send(answer)
        if received.packet and self._flows.takes(received.packet):
            # Where too many wait, this one is lost.
            self.session.write(LENGTH.pack(len(received.packet)) + received.packet)

    async def set_up(self, session: Terminal) -> bool:
        """Waits until all is set up in the node; False: the session ended before. Packets wait there meanwhile."""
        while data := await session.read():
            self._kept += data
            # The first packet, an empty one, says so (`crates/agent/src/network/tunnel.rs`).
            if next(_packets(self._kept), None) is not None:
                return True
        return False

    async def carry(self, session: Terminal) -> None:
        """Carries what comes out of the node until the session ends."""
        while data := await session.read():
            self._kept += data
            for packet in _packets(self._kept):
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


class ListenError(ValueError):
    """Nobody can listen there."""


def places(text: str) -> list[tuple[str, int]]:
    """Where to listen, of which the first counts that can be had.

    Raises:
        ListenError: it is no address, or has no such ports.
    """
    found = LISTEN.fullmatch(text)
    first = int(found["first"] or 0) if found else -1
    last = int(found["last"] or first) if found else -1
    if found is None or not first <= last <= PORT_MAX or (found["last"] and not first):
        raise ListenError(
            f"{text}: not ADDRESS[:PORT[-PORT]], as 127.0.0.1:51820, 0.0.0.0:51820-51829 or [::]:51820, with ports up "
            f"to {PORT_MAX}"
        )
    return [(found["host"].strip("[]"), port) for port in range(first, last + 1)]


async def listening(gateway: Gateway, here: Sequence[tuple[str, int]]) -> asyncio.DatagramTransport:
    """A socket at the first of these places that can be had.

    Raises:
        ListenError: none can.
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
    raise ListenError(f"{here[0][0]}, port {ports}: {wrong.strerror or wrong}") from wrong


def _packets(kept: bytearray) -> Iterator[bytes]:
    """Takes whole packets out of what has come."""
    while len(kept) >= LENGTH.size and len(kept) >= LENGTH.size + (length := LENGTH.unpack_from(kept)[0]):
        yield bytes(kept[LENGTH.size : LENGTH.size + length])
        del kept[: LENGTH.size + length]
