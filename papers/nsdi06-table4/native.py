"""The flow of table 4 between two network namespaces of this machine's own kernel, without guests or virtual time.

The paper has it as "native Linux". The network between them is a process of this machine, where the paper has Dummynet
on one of its own: it reads frames of two TAP devices, holds each for as long as the rate and the delay take, and notes
when the sender's came. It takes root, and puts itself and iperf3 before other programs (`SCHED_FIFO`), as what is late
here is late.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

FRAME_BYTES_MAX = 1514
TUN, TUNSETIFF, TAP_WITHOUT_HEADER = "/dev/net/tun", 0x400454CA, 0x1002
RECEIVE_BUFFER = "4096 102400 102400"
"""With which Linux 6.18 offers some 64 KiB, as the lab's kernel does with 128 KiB."""
CONGESTION = "cubic"
PRIORITY = 10
SETTLE_S = 0.2
"""Until a server listens."""
LONGEST_S = 20.0


@dataclass
class Pipe:
    """One direction of the link.

    Attributes:
        rate_bit_per_s, delay_ns: Of the link.
        lose_every: Each frame of so many is lost; 0: none.
        waiting: When each frame is to leave, by the clock that `admit` is told, and the frame.
    """

    rate_bit_per_s: float
    delay_ns: int
    lose_every: int = 0
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    _seen: int = 0
    _free_ns: int = 0

    def admit(self, frame: bytes, now_ns: int) -> None:
        """Takes a frame that came at that instant, or loses it."""
        self._seen += 1
        if self.lose_every and self._seen % self.lose_every == 0:
            return
        self._free_ns = max(self._free_ns, now_ns) + round(len(frame) * 8e9 / self.rate_bit_per_s)
        self.waiting.append((self._free_ns + self.delay_ns, frame))

    def due(self, now_ns: int) -> Iterator[bytes]:
        """Gives up the frames that are to leave by that instant."""
        while self.waiting and self.waiting[0][0] <= now_ns:
            yield self.waiting.popleft()[1]


def measure(capture: Path, lose_every: int) -> None:
    """Has iperf3 send for a second over 100 Mbit/s and 10 ms each way, and writes what the sender sent and got.

    Args:
        capture: A pcapng file, made anew, with the sender's frames as they enter and leave the network.
        lose_every: Each packet of so many is lost towards the receiver; 0: none.

    Raises:
        OSError: this machine has no TAP devices, or we are not root.
        RuntimeError: the flow did not come to its end.
    """
    # Programs that are started inherit it.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    try:
        with ExitStack() as stack:
            ends = [stack.enter_context(_end(name, number)) for number, name in enumerate(("sender", "receiver"))]
            stack.enter_context(_program(_name("receiver"), "iperf3 -s"))
            time.sleep(SETTLE_S)
            client = stack.enter_context(_program(_name("sender"), "iperf3 -c 10.9.0.2 -t 1 -C " + CONGESTION))
            forth, back = Pipe(100e6, 10_000_000, lose_every), Pipe(100e6, 10_000_000)
            frames = _carry(ends, (forth, back), client)
            if client.poll() != 0:
                raise RuntimeError(f"{capture}: iperf3 ended with {client.poll()}")
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    capture.write_bytes(pcapng(frames))


def pcapng(frames: list[tuple[int, bytes]]) -> bytes:
    """A capture of Ethernet frames, each with its time in nanoseconds."""
    blocks = [_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    blocks.append(_block(1, struct.pack("<HHI", 1, 0, 0) + nanoseconds))
    for at_ns, frame in frames:
        head = struct.pack("<IIIII", 0, at_ns >> 32, at_ns & 0xFFFFFFFF, len(frame), len(frame))
        blocks.append(_block(6, head + frame + bytes(-len(frame) % 4)))
    return b"".join(blocks)


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _carry(ends: list[int], pipes: tuple[Pipe, Pipe], client: subprocess.Popen[bytes]) -> list[tuple[int, bytes]]:
    """Carries frames until the client has ended; those at its end with when they came or left, by `monotonic_ns`."""
    seen: list[tuple[int, bytes]] = []
    until_ns = time.monotonic_ns() + round(LONGEST_S * 1e9)
    while client.poll() is None and time.monotonic_ns() < until_ns:
        soonest_ns = min((pipe.waiting[0][0] for pipe in pipes if pipe.waiting), default=until_ns)
        wait_s = min(0.01, max(0, soonest_ns - time.monotonic_ns()) / 1e9)
        ready = select.select(ends, [], [], wait_s)[0]
        for number, pipe in enumerate(pipes):
            with suppress(BlockingIOError):
                while ends[number] in ready:
                    frame = os.read(ends[number], FRAME_BYTES_MAX)
                    now_ns = time.monotonic_ns()
                    pipe.admit(frame, now_ns)
                    if number == 0:
                        seen.append((now_ns, frame))
        for number, pipe in enumerate(pipes):
            now_ns = time.monotonic_ns()
            for frame in pipe.due(now_ns):
                os.write(ends[1 - number], frame)
                if number == 1:
                    seen.append((now_ns, frame))
    return seen


def _name(end: str) -> str:
    """Of the network namespace of an end, which no other process of this program has."""
    return f"table4-{end}-{os.getpid()}"


@contextmanager
def _end(name: str, number: int) -> Iterator[int]:
    """A network namespace with a TAP device; the descriptor of the device's other side."""
    device, space = f"t4{number}-{os.getpid()}"[:15], _name(name)
    tap = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), TAP_WITHOUT_HEADER))
        _ip("netns", "add", space)
        try:
            _ip("link", "set", device, "netns", space)
            _ip("-n", space, "address", "add", f"10.9.0.{number + 1}/24", "dev", device)
            _ip("-n", space, "link", "set", device, "up")
            change = f"net.ipv4.tcp_rmem={RECEIVE_BUFFER}"
            subprocess.run(["ip", "netns", "exec", space, "sysctl", "-qw", change], check=True)
            yield tap
        finally:
            _ip("netns", "delete", space)
    finally:
        os.close(tap)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextmanager
def _program(space: str, command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program in a network namespace, until then."""
    whole = ["ip", "netns", "exec", space, *command.split()]
    with subprocess.Popen(whole, stdout=subprocess.DEVNULL) as program:
        try:
            yield program
        finally:
            program.kill()
