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
SYN, ACK = 2, 16


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


def tcp_flows(packets: pd.DataFrame) -> pd.DataFrame:
    """The TCP flows of a capture that carry data: `FLOW`, `packets`, `payload_bytes`, `t_first_s` and `t_last_s`; those
    with most data first."""
    is_data = (packets.protocol == "tcp") & (packets.payload_bytes > 0)
    data = packets.loc[is_data, [*FLOW, "payload_bytes", "t_s"]]
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
    sent = packets.loc[forth, ["t_s", "sequence", "payload_bytes", "tcp_flags"]]
    data = sent[sent.payload_bytes > 0]
    base = int(sent.sequence.iloc[0]) if len(sent) else 0
    if len(sent) and int(sent.tcp_flags.iloc[0]) & SYN:
        base += 1
    begin = unwrap(data.sequence.to_numpy(), base)
    end = begin + data.payload_bytes.to_numpy()
    highest = np.maximum.accumulate(np.concatenate([[-1], end]))[:-1] if len(end) else end
    answers = packets.loc[back & ((packets.tcp_flags & ACK) != 0).to_numpy(), ["t_s", "acknowledgement"]]
    acknowledged = unwrap(answers.acknowledgement.to_numpy(), base)
    return FlowPackets(
        name=f"{source}:{source_port} > {destination}:{destination_port}",
        data=pd.DataFrame({"t_s": data.t_s.to_numpy(), "begin": begin, "end": end, "again": end <= highest}),
        acks=pd.DataFrame({"t_s": answers.t_s.to_numpy(), "acknowledged": acknowledged}),
        sack=_sack(packets, sack, back, base),
    )


def round_trips(flow: FlowPackets) -> pd.DataFrame:
    """Round-trip times as the sender's capture shows them: `t_s` of the acknowledgement, `rtt_s`.

    From a segment to the first acknowledgement of just its end. A segment gives none when something was sent again
    between the two, since it is not known then which one was answered (Karn's rule).
    """
    first = ~flow.data.again.to_numpy()
    # Strictly increasing, since all data of these is new.
    ends, sent_s = flow.data.end.to_numpy()[first], flow.data.t_s.to_numpy()[first]
    acknowledged, t_s = flow.acks.acknowledged.to_numpy(), flow.acks.t_s.to_numpy()
    is_news = acknowledged > np.maximum.accumulate(np.concatenate([[0], acknowledged]))[:-1]
    acknowledged, t_s = acknowledged[is_news], t_s[is_news]
    at = np.minimum(np.searchsorted(ends, acknowledged), max(0, len(ends) - 1))
    is_met = ends[at] == acknowledged if len(ends) else np.zeros(len(acknowledged), dtype=bool)
    t_s, sent_s = t_s[is_met], sent_s[at[is_met]]
    repeated = np.sort(flow.data.t_s.to_numpy()[~first])
    is_clear = np.searchsorted(repeated, t_s) == np.searchsorted(repeated, sent_s)
    return pd.DataFrame({"t_s": t_s[is_clear], "rtt_s": (t_s - sent_s)[is_clear]})


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
    width = (mine.right.to_numpy().astype(np.int64) - mine.left.to_numpy()) % 2**32
    return pd.DataFrame({"t_s": packets.t_s.to_numpy()[mine.packet.to_numpy()], "left": left, "right": left + width})
