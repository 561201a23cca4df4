"""What the reproductions of PADS'15 share: a row of switches, reading the throughputs of its flows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

MEGA = 10**6

FIRST_PORT = 6653
SWITCHES_PER_CONTROLLER = 16
"""ovs-testcontroller takes no more; each switch learns on its own, so that several of them are as good as one."""

SETTLE = "until ping -c 1 -W 1 server; do :; done; ping -c 5 server"
"""Switches without their controller forward nothing; of the packets after that, the first ones set up the flow."""


def chain(
    switches: int, rate: str, tdf: str, drive: str, seconds: str, mtu: int, offload: bool = False
) -> dict[str, Any]:
    """The lab: a client, a row of switches, a server, and controllers that learn.

    With `offload` interfaces keep segmentation offload, as those of Mininet do.
    """
    names = [f"s{number + 1}" for number in range(switches)]
    ports = [FIRST_PORT + number // SWITCHES_PER_CONTROLLER for number in range(switches)]
    nodes: dict[str, Any] = {
        name: {"kind": "ovs", "controller": f"tcp:c0:{port}"} for name, port in zip(names, ports, strict=True)
    }
    nodes |= {name: {"kind": "host"} for name in ("client", "server", "c0")}
    row = ["client", *names, "server"]
    common = {"rate": rate, "delay": "10us", "mtu": str(mtu), "offload": str(offload).lower()}
    links: list[dict[str, Any]] = [{"endpoints": [a, b], **common} for a, b in pairwise(row)]
    links.append({"endpoints": ["c0", *(f"{name}:mgmt0" for name in names)]})
    controllers = [
        {
            "on": "c0",
            "name": f"controller{port}",
            "exec": f"ovs-testcontroller --unixctl=none ptcp:{port}",
            "ready": {"tcp": str(port), "timeout": "5min"},
            "background": "true",
        }
        for port in dict.fromkeys(ports)
    ]
    listening = {"on": "server", "name": "listen", "exec": "iperf3 -s"}
    command = f"iperf3 -c server -t {seconds} -J"
    return {
        "name": "pads15-chain",
        "time": {"drive": drive, "tdf": tdf},
        "nodes": nodes,
        "links": links,
        "run": [
            *controllers,
            listening | {"ready": {"tcp": "5201"}, "background": "true"},
            {"on": "client", "name": "settle", "exec": ["sh", "-c", SETTLE]},
            {"on": "client", "name": "flow", "exec": command, "after": ["listen", "settle"]},
        ],
    }


def throughputs(record: dict[str, Any]) -> list[float]:
    """The received bits per second of each iperf3 client, in Mbit/s."""
    results = [process["result"] for process in record["processes"] if process["name"].startswith("flow")]
    return [result["throughput"] / MEGA for result in results]
