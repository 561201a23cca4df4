"""Sessions in a run that goes on: programs that somebody starts in its nodes, with their streams.

Whoever asks gets a program's frames as the agent sends them (`crates/agent/PROTOCOL.md`), over the connection on
which the request came, and answers in frames. Here they are only passed on: windows and grants are between the two
ends, so a reader that rests stops its own program, and nothing is kept here but what a window holds. When the
connection ends, by whatever death, the program's terminal or its streams hang up, as with ssh.

While somebody has a terminal, or a connection to a port of a node, virtual time does not run faster than host time.

A connection to a port is such a session, of the agent's program (`crates/agent/src/node/port.rs`), and so is a
machine outside in a node's network (`crates/agent/src/network/tunnel.rs`): both get to what that node gets to, and
there is no way for them to another lab or onto the host, whose networks are not in the guest.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import struct
from collections.abc import Callable, Mapping

from dilaton.host.messages import Event
from dilaton.host.sessions.frames import HEADER, STREAMS, Kind, Request
from dilaton.host.sessions.session import Send
from dilaton.host.sessions.streams import Sessions, read_frame
from dilaton.plan.schedule import environment
from dilaton.run.control import verbs
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler, Takeover
from dilaton.run.control.verbs import Nothing, PortOpen, SessionOpen, TunnelOpen
from dilaton.run.observer import RunClock
from dilaton.run.record.events import PortReached, SessionBegan, SessionEnded, TunnelOpened
from dilaton.run.steering.clock import ClockControl

ONLY = 1
"""The number of the session of a connection."""

PORT = ("/proc/1/exe", "port")
"""What joins its streams to a port of the node that it is executed in."""

TUNNEL = ("/proc/1/exe", "tunnel")
"""What joins them to the network of that node."""

PAYLOADS = {Kind.SIGNAL: struct.Struct("<I"), Kind.SIZE: struct.Struct("<II"), Kind.GRANT: struct.Struct("<I")}
"""The payloads of frames to a guest that consist of numbers."""


class SessionControl:
    """The sessions of a run, for those who open them."""

    def __init__(
        self,
        guest_of: Mapping[str, int],
        lines: list[Sessions],
        steering: ClockControl,
        told: Callable[[int, Event], None],
        clock: Callable[[], RunClock],
    ) -> None:
        """Takes the stream lines of a run.

        Args:
            guest_of: The number of the guest that each node is in.
            lines: Of each guest.
            steering: The clock of the run.
            told: Learns of the begin and end of sessions: the number of the guest, and an event.
            clock: Reads the clocks of the run.
        """
        self._guest_of = guest_of
        self._lines = lines
        self._steering = steering
        self._told = told
        self._clock = clock
        self._carried: set[asyncio.Task[None]] = set()
        self._closed = asyncio.Event()

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verbs of the control socket."""
        opened = verbs.SESSION_OPEN.by(self._on_open) | verbs.PORT_OPEN.by(self._on_port)
        opened |= verbs.TUNNEL_OPEN.by(self._on_tunnel)
        return opened | verbs.CLOCK_PACE.by(self._on_pace)

    async def _on_open(self, asked: SessionOpen) -> Takeover:
        """Starts a program, and carries its frames."""
        self._check_node(asked.node)
        env = environment(asked.node) | asked.env
        request = Request(
            node=asked.node,
            argv=[os.fsencode(word) for word in asked.argv],
            env={os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            terminal=asked.terminal,
        )

        def began(now: RunClock) -> Event:
            return SessionBegan(t_ns=now.virtual_ns, node=asked.node, program=program, host_s=now.host_ns / 1e9)

        program = shlex.join(asked.argv)
        return self._carrying(request, program, began, is_paced=request.terminal is not None)

    async def _on_port(self, asked: PortOpen) -> Takeover:
        """Connects to a port, and carries what is said there."""

        def began(now: RunClock) -> Event:
            at, host_s = now.virtual_ns, now.host_ns / 1e9
            return PortReached(t_ns=at, node=asked.node, program=program, port=asked.port, host_s=host_s)

        program = f"port {asked.port}"
        request = self._of_agent(asked.node, *PORT, str(asked.port))
        return self._carrying(request, program, began, is_paced=True)

    async def _on_tunnel(self, asked: TunnelOpen) -> Takeover:
        """Has a machine outside in the network of a node, and carries its packets."""
        addresses = list(map(str, asked.addresses))
        program = " ".join(["tunnel", *addresses])

        def began(now: RunClock) -> Event:
            return TunnelOpened(t_ns=now.virtual_ns, node=asked.node, program=program, host_s=now.host_ns / 1e9)

        request = self._of_agent(asked.node, *TUNNEL, *addresses)
        return self._carrying(request, program, began, is_paced=True)

    def _of_agent(self, node: str, *argv: str) -> Request:
        """The request for a program of the agent's in a node."""
        self._check_node(node)
        env = {os.fsencode(name): os.fsencode(value) for name, value in environment(node).items()}
        return Request(node=node, argv=[word.encode() for word in argv], env=env)

    def _carrying(
        self, request: Request, program: str, began: Callable[[RunClock], Event], *, is_paced: bool
    ) -> Takeover:
        """A connection that carries a program's frames, at host speed at most where that is asked for."""

        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            async with self._steering.paced() if is_paced else contextlib.nullcontext():
                if self._closed.is_set():
                    return
                task = asyncio.create_task(self._carry(request, program, began, reader, writer))
                self._carried.add(task)
                task.add_done_callback(self._carried.discard)
                await task

        return Takeover(dict(self._steering.state()), converse)

    async def _on_pace(self, _: Nothing) -> Takeover:
        """Keeps to host speed as long as the connection lasts."""

        async def converse(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            async with self._steering.paced():
                await reader.read(1)

        return Takeover(dict(self._steering.state()), converse)

    async def close(self) -> None:
        """Lets go of all sessions: the run is over."""
        self._closed.set()
        await asyncio.gather(*self._carried, return_exceptions=True)

    def _check_node(self, node: str) -> None:
        if node not in self._guest_of:
            raise ControlError(f"{node}: no such node; there are {', '.join(sorted(self._guest_of))}", "argument")

    async def _carry(
        self,
        request: Request,
        program: str,
        began: Callable[[RunClock], Event],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        guest = self._guest_of[request.node]
        self._told(guest, began(self._clock()))
        relay = self._lines[guest].begin_for(lambda send: Relay(send, writer), request.encode())
        ends = (relay.over.wait(), relay.forward(reader), self._closed.wait())
        _, gone, closed = waiting = [asyncio.create_task(end) for end in ends]
        try:
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Before the other side hears of it, which may look for it then.
                now = self._clock()
                status, host_s = relay.status, now.host_ns / 1e9
                ended = SessionEnded(
                    t_ns=now.virtual_ns, node=request.node, program=program, status=status, host_s=host_s
                )
                self._told(guest, ended)
                relay.finish()
            # Who hangs up first loses what is on its way to it; but a pager that rests does not keep the run.
            await asyncio.wait({gone, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()


class Relay:
    """Passes the frames of a session on, between a guest and a connection."""

    def __init__(self, send: Send, writer: asyncio.StreamWriter) -> None:
        """A relay.

        Args:
            send: To the guest.
            writer: To whoever has asked.
        """
        self._send = send
        self._writer = writer
        self.over = asyncio.Event()
        self.status: int | None = None
        """As a shell has it; None where nobody waited for it."""
        self._last = b""

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """Passes a frame of the guest on; the last one not before `finish`."""
        frame = HEADER.pack(ONLY, kind, stream, 0, len(payload)) + payload
        if kind in (Kind.EXITED, Kind.FAILED):
            status, *number = struct.unpack_from("<II" if kind == Kind.EXITED else "<I", payload)
            self.status = 128 + number[0] if number and number[0] else status
            self._last = frame
            self.over.set()
        else:
            self._pass_on(frame)

    def lose(self) -> None:
        """The guest has ended."""
        self.over.set()

    async def forward(self, reader: asyncio.StreamReader) -> None:
        """Passes frames of the other side on until it hangs up, or sends what a guest must not get."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError, struct.error):
            while True:
                _, kind, stream, payload = await read_frame(reader)
                if kind in PAYLOADS:
                    PAYLOADS[kind].unpack(payload)
                if kind == Kind.SIGNAL:
                    signal.Signals(struct.unpack("<I", payload)[0])
                if kind not in (Kind.DATA, Kind.CLOSE, *PAYLOADS) or stream not in STREAMS:
                    return
                self._send(kind, stream, payload)

    def finish(self) -> None:
        """Passes on how the program has ended, or ends one that still runs: nobody is there any more."""
        if self.over.is_set():
            self._pass_on(self._last)
            return
        self._send(Kind.SIGNAL, 0, struct.pack("<I", signal.SIGHUP))
        for stream in STREAMS:
            self._send(Kind.CLOSE, stream, b"")

    def _pass_on(self, frame: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(frame)
