"""Makes what a run leaves, for tests: captures, samples, whole run directories. No chance, no clock."""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dilaton.host.messages import Event, Exited, Started
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.run.record import record as records
from dilaton.run.record.record import SoFar

IN, OUT = 1, 2
SYN, ACK = 2, 16

LAB = """
name: made
time: {drive: work, tdf: 10}
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 10ms}]
run:
  - {on: b, name: server, exec: iperf3 -s, background: true}
  - {on: a, exec: ping -c 3 b, after: server}
expect: [ping.rtt.avg within 1% of 20ms, ping.loss == 0%]
"""

PINGED = """64 bytes from b: icmp_seq=1 ttl=64 time=20.1 ms
64 bytes from b: icmp_seq=2 ttl=64 time=20.2 ms
64 bytes from b: icmp_seq=3 ttl=64 time=20.3 ms
3 packets transmitted, 3 received, 0% packet loss, time 2ms
rtt min/avg/max/mdev = 20.100/20.200/20.300/0.100 ms
"""


def plan(lab: str = LAB) -> Plan:
    """The plan of a lab."""
    return compile_plan(loads(lab, "lab.yaml"))


def block(kind: int, body: bytes) -> bytes:
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def option(code: int, value: bytes) -> bytes:
    """An option of pcapng."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def pcapng(
    packets: Iterable[tuple[int, bytes, int]], name: str = "eth0", dropped: int | None = 0, snap_bytes: int = 96
) -> bytes:
    """A capture of Ethernet frames, (instant in nanoseconds, frame, direction) each."""
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHI", 1, 0, snap_bytes) + option(2, name.encode()) + option(9, b"\x09") + bytes(4))
    count = 0
    for t_ns, frame, direction in packets:
        kept = frame[:snap_bytes]
        body = struct.pack("<IIIII", 0, t_ns >> 32, t_ns & 0xFFFFFFFF, len(kept), len(frame))
        body += kept + bytes(-len(kept) % 4) + option(2, struct.pack("<I", direction)) + bytes(4)
        data += block(6, body)
        count += 1
    if dropped is not None:
        counts = option(4, struct.pack("<Q", count + dropped)) + option(5, struct.pack("<Q", dropped)) + bytes(4)
        data += block(5, struct.pack("<III", 0, 0, 0) + counts)
    return data


def tcp_frame(
    ends: tuple[str, int, str, int],
    sequence: int = 0,
    acknowledgement: int = 0,
    payload_bytes: int = 0,
    flags: int = ACK,
    sack: Sequence[tuple[int, int]] = (),
) -> bytes:
    """An Ethernet frame with a TCP segment, of IPv4 or IPv6 as its addresses are; options as Linux orders them."""
    source, source_port, destination, destination_port = ends
    options = b"\x01\x01\x08\x0a" + bytes(8)
    if sack:
        edges = b"".join(struct.pack(">II", *edge) for edge in sack)
        options += b"\x01\x01\x05" + bytes([2 + len(edges)]) + edges
    header = struct.pack(
        ">HHIIBBHHH",
        *(source_port, destination_port, sequence % 2**32, acknowledgement % 2**32),
        *((20 + len(options)) // 4 << 4, flags, 512, 0, 0),
    )
    return _ip(source, destination, 6, header + options + bytes(payload_bytes))


def udp_frame(ends: tuple[str, int, str, int], payload_bytes: int) -> bytes:
    """An Ethernet frame with a UDP datagram."""
    source, source_port, destination, destination_port = ends
    header = struct.pack(">HHHH", source_port, destination_port, 8 + payload_bytes, 0)
    return _ip(source, destination, 17, header + bytes(payload_bytes))


def _ip(source: str, destination: str, protocol: int, body: bytes) -> bytes:
    from_, to = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    if from_.version == 4:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, protocol, 0)
        return bytes(12) + b"\x08\x00" + head + from_.packed + to.packed + body
    head = struct.pack(">IHBB", 6 << 28, len(body), protocol, 64)
    return bytes(12) + b"\x86\xdd" + head + from_.packed + to.packed + body


FORTH = ("10.0.0.0", 41000, "10.0.0.1", 5201)
BACK = ("10.0.0.1", 5201, "10.0.0.0", 41000)
SEGMENT_BYTES = 1448


def transfer(
    segments: int, lost: Sequence[int] = (), rtt_ns: int = 20_000_000, gap_ns: int = 120_000, first: int = 2**32 - 5000
) -> list[tuple[int, bytes, int]]:
    """A TCP transfer as its sender sees it: segments at a steady pace, an acknowledgement a round trip after each.

    The segments whose numbers are in `lost` do not arrive; they are sent again at the end, and until then everything is
    acknowledged selectively.
    """
    packets = [(0, tcp_frame(FORTH, first - 1, flags=SYN), OUT)]
    packets.append((rtt_ns, tcp_frame(BACK, 7, first, flags=SYN | ACK), IN))
    begin = rtt_ns + 1000
    arrived: list[int] = []
    again = [*range(segments), *lost]
    for number, segment in enumerate(again):
        sent = begin + number * gap_ns
        packets.append((sent, tcp_frame(FORTH, first + segment * SEGMENT_BYTES, 8, SEGMENT_BYTES), OUT))
        if segment in lost and number < segments:
            continue
        arrived.append(segment)
        whole = next(each for each in range(segments + 1) if each not in arrived)
        above = sorted(each for each in arrived if each > whole)
        edges = _runs(above)[-3:]
        sack = [(first + low * SEGMENT_BYTES, first + (high + 1) * SEGMENT_BYTES) for low, high in edges]
        answer = tcp_frame(BACK, 8, first + whole * SEGMENT_BYTES, sack=[tuple(e % 2**32 for e in p) for p in sack])
        packets.append((sent + rtt_ns, answer, IN))
    return sorted(packets, key=lambda packet: packet[0])


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def csv(header: str, rows: Iterable[Sequence[Any]]) -> str:
    """A table as a sampler writes it."""
    return "".join(f"{','.join(map(str, row))}\n" for row in [header.split(","), *rows])


INTERFACES = (
    "t_ns,node,interface,rx_bytes,rx_packets,rx_dropped,tx_bytes,tx_packets,tx_dropped,"
    "queue_bytes,queue_packets,queue_drops,queue_overlimits,queue_requeues"
)
TCP = (
    "t_ns,node,source,source_port,destination,destination_port,state,cwnd_packets,ssthresh_packets,mss_bytes,rtt_us,"
    "rttvar_us,min_rtt_us,bytes_acked,bytes_received,retransmits_total,unacked,lost,delivery_rate_bps,pacing_rate_bps,"
    "rcv_space,snd_wnd,notsent_bytes"
)
NODES = "t_ns,node,cpu_ns,memory_bytes,processes,io_read_bytes,io_write_bytes"


def interface_rows(instants: int, interval_ns: int = 100_000_000) -> list[list[Any]]:
    """Samples of a:eth0, which sends 10 Mbit/s, and b:eth0, which receives it."""
    step = 10_000_000 // 8 * interval_ns // 10**9
    rows: list[list[Any]] = []
    for number in range(instants):
        sent, packets = number * step, number * step // 1250
        t_ns = number * interval_ns
        rows.append([t_ns, "a", "eth0", 0, 0, 0, sent, packets, 0, 1500 * (number % 7), number % 7, number // 5, 0, 0])
        rows.append([t_ns, "b", "eth0", sent, packets, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    return rows


def tcp_rows(instants: int, interval_ns: int = 10_000_000) -> list[list[Any]]:
    """Samples of one connection whose window grows and is halved."""
    rows: list[list[Any]] = []
    for number in range(instants):
        window = 10 + number % 50
        key = [number * interval_ns, "a", *FORTH]
        rate = window * 1448 * 8 * 50
        inside = [
            window,
            30,
            1448,
            20_000 + 100 * (number % 9),
            500,
            20_000,
            number * 12_500,
            0,
            number // 50,
            window,
            0,
        ]
        rows.append([*key, "ESTAB", *inside, rate, 2 * rate, 65_536, 65_536, 0])
    return rows


def so_far(**fields: Any) -> SoFar:
    """What has become of a run that has finished, for `record.make`; its fidelity is that of its one guest."""
    guests = [fields["fidelity"]] if fields.get("fidelity") else []
    usual = {"state": "finished", "boot_host_s": 0.5, "host_s": 20.0, "virtual_s": 2.0, "guest_kernel": "6.1"}
    return SoFar(**usual | {"guests": guests} | fields)


def run_dir(path: Path, lab: str = LAB, bulk: str | None = None, **fields: Any) -> Path:
    """A whole run directory: record, plan, events, outputs, samples and a capture with losses.

    Args:
        path: Where to make it.
        lab: What was run, with the process ping on a.
        bulk: What the process bulk on a printed; None: there is no such process.
        fields: Of what has become of it, see `so_far`.
    """
    made = plan(lab)
    for folder in ("measure/g0", "captures", *(f"nodes/{node.name}" for node in made.nodes)):
        (path / folder).mkdir(parents=True)
    (path / "lab.yaml").write_text(lab)
    (path / "plan.json").write_text(made.model_dump_json())
    outputs = {"ping": PINGED} | ({"bulk": bulk} if bulk else {})
    how = {"status": 0, "expected": True, "timed_out": False, "stopped": False}
    events: list[Event] = [Started(t_ns=0, process="server", node="b", pid=7)]
    for name, output in outputs.items():
        (path / f"nodes/a/{name}.stdout").write_text(output)
        events.append(Started(t_ns=10_000_000, process=name, node="a", pid=7))
        events.append(Exited(t_ns=1_500_000_000, process=name, node="a", **how))
    (path / "events.jsonl").write_text("".join(json.dumps(event.record()) + "\n" for event in events))
    (path / "measure/g0/interfaces.csv").write_text(csv(INTERFACES, interface_rows(21)))
    (path / "measure/g0/tcp.csv").write_text(csv(TCP, tcp_rows(200)))
    (path / "measure/g0/nodes.csv").write_text(
        csv(NODES, ([n * 100_000_000, "a", n * 30_000_000, 5 << 20, 3, 0, n * 4096] for n in range(21)))
    )
    (path / "captures/a.eth0.pcapng").write_bytes(pcapng(transfer(300, lost=[40, 41, 200])))
    records.write(path, records.make(made, so_far(**({"events": events} | fields)), path))
    return path
