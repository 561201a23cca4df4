"""What the tables of samples have: their columns, and the rates that are added to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """An added column: the differences of the column `counter`, `scale` of them per second of virtual time."""

    name: str
    counter: str
    scale: float = 1.0


@dataclass(frozen=True)
class Layout:
    """What a table of samples has.

    Attributes:
        key: The columns that say whose sample a row is; with `t_ns` they tell rows apart.
        text: Further columns that are no numbers.
        numbers: All others that a sampler of this version writes. A run may lack some; they are then missing values.
        rates: The columns that are added.
    """

    key: tuple[str, ...]
    numbers: tuple[str, ...]
    text: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()


INTERFACES = Layout(
    key=("node", "interface"),
    numbers=(
        *("rx_bytes", "rx_packets", "rx_dropped", "tx_bytes", "tx_packets", "tx_dropped"),
        *("queue_bytes", "queue_packets", "queue_drops", "queue_overlimits", "queue_requeues"),
        "lost_packets",
    ),
    rates=(
        Rate("rx_bit_per_s", "rx_bytes", 8),
        Rate("tx_bit_per_s", "tx_bytes", 8),
        Rate("rx_packet_per_s", "rx_packets"),
        Rate("tx_packet_per_s", "tx_packets"),
        Rate("queue_drop_per_s", "queue_drops"),
    ),
)

TCP = Layout(
    key=("node", "source", "source_port", "destination", "destination_port"),
    text=("state",),
    numbers=(
        *("cwnd_packets", "ssthresh_packets", "mss_bytes", "rtt_us", "rttvar_us", "min_rtt_us", "bytes_acked"),
        *("bytes_received", "retransmits_total", "unacked", "lost", "delivery_rate_bps", "pacing_rate_bps"),
        *("rcv_space", "snd_wnd", "notsent_bytes"),
    ),
    rates=(Rate("goodput_bit_per_s", "bytes_acked", 8), Rate("retransmit_per_s", "retransmits_total")),
)

NODES = Layout(
    key=("node",),
    numbers=("cpu_ns", "memory_bytes", "processes", "io_read_bytes", "io_write_bytes"),
    rates=(
        Rate("cpu_share", "cpu_ns", 1e-9),
        Rate("io_read_byte_per_s", "io_read_bytes"),
        Rate("io_write_byte_per_s", "io_write_bytes"),
    ),
)

OUTPUTS = Layout(key=("node", "process", "stream"), numbers=("bytes",))

LAYOUTS = {"interfaces": INTERFACES, "tcp": TCP, "nodes": NODES, "outputs": OUTPUTS}
"""The tables, by the base name of the sampler's file."""
