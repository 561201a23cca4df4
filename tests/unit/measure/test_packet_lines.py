"""Packets as lines: each as soon as it is there, whatever it is."""

from __future__ import annotations

import io
import os

import pytest

from dilaton.measure.packets.lines import lines
from dilaton.measure.packets.pcapng import CaptureError
from tests.unit.measure import made
from tests.unit.measure.made import ACK, FORTH, IN, OUT, SYN


def test_each_kind_of_packet_has_a_line() -> None:
    segment = made.tcp_frame(FORTH, 7, 9, 1000, SYN | ACK)
    six = made.tcp_frame(("fd00::1", 80, "fd00::2", 4000), 5, 6, 7, 0)
    udp = made.udp_frame(("10.1.0.1", 53, "10.1.0.2", 999), 100)
    arp, other = bytes(12) + b"\x08\x06" + bytes(46), bytes(12) + b"\x12\x34" + bytes(46)
    frames = [segment, six, udp, arp, other]
    found = list(lines(io.BytesIO(made.pcapng([(n * 1_500_000, frame, IN) for n, frame in enumerate(frames)]))))
    assert [line.split("  in   ") for line in found] == [
        ["      0.000000 s", "10.0.0.0:41000 > 10.0.0.1:5201  tcp 1000 [SYN ACK] seq 7 ack 9, 1066 bytes"],
        ["      0.001500 s", "[fd00::1]:80 > [fd00::2]:4000  tcp 7, 93 bytes"],
        ["      0.003000 s", "10.1.0.1:53 > 10.1.0.2:999  udp 100, 142 bytes"],
        ["      0.004500 s", "ARP, 60 bytes"],
        ["      0.006000 s", "EtherType 0x1234, 60 bytes"],
    ]


def test_a_packet_is_a_line_before_the_capture_has_ended() -> None:
    data = made.pcapng([(0, made.udp_frame(FORTH, 10), OUT)], dropped=None)
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as stream, os.fdopen(write, "wb", buffering=0) as guest:
        # A pipe may give any part of what was written, the first bytes alone too.
        guest.write(data[:5])
        found = lines(stream)
        guest.write(data[5:])
        assert next(found).endswith("  out  10.0.0.0:41000 > 10.0.0.1:5201  udp 10, 52 bytes")


@pytest.mark.parametrize("data", [b"no", b"not a capture at all"])
def test_what_is_no_capture_is_told(data: bytes) -> None:
    with pytest.raises(CaptureError, match="not a pcapng file"):
        list(lines(io.BytesIO(data)))
