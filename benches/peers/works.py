"""The works: each as a lab of Dilaton, and for the peers that can do the same as their command."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Lab = dict[str, Any]

BUFFERS = {"net.ipv4.tcp_rmem": "4096 1048576 67108864", "net.ipv4.tcp_wmem": "4096 1048576 67108864"}
FLOWS = 60
FLOWS_S = 10
CLIENTS = 20
FETCHES = 3
FILE_BYTES = 1_000_000
BIG_BYTES = 200_000_000
FORKS = 1000
PYTHON = sys.executable if not Path("/usr/bin/python3").exists() else "/usr/bin/python3"
STARTS = ["sh", "-c", f"for i in $(seq 100); do {PYTHON} -c pass || exit 1; done"]
FETCH = ["sh", "-c", f"for i in $(seq {FETCHES}); do curl -sfo /dev/null http://server:8000/file || exit 1; done"]


@dataclass(frozen=True)
class Work:
    """A work.

    Attributes:
        what: it is, for people.
        lab: for Dilaton.
        peers: the commands by which others than Shadow do it, by their names.
    """

    what: str
    lab: Lab
    peers: dict[str, list[str]] = field(default_factory=dict)


def works(built: Path) -> dict[str, Work]:
    """All works by name; programs and files that they use are in `built`."""
    udp, bulk, forks, ns3 = (str(built / name) for name in ("udp", "bulk", "forks", "work"))
    serve = f"{PYTHON} -m http.server 8000 --directory {built}"

    def tcp(rate: str, tdf: int, seconds: int, server: str, client: str) -> Lab:
        return {
            "time": {"tdf": tdf},
            "defaults": {"sysctls": BUFFERS},
            "nodes": {"a": {}, "b": {}},
            "links": [{"endpoints": "a -- b", "rate": rate, "delay": "10ms", "queue": {"limit": "1bdp"}}],
            "run": [
                {"on": "b", "name": "server", "exec": server, "ready": {"tcp": 5201}, "background": True},
                {"on": "a", "name": "client", "exec": f"{client} {seconds}", "after": "server"},
            ],
        }

    def flows(guests: int) -> Lab:
        run: list[Lab] = []
        for i in range(FLOWS):
            run += [
                {"on": f"d{i}", "name": f"server{i}", "exec": f"{bulk} serve 5201", "background": True},
                {"on": f"s{i}", "name": f"client{i}", "exec": f"{bulk} send d{i} 5201 {FLOWS_S}", "start": "1s"},
            ]
        topology = {"generate": "dumbbell", "pairs": FLOWS, "host_rate": "1Gbit", "host_delay": "1ms"}
        topology |= {"fabric_rate": "100Mbit", "fabric_delay": "10ms"}
        return {"time": {"tdf": 10}, "guests": guests, "topology": topology, "run": run}

    def line(nodes: int) -> Lab:
        run: list[Lab] = []
        for i in range(nodes):
            run.append({"on": f"n{i}", "name": f"server{i}", "exec": f"{udp} serve 9", "background": True})
            if i + 1 < nodes:
                # When all servers are there: a thousand programs take a second or two of virtual time to start.
                client = {"on": f"n{i}", "name": f"client{i}", "exec": f"{udp} ping n{i + 1} 9 60 1000"}
                run.append(client | {"start": "5s"})
        return {"time": {"tdf": 10}, "topology": _line(nodes), "run": run}

    def web(server: str) -> Lab:
        clients = [f"c{i}" for i in range(CLIENTS)]
        return {
            "time": {"tdf": 10},
            "nodes": {"server": {}, "r": {"kind": "router"}} | {name: {} for name in clients},
            "links": [
                {"endpoints": "server -- r", "rate": "1Gbit", "delay": "1ms"},
                *({"endpoints": f"{name} -- r", "rate": "20Mbit", "delay": "10ms"} for name in clients),
            ],
            "run": [
                {"on": "server", "name": "web", "exec": server, "ready": {"tcp": 8000}, "background": True},
                *({"on": name, "name": f"get-{name}", "exec": FETCH, "after": "web"} for name in clients),
            ],
        }

    def alone(command: str | list[str]) -> Lab:
        return {"nodes": {"a": {}}, "run": [{"on": "a", "name": "work", "exec": command}]}

    chain = [
        {"on": "n21", "name": "sink", "exec": f"{udp} sink 9", "background": True},
        {"on": "n0", "name": "send", "exec": f"{udp} send n21 9 20000 1472 125"},
    ]
    echo = [
        {"on": "b", "name": "server", "exec": f"{udp} serve 9", "background": True},
        {"on": "a", "name": "client", "exec": f"{udp} ping b 9 3600 1000"},
    ]
    pair: Lab = {"nodes": {"a": {}, "b": {}}, "links": [{"endpoints": "a -- b", "rate": "1Gbit", "delay": "10ms"}]}
    sha = ["sha256sum", str(built / "big")]
    return {
        "W0": Work("a node that runs true(1)", alone("true")),
        "W1": Work("UDP echo once a second for an hour", pair | {"run": echo}, {"ns-3": [ns3, "echo"]}),
        "W2-100M": Work(
            "TCP of a plain program, 20 s over 100 Mbit/s and 10 ms",
            tcp("100Mbit", 4, 20, f"{bulk} serve 5201", f"{bulk} send b 5201"),
            {"ns-3": [ns3, "bulk", "100Mbps", "20", "167"]},
        ),
        "W2-1G": Work(
            "TCP of a plain program, 5 s over 1 Gbit/s and 10 ms",
            tcp("1Gbit", 10, 5, f"{bulk} serve 5201", f"{bulk} send b 5201"),
            {"ns-3": [ns3, "bulk", "1Gbps", "5", "1667"]},
        ),
        "W2-iperf3": Work(
            "iperf3, 20 s over 100 Mbit/s and 10 ms", tcp("100Mbit", 4, 20, "iperf3 -s", "iperf3 -c b -t")
        ),
        "W3": Work(
            f"{FLOWS} flows of TCP over 100 Mbit/s, {FLOWS_S} s",
            flows(1),
            {"ns-3": [ns3, "flows", str(FLOWS), str(FLOWS_S)]},
        ),
        **{
            f"W4-{nodes}": Work(
                f"{nodes} nodes in a line, each asks the next once a second for 60 s",
                line(nodes),
                {"ns-3": [ns3, "line", str(nodes)]},
            )
            for nodes in (100, 500, 1000)
        },
        "W5": Work(
            "20,000 datagrams of 1,500 bytes through 20 routers",
            {"time": {"tdf": 10}, "topology": _line(22), "run": chain},
            {"ns-3": [ns3, "chain", "20", "20000"]},
        ),
        "W6-python": Work(f"{CLIENTS} clients fetch 1 MB {FETCHES} times by curl from http.server", web(serve)),
        "W6-nginx": Work(
            f"{CLIENTS} clients fetch 1 MB {FETCHES} times by curl from nginx",
            web(f"nginx -p /tmp -c {built / 'nginx.conf'}"),
        ),
        "W7": Work(f"W3 in two guests on two cores, {FLOWS_S} s", flows(2)),
        "W8-sum": Work("sha256sum of 200 MB", alone(sha), {"native": sha}),
        "W8-forks": Work(f"{FORKS} times fork and exec", alone([forks, str(FORKS)]), {"native": [forks, str(FORKS)]}),
        "W8-python": Work("Python starts 100 times", alone(STARTS), {"native": STARTS}),
    }


def _line(nodes: int) -> Lab:
    return {"generate": "line", "nodes": nodes, "rate": "100Mbit", "delay": "1ms"}
