"""Flows with the column names of ns-3's FlowMonitor, from captures at their ends.

What a capture at the source's node shows of a flow counts as sent, at the destination's node as received. Of a flow
that was captured at one end only, the other end's columns are missing. Not given are FlowMonitor's `delaySum` and
`jitterSum`, which need each packet found again at the other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from dilaton.measure.packets.tcp import FLOW

COLUMNS = {
    "source": "sourceAddress",
    "destination": "destinationAddress",
    "protocol": "protocol",
    "source_port": "sourcePort",
    "destination_port": "destinationPort",
}


def monitor_flows(captures: Iterable[tuple[str, pd.DataFrame]], owners: Mapping[str, str]) -> pd.DataFrame:
    """The flows in the captures of a run.

    Args:
        captures: The node of each capture, and its packets.
        owners: The node that has each address.

    Returns:
        A row for each flow: `flowId`, its addresses and ports, and `tx` and `rx`: `timeFirstTxPacket` and
        `timeLastTxPacket` (virtual seconds), `txBytes` (frames), `txPackets`, the same with `Rx`, and `lostPackets`:
        the difference, where both ends were captured.
    """
    ends = {"tx": [_empty("Tx")], "rx": [_empty("Rx")]}
    for node, packets in captures:
        ip = packets[packets.protocol != ""]
        for end, column, name in (("tx", "source", "Tx"), ("rx", "destination", "Rx")):
            here = ip[column].map(owners).astype(object) == node
            ends[end].append(_summary(ip[here.to_numpy()], name))
    sent, received = (_first_of_each(frames) for frames in ends.values())
    flows = sent.join(received, how="outer").reset_index()
    flows["lostPackets"] = flows.txPackets - flows.rxPackets
    order = flows[["timeFirstTxPacket", "timeFirstRxPacket"]].min(axis=1).sort_values(kind="stable").index
    flows = flows.loc[order].reset_index(drop=True).rename(columns=COLUMNS)
    flows.insert(0, "flowId", range(1, len(flows) + 1))
    return flows


def _summary(packets: pd.DataFrame, end: str) -> pd.DataFrame:
    low = end.lower()
    groups = packets.astype({"source": str, "destination": str, "protocol": str}).groupby(
        [*FLOW, "protocol"], sort=False
    )
    return groups.agg(
        **{
            f"timeFirst{end}Packet": ("t_s", "min"),
            f"timeLast{end}Packet": ("t_s", "max"),
            f"{low}Bytes": ("length_bytes", "sum"),
            f"{low}Packets": ("length_bytes", "size"),
        }
    )


def _empty(end: str) -> pd.DataFrame:
    empty = pd.DataFrame({name: pd.Series(dtype="int64" if "port" in name else "str") for name in [*FLOW, "protocol"]})
    return _summary(empty.assign(t_s=pd.Series(dtype="float64"), length_bytes=pd.Series(dtype="int64")), end)


def _first_of_each(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """A flow that was captured on several interfaces of its node is counted where it was met first."""
    whole = pd.concat(frames)
    return whole[~whole.index.duplicated()]
