"""A run as a data file of Flent, so that flent-gui plots it beside measurements of real networks.

The file is that of Flent's test `tcp_upload`, whose plots know these series: `TCP upload` (Mbit/s, all connections
together), its smoothed round-trip time and window, and `Ping (ms) ICMP`. Flent keeps dates; the virtual instants are
laid behind 1970, so that plots begin at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

VERSION = 4
"""The version of Flent's file format."""

Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Instants in seconds and values, by name."""


def tcp_series(tcp: pd.DataFrame) -> dict[str, tuple[Any, Any]]:
    """The series of a run's TCP samples: sums of rates and windows, means of round trips, over all connections.

    Each connection counts in a mean by what it carries, since one that is idle keeps its last round trip for ever.
    """
    at = tcp.assign(rtt_of_data=tcp.rtt_us * tcp.goodput_bit_per_s).groupby("t_s")
    goodput = at.goodput_bit_per_s.sum(min_count=1)
    found = {
        "TCP upload": goodput / 1e6,
        "TCP upload::tcp_rtt": at.rtt_of_data.sum(min_count=1) / goodput.where(goodput > 0) / 1e3,
        "TCP upload::tcp_cwnd": at.cwnd_packets.sum(min_count=1),
    }
    kept = {name: values.dropna() for name, values in found.items()}
    return {name: (values.index.to_numpy(), values.to_numpy()) for name, values in kept.items() if len(values)}


def flent_document(title: str, length_s: float, series: Series, step_s: float = 0.1) -> dict[str, Any]:
    """The contents of a `.flent.gz`, as JSON has it.

    Args:
        title: Shown in legends.
        length_s: Virtual seconds of the run.
        series: What was measured.
        step_s: Flent wants all series at the same instants: they are interpolated to this distance.
    """
    x_values = np.arange(0.0, length_s + step_s / 2, step_s)
    results, raw = {}, {}
    for name, (t_s, values) in series.items():
        within = (x_values >= t_s[0] - step_s) & (x_values <= t_s[-1] + step_s)
        at = np.interp(x_values, t_s, values)
        results[name] = [float(value) if is_in else None for value, is_in in zip(at, within, strict=True)]
        raw[name] = [{"t": float(t), "val": float(value)} for t, value in zip(t_s, values, strict=True)]
    epoch = "1970-01-01T00:00:00.000000Z"
    return {
        "metadata": {
            "NAME": "tcp_upload",
            "TITLE": title,
            "TIME": epoch,
            "T0": epoch,
            "LENGTH": int(np.ceil(length_s)),
            "TOTAL_LENGTH": int(np.ceil(length_s)),
            "STEP_SIZE": step_s,
            "HOST": "",
            "HOSTS": [],
            "LOCAL_HOST": "",
            "DATA_FILENAME": "",
            "SERIES_META": {
                name: {"UNITS": "Mbits/s" if name == "TCP upload" else "ms" if "rtt" in name or "Ping" in name else ""}
                for name in series
            },
        },
        "raw_values": raw,
        "results": results,
        "version": VERSION,
        "x_values": x_values.tolist(),
    }
