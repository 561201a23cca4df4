"""Sends or receives numbered datagrams with the kernel's own time stamps; run inside nodes, with nothing but Python.

    probe.py receive                            until a second after the last one
    probe.py send HOST COUNT BYTES MEAN_GAP_NS SEED     0: as fast as possible; else gaps are exponential

A datagram's `sent` is when the kernel hands it to the interface, before any queue discipline
(SOF_TIMESTAMPING_TX_SCHED); `received` is when the other node's interface gets it. Both are of one clock, since nodes
of a guest share their kernel.
Prints a line of JSON: `[[number, ns], …]`.
"""

from __future__ import annotations

import ctypes
import json
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator

PORT = 9
SO_TIMESTAMPNS = 35
SO_TIMESTAMPING = 37
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32
TX_SCHEDULED, SOFTWARE, NUMBERED, STAMP_ONLY = 1 << 8, 1 << 4, 1 << 7, 1 << 11
BUFFER_BYTES = 1 << 28
SILENCE_S = 1.0
REST_S = 10.0
HEADERS_BYTES = 28
STAMP = struct.Struct("=qq")
EXTENDED_ERROR = struct.Struct("=IBBBBII")
TIMESTAMPING_KIND = 37
IP_RECVERR = 11


def receive() -> list[tuple[int, int]]:
    """The number of each datagram, and when it was received.

    The stamps are the kernel's, so what has arrived is read once a while only: a program that ran for each datagram
    would be measured with the link.
    """
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    sink.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sink.bind(("", PORT))
    print("ready", flush=True)
    sink.recv(1, socket.MSG_PEEK)
    found: list[tuple[int, int]] = []
    while new := list(_waiting(sink)):
        found += new
        time.sleep(SILENCE_S)
    return found


def _waiting(sink: socket.socket) -> Iterator[tuple[int, int]]:
    """What has arrived and was not read."""
    try:
        while True:
            data, [(_, _, stamp)], *_ = sink.recvmsg(65536, 64, socket.MSG_DONTWAIT)
            seconds, ns = STAMP.unpack(stamp)
            yield int.from_bytes(data[:4], "big"), seconds * 10**9 + ns
    except BlockingIOError:
        return


def send(host: str, count: int, size: int, gap_ns: int, seed: int) -> list[tuple[int, int]]:
    """The number of each datagram, and when it was handed to the interface."""
    source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    source.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
    source.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    if gap_ns:
        source.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TX_SCHEDULED | SOFTWARE | NUMBERED | STAMP_ONLY)
    source.connect((host, PORT))
    chance = random.Random(seed)
    payloads = [number.to_bytes(4, "big").ljust(size - HEADERS_BYTES, b"\0") for number in range(count)]
    gaps_us = [round(chance.expovariate(1 / gap_ns) / 1e3) if gap_ns else 0 for _ in payloads]
    # An arrival that finds a program running has to stop it first, so as little as can be runs here: time.sleep would
    # read the clock.
    send_one, sleep_us = source.send, ctypes.CDLL(None).usleep
    for payload, gap_us in zip(payloads, gaps_us, strict=True):
        send_one(payload)
        if gap_us:
            sleep_us(gap_us)
    found: list[tuple[int, int]] = []
    # To read the stamps, and the end of a process, are long work; that must not be what is measured.
    time.sleep(REST_S)
    while gap_ns and len(found) < count:
        _collect(source, found)
    return found


def _collect(source: socket.socket, found: list[tuple[int, int]]) -> None:
    """Takes all time stamps that are there."""
    try:
        while True:
            _, messages, *_ = source.recvmsg(0, 256, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            stamps = {kind: data for _, kind, data in messages}
            seconds, ns = STAMP.unpack(stamps[TIMESTAMPING_KIND][: STAMP.size])
            number = EXTENDED_ERROR.unpack(stamps[IP_RECVERR][: EXTENDED_ERROR.size])[-1]
            found.append((number, seconds * 10**9 + ns))
    except BlockingIOError:
        return


if __name__ == "__main__":
    print(json.dumps(receive() if sys.argv[1] == "receive" else send(sys.argv[2], *map(int, sys.argv[3:7]))))
