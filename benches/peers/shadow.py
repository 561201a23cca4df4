"""The works as configurations of Shadow, which runs real programs, too, over a network and a TCP of its own.

Its graph has latencies and its hosts have rates, so a link is what lies between the rates of two hosts: W5, which is of
routers, it cannot do, and in W3 the flows share the rate of the one host that receives them all. It counts no CPU time:
a program takes virtual time only where it waits. iperf3 asks what time it is until that has come, and so needs that
system calls are counted; nginx is one process there, and servers listen on IPv4 alone, since there is no other.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from works import CLIENTS, FETCH, FLOWS, FLOWS_S, FORKS, PYTHON, STARTS, Lab

RUNNING = {"expected_final_state": "running"}


def configurations(built: Path) -> dict[str, Lab]:
    """Those works that it can do, by name; programs and files that they use are in `built`."""
    udp, bulk, forks = (str(built / name) for name in ("udp", "bulk", "forks"))
    iperf3 = _pair("100 Mbit", 27, "iperf3 -s --bind 0.0.0.0", "iperf3 -c b -t 20", RUNNING)
    iperf3["general"]["model_unblocked_syscall_latency"] = True
    nginx = f"nginx -p . -c {built / 'nginx.conf'} -g 'master_process off; worker_processes 0;'"
    python = f"{PYTHON} -m http.server 8000 --bind 0.0.0.0 --directory {built}"
    return {
        "W0": _alone("true"),
        "W1": _pair("1 Gbit", 3603, f"{udp} serve 9", f"{udp} ping b 9 3600 1000", RUNNING),
        "W2-100M": _pair("100 Mbit", 27, f"{bulk} serve 5201", f"{bulk} send b 5201 20"),
        "W2-1G": _pair("1 Gbit", 12, f"{bulk} serve 5201", f"{bulk} send b 5201 5"),
        "W2-iperf3": iperf3,
        "W3": _flows(bulk, 1),
        **{f"W4-{nodes}": _line(udp, nodes) for nodes in (100, 500, 1000)},
        "W6-python": _web(python),
        "W6-nginx": _web(nginx),
        "W7": _flows(bulk, 2),
        "W8-sum": _alone(["sha256sum", str(built / "big")]),
        "W8-forks": _alone([forks, str(FORKS)]),
        "W8-python": _alone(STARTS),
    }


def _configuration(stop_s: int, edges: list[tuple[int, int, int]], hosts: Lab, parallelism: int = 1) -> Lab:
    """One with a graph of edges, each with its latency in milliseconds; a host's own are not used, but asked for."""
    nodes = sorted({node for *ends, _ in edges for node in ends} | {0})
    edges = [*edges, *((node, node, 1) for node in nodes)]
    lines = [f"node [\nid {node}\n]" for node in nodes]
    lines += [f'edge [\nsource {a}\ntarget {b}\nlatency "{latency} ms"\n]' for a, b, latency in edges]
    return {
        "general": {"stop_time": f"{stop_s} s", "parallelism": parallelism, "progress": False, "log_level": "warning"},
        "network": {"graph": {"type": "gml", "inline": "\n".join(["graph [", *lines, "]"])}},
        "hosts": hosts,
    }


def _host(node: int, rate: str, *processes: Lab) -> Lab:
    return {"network_node_id": node, "bandwidth_up": rate, "bandwidth_down": rate, "processes": list(processes)}


def _process(command: str | list[str], start_s: int = 0, end: Lab | None = None) -> Lab:
    """A process; it is to exit with 0, unless `end` says otherwise, or Shadow fails."""
    path, *arguments = shlex.split(command) if isinstance(command, str) else command
    return {"path": path, "args": arguments, "start_time": f"{start_s} s"} | (end or {})


def _alone(command: str | list[str]) -> Lab:
    return _configuration(100, [], {"a": _host(0, "1 Gbit", _process(command))})


def _pair(rate: str, stop_s: int, server: str, client: str, end: Lab | None = None) -> Lab:
    hosts = {"b": _host(1, rate, _process(server, end=end)), "a": _host(0, rate, _process(client, 1))}
    return _configuration(stop_s, [(0, 1, 10)], hosts)


def _flows(bulk: str, parallelism: int) -> Lab:
    ports = range(5201, 5201 + FLOWS)
    # Some connections of which the sender has ended stay open for ever there, so nobody asks how the receivers end.
    serve = f"for port in $(seq {ports[0]} {ports[-1]}); do {bulk} serve $port & done; sleep infinity"
    hosts = {"sink": _host(1, "100 Mbit", _process(["sh", "-c", serve], end=RUNNING))}
    for port in ports:
        hosts[f"s{port}"] = _host(0, "1 Gbit", _process(f"{bulk} send sink {port} {FLOWS_S}", 1))
    return _configuration(FLOWS_S + 20, [(0, 1, 12)], hosts, parallelism)


def _line(udp: str, nodes: int) -> Lab:
    hosts = {}
    for i in range(nodes):
        processes = [_process(f"{udp} serve 9", end=RUNNING)]
        if i + 1 < nodes:
            processes.append(_process(f"{udp} ping n{i + 1} 9 60 1000", 1))
        hosts[f"n{i}"] = _host(i, "100 Mbit", *processes)
    return _configuration(63, [(i, i + 1, 1) for i in range(nodes - 1)], hosts)


def _web(server: str) -> Lab:
    hosts = {"server": _host(1, "1 Gbit", _process(server, end=RUNNING))}
    for i in range(CLIENTS):
        hosts[f"c{i}"] = _host(0, "20 Mbit", _process(FETCH, 2))
    return _configuration(30, [(0, 1, 11)], hosts)
