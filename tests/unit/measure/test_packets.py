"""Captures become tables: every field, whatever the pieces in which they are read, and what is damaged is told."""

from __future__ import annotations

import io

import numpy as np
import pytest

from dilaton.measure.packets.pcapng import CaptureError
from dilaton.measure.packets.table import Packets, read_packets
from dilaton.measure.packets.tcp import flow_packets, round_trips, tcp_flows, times_between_packets, unwrap
from tests.unit.measure import made
from tests.unit.measure.made import ACK, BACK, FORTH, IN, OUT, SEGMENT_BYTES


def read(data: bytes, **options: int) -> Packets:
    return read_packets(io.BytesIO(data), **options)


def test_every_field_of_a_segment_is_in_the_table() -> None:
    frame = made.tcp_frame(FORTH, 4_000_000_000, 3_000_000_000, 1000)
    packets = read(made.pcapng([(1_234_567_890_123_456_789, frame, OUT)]), zero_ns=1_234_567_890_000_000_000)
    row = packets.table.iloc[0].to_dict()
    assert row == {
        "t_ns": 123_456_789,
        "t_s": 0.123456789,
        "length_bytes": 14 + 20 + 32 + 1000,
        "direction": "out",
        "protocol": "tcp",
        "source": "10.0.0.0",
        "source_port": 41000,
        "destination": "10.0.0.1",
        "destination_port": 5201,
        "sequence": 4_000_000_000,
        "acknowledgement": 3_000_000_000,
        "tcp_flags": ACK,
        "window": 512,
        "payload_bytes": 1000,
    }


def test_udp_ipv6_and_what_is_neither_are_read() -> None:
    six = made.tcp_frame(("fd00::1", 80, "fd00::2", 4000), 5, 6, 7)
    udp = made.udp_frame(("10.1.0.1", 53, "10.1.0.2", 999), 100)
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    tagged = udp[:12] + b"\x81\x00\x00\x05" + udp[12:]
    table = read(made.pcapng([(0, six, IN), (1, udp, OUT), (2, arp, IN), (3, tagged, 0)])).table
    assert table.protocol.tolist() == ["tcp", "udp", "", "udp"]
    assert table.source.tolist() == ["fd00::1", "10.1.0.1", "", "10.1.0.1"]
    assert table.destination_port.tolist() == [4000, 999, 0, 999]
    assert table.payload_bytes.tolist() == [7, 100, 0, 100]
    assert table.direction.tolist() == ["in", "out", "in", ""]


def test_a_packet_of_which_too_little_was_kept_has_no_ports() -> None:
    table = read(made.pcapng([(0, made.tcp_frame(FORTH, payload_bytes=1000), OUT)], snap_bytes=34)).table
    assert (table.protocol[0], table.source_port[0], table.payload_bytes[0]) == ("tcp", 0, 0)
    assert table.length_bytes[0] == 1066


def test_the_size_of_the_pieces_changes_nothing() -> None:
    data = made.pcapng(made.transfer(100, lost=[30]))
    whole = read(data)
    for piece_bytes in (64, 1000, 4096):
        pieces = read(data, piece_bytes=piece_bytes)
        assert pieces.table.astype(str).equals(whole.table.astype(str))
        assert pieces.sack.equals(whole.sack)


def test_what_the_capturer_dropped_is_known() -> None:
    assert read(made.pcapng([], dropped=3)).interfaces[0].dropped == 3
    assert read(made.pcapng([], dropped=None)).interfaces[0].dropped is None
    assert len(read(made.pcapng([])).table) == 0


def test_a_capture_that_breaks_off_ends_at_its_last_whole_packet() -> None:
    data = made.pcapng(made.transfer(10), dropped=None)
    cut = read(data[:-5])
    assert not cut.is_whole
    assert len(cut.table) == len(read(data).table) - 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"not a capture at all", "not a pcapng file"),
        (b"\x0a\x0d\x0d\x0a\x00\x00\x00\x1c\x1a\x2b\x3c\x4d" + bytes(16), "big-endian"),
        (made.pcapng([], dropped=None) + bytes(40), "damaged: a block of 0 bytes"),
        (made.pcapng([], dropped=None) + made.block(1, b""), "damaged: a block of kind 1 has 0 bytes"),
        (made.pcapng([], dropped=None) + made.block(5, bytes(8)), "damaged: a block of kind 5 has 8 bytes"),
        (made.pcapng([]) + made.block(1, bytes(8) + made.option(9, b"\x7f")), "damaged: an interface with 1e.127 t"),
    ],
)
def test_what_is_no_capture_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(CaptureError, match=said):
        read(data)


def test_segments_sent_again_are_found_and_sequence_numbers_go_over_their_end() -> None:
    packets = read(made.pcapng(made.transfer(300, lost=[40, 41, 200])))
    flows = tcp_flows(packets.table)
    assert len(flows) == 1
    assert flows.packets[0] == 303
    flow = flow_packets(packets.table, packets.sack, flows.iloc[0])
    assert flow.name == "10.0.0.0:41000 > 10.0.0.1:5201"
    assert flow.data.begin.iloc[0] == 0
    assert flow.data.end.max() == 300 * SEGMENT_BYTES
    again = flow.data[flow.data.again]
    assert (again.begin // SEGMENT_BYTES).tolist() == [40, 41, 200]
    assert flow.acks.acknowledged.iloc[-1] == 300 * SEGMENT_BYTES
    assert set((flow.sack.left % SEGMENT_BYTES).tolist()) == {0}
    assert flow.sack.left.min() == 42 * SEGMENT_BYTES


def test_round_trips_leave_out_what_is_ambiguous() -> None:
    packets = read(made.pcapng(made.transfer(300, lost=[40])))
    flow = flow_packets(packets.table, packets.sack, dict(zip(_FLOW, FORTH, strict=True)))
    trips = round_trips(flow)
    assert len(trips) > 30
    assert trips.rtt_s.round(9).unique().tolist() == [0.02]


def test_the_time_between_packets_is_that_of_the_data() -> None:
    packets = read(made.pcapng(made.transfer(50)))
    flow = flow_packets(packets.table, packets.sack, dict(zip(_FLOW, FORTH, strict=True)))
    assert np.allclose(times_between_packets(flow), 120e-6)
    backward = flow_packets(packets.table, packets.sack, dict(zip(_FLOW, BACK, strict=True)))
    assert len(times_between_packets(backward)) == 0


def test_unwrapping_follows_the_nearest_way() -> None:
    numbers = np.array([2**32 - 10, 2**32 - 5, 3, 2**32 - 2, 20], dtype=np.uint32)
    assert unwrap(numbers, 2**32 - 10).tolist() == [0, 5, 13, 8, 30]


_FLOW = ("source", "source_port", "destination", "destination_port")
