"""PADS'15, section 5: one TCP flow through a row of Open vSwitches under an OpenFlow controller; figures 3 and 4.

python papers/pads15-chain/reproduce.py --out DIR [--switches 40] [--rates 4Gbit,8Gbit,10Gbit] [--tdfs 1,4]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import run, throughputs

PUBLISHED = {
    (40, "4Gbit"): "about 4000 at TDF 1 and 4",
    (40, "8Gbit"): "TDF 4 as a testbed, TDF 1 28 % less",
    (40, "10Gbit"): "TDF 4 as a testbed, TDF 1 39 % less (6100)",
}
"""The throughput in Mbit/s, as the text gives it. For other rows of 4 Gbit/s: 3800 at TDF 4; TDF 1 loses 41 % with 60
switches, 65 % with 80 and 83 % with 100."""

FIRST_PORT = 6653
SWITCHES_PER_CONTROLLER = 16
"""ovs-testcontroller takes no more; each switch learns on its own, so that several of them are as good as one."""

SETTLED_S = 10
"""Virtual seconds until all switches are connected to their controller."""


def lab(switches: int, rate: str, tdf: str, drive: str, seconds: str, mtu: int) -> dict[str, Any]:
    """The lab: a client, a row of switches, a server, and a controller that learns."""
    names = [f"s{number + 1}" for number in range(switches)]
    ports = [FIRST_PORT + number // SWITCHES_PER_CONTROLLER for number in range(switches)]
    nodes: dict[str, Any] = {
        name: {"kind": "ovs", "controller": f"tcp:c0:{port}"} for name, port in zip(names, ports, strict=True)
    }
    nodes |= {name: {"kind": "host"} for name in ("client", "server", "c0")}
    row = ["client", *names, "server"]
    links: list[dict[str, Any]] = [
        {"endpoints": [a, b], "rate": rate, "delay": "10us", "mtu": str(mtu)} for a, b in pairwise(row)
    ]
    links.append({"endpoints": ["c0", *(f"{name}:mgmt0" for name in names)]})
    controllers = [
        {
            "on": "c0",
            "name": f"controller{port}",
            "exec": f"ovs-testcontroller --unixctl=none ptcp:{port}",
            "ready": {"tcp": str(port)},
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
            # The first packets are those for which the controller sets up the flow.
            {"on": "client", "name": "settle", "exec": "ping -c 5 server", "start": f"{SETTLED_S}s"},
            {"on": "client", "name": "flow", "exec": command, "after": ["listen", "settle"]},
        ],
    }


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--switches", default="40", help="how many, or several numbers (default %(default)s)")
    parser.add_argument("--rates", default="4Gbit,8Gbit,10Gbit")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--drives", default="wall,work")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", default="25", help="length of the flow, in virtual time")
    parser.add_argument("--mtu", type=int, default=1500)
    chosen = parser.parse_args()
    print("| switches | rate | drive | TDF | Mbit/s | host s | paper |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in map(int, chosen.switches.split(",")):
        for rate in chosen.rates.split(","):
            for drive in chosen.drives.split(","):
                for tdf in chosen.tdfs.split(","):
                    made = lab(count, rate, tdf, drive, chosen.seconds, chosen.mtu)
                    place = f"{count}-{rate}-{drive}-{tdf}"
                    records = [run(made, chosen.out / f"{place}-{number}") for number in range(chosen.repeat)]
                    mean = statistics.mean(throughputs(record)[0] for record in records)
                    host_s = statistics.mean(record["time"]["host_s"] for record in records)
                    paper = PUBLISHED.get((count, rate), "")
                    print(f"| {count} | {rate} | {drive} | {tdf} | {mean:.0f} | {host_s:.0f} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
