"""What the packets of a TCP connection say: its flows, segments sent again, round trips, the time between packets.

A *flow* is one direction of a connection: source and destination with their ports. Sequence numbers are unwrapped, so
that a flow of more than 4 GiB still goes up, and count from the first that was seen of the flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

FLOW = ["source", "source_port", "destination", "destination_port"]
SYN, FIN = 2, 1


@dataclass(frozen=True)
class FlowPackets:
    """The packets of one flow that carry data, and the acknowledgements of them.

    Attributes:
        name: `10.0.0.0:41000 > 10.0.0.1:5201`.
        data: `t_s`, `begin`, `end` (bytes since the first of the flow) and `again`: whether all of it had been sent.
        acks: `t_s`, `acknowledged` (bytes since the first).
        sack: `t_s`, `left`, `right`.
    """

    name: str
    data: pd.DataFrame
    acks: pd.DataFrame
    sack: pd.DataFrame


def flow_names(packets: pd.DataFrame) -> pd.Series[Any]:
    """The name of the flow of each packet."""
    text = packets[FLOW].astype(str)
    return text.source + ":" + text.source_port + " > " + text.destination + ":" + text.destination_port


def tcp_flows(packets: pd.DataFrame) -> pd.DataFrame:
    """The TCP flows of a capture that carry data: `FLOW`, `packets`, `payload_bytes`, `t_first_s` and `t_last_s`; those
    with most data first."""
    data = packets[(packets.protocol == "tcp") & (packets.payload_bytes > 0)]
    groups = data.groupby(FLOW, observed=True, sort=False)
    flows = groups.agg(
        packets=("payload_bytes", "size"),
        payload_bytes=("payload_bytes", "sum"),
        t_first_s=("t_s", "min"),
        t_last_s=("t_s", "max"),
    )
    return flows.reset_index().sort_values("payload_bytes", ascending=False, kind="stable", ignore_index=True)


def flow_packets(packets: pd.DataFrame, sack: pd.DataFrame, flow: Any) -> FlowPackets:
    """The packets of one flow.

    Args:
        packets, sack: The tables of a capture.
        flow: A row of `tcp_flows`, or a mapping with the fields of `FLOW`.
    """
    source, source_port, destination, destination_port = (flow[name] for name in FLOW)
    is_tcp = (packets.protocol == "tcp").to_numpy()
    forth = is_tcp & _between(packets, source, source_port, destination, destination_port)
    back = is_tcp & _between(packets, destination, destination_port, source, source_port)
    sent = packets[forth]
    data = sent[sent.payload_bytes > 0]
    # A capture may hold a packet twice, on its way in and out of a node; ends of connections carry a number as well.
    base = int(sent.sequence.iloc[0]) if len(sent) else 0
    if len(sent) and int(sent.tcp_flags.iloc[0]) & SYN:
        base += 1
    begin = unwrap(data.sequence.to_numpy(), base)
    end = begin + data.payload_bytes.to_numpy()
    highest = np.maximum.accumulate(np.concatenate([[-1], end]))[:-1] if len(end) else end
    answers = packets[back & ((packets.tcp_flags & 16) != 0).to_numpy()]
    acknowledged = unwrap(answers.acknowledgement.to_numpy(), base)
    return FlowPackets(
        name=f"{source}:{source_port} > {destination}:{destination_port}",
        data=pd.DataFrame({"t_s": data.t_s.to_numpy(), "begin": begin, "end": end, "again": end <= highest}),
        acks=pd.DataFrame({"t_s": answers.t_s.to_numpy(), "acknowledged": acknowledged}),
        sack=_sack(packets, sack, back, base),
    )


def round_trips(flow: FlowPackets) -> pd.DataFrame:
    """Round-trip times as the sender's capture shows them: `t_s` of the acknowledgement, `rtt_s`.

    From a segment to the first acknowledgement of just its end. Segments that were sent again, and all that were
    acknowledged after one had been and before all was well again, give none (Karn's rule).
    """
    first = flow.data[~flow.data.again].drop_duplicates("end")
    acks = flow.acks.drop_duplicates("acknowledged")
    met = acks.merge(first, left_on="acknowledged", right_on="end", suffixes=("", "_sent"))
    again = flow.data[flow.data.again]
    is_clear = np.ones(len(met), dtype=bool)
    if len(again):
        # Ambiguous from the first loss on until what was sent before the repetition is acknowledged.
        repeated = np.sort(again.t_s.to_numpy())
        before = np.searchsorted(repeated, met.t_s.to_numpy())
        after_sending = np.searchsorted(repeated, met.t_s_sent.to_numpy())
        is_clear = before == after_sending
    clear = met[is_clear]
    return pd.DataFrame({"t_s": clear.t_s.to_numpy(), "rtt_s": (clear.t_s - clear.t_s_sent).to_numpy()})


def times_between_packets(flow: FlowPackets) -> Any:
    """Virtual seconds from each data packet of a flow to the next, as an array."""
    return np.diff(flow.data.t_s.to_numpy())


def unwrap(numbers: Any, base: int) -> Any:
    """Sequence numbers, modulo 2^32, as bytes since `base`: each the nearest to the one before it."""
    if not len(numbers):
        return np.empty(0, np.int64)
    relative = numbers.astype(np.int64) - base
    steps = np.diff(relative, prepend=0)
    steps = (steps + 2**31) % 2**32 - 2**31
    return np.cumsum(steps)


def _between(packets: pd.DataFrame, source: str, source_port: int, destination: str, destination_port: int) -> Any:
    return (
        (packets.source_port.to_numpy() == source_port)
        & (packets.destination_port.to_numpy() == destination_port)
        & (packets.source == source).to_numpy()
        & (packets.destination == destination).to_numpy()
    )


def _sack(packets: pd.DataFrame, sack: pd.DataFrame, back: Any, base: int) -> pd.DataFrame:
    mine = sack[back[sack.packet.to_numpy()]]
    left = unwrap(mine.left.to_numpy(), base)
    width = (mine.right.to_numpy() - mine.left.to_numpy()) % 2**32
    return pd.DataFrame({"t_s": packets.t_s.to_numpy()[mine.packet.to_numpy()], "left": left, "right": left + width})
