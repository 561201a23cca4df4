"""Random labs of one to six nodes: whichever drive, guests, CPUs, disks, memory, programs, changes and faults.

A seed says all of a lab. Most are valid, and some are not, which `check` is to say. Nothing in them takes long: where a
link carries much, or the drive makes waiting in a loop dear, what is sent has an end.
"""

from __future__ import annotations

import random

from tests.fuzz.networks import Fields, Network, network

DRIVES = ["work", "work", "wall", "event", "event"]

TDFS = {"work": (-3.0, 1.7), "wall": (-2.0, 0.5)}
"""Powers of ten between which the TDF is drawn."""


def time_of(draw: random.Random, drive: str) -> Fields:
    """What drives virtual time, how fast, and what is to happen if that is too fast."""
    if drive == "event":
        made: Fields = {"drive": drive, "tdf": draw.choice([1, 1, 1, 1, 0.5, 3])}
    elif draw.random() < 0.15:
        made = {"drive": drive, "tdf": "auto", "auto": {"max": draw.choice([2, 50]), "epoch": "50ms"}}
    else:
        made = {"drive": drive, "tdf": round(10 ** draw.uniform(*TDFS[drive]), 5)}
    if draw.random() < 0.15:
        made["max_speed"] = draw.choice([0.5, 1, 3, 1000])
    if drive != "event" and draw.random() < 0.2:
        made["on_violation"] = draw.choice(["continue", "fail", "retry"])
    return made


def machines(draw: random.Random, lab: Fields, net: Network) -> None:
    """Gives nodes their CPUs, disks, memory and parameters."""
    drive, tdf = lab["time"]["drive"], lab["time"]["tdf"]
    count = len(net.hosts)
    for name in net.hosts:
        node = net.nodes[name]
        if drive != "event" and draw.random() < 0.2:
            most = 1 if tdf == "auto" else tdf
            node["cpu"] = round(min(draw.choice([0.05, 0.2, 0.5]), most / count), 7) or 1e-7
        if draw.random() < 0.12:
            cache = draw.choice(["kept", "volatile", "torn"])
            model = draw.choice(["ssd-sata", "hdd-7200", "nvme"])
            node["disk"] = draw.choice([model, {"model": model, "cache": cache, "size": "1GB"}])
        elif draw.random() < 0.04:
            fixed = {"read_latency": "1ns", "write_latency": "800us", "iops": 3000, "bandwidth": "1MB/s"}
            node["disk"] = {"fixed": fixed, "size": "64MiB", "mount": "/var/log"}
        if draw.random() < 0.12:
            node["memory"] = draw.choice(["48MiB", "96MiB", "256MiB"])
        if draw.random() < 0.08:
            node["sysctls"] = {"net.ipv4.tcp_congestion_control": draw.choice(["bbr", "reno", "cubic"])}


def guests(draw: random.Random, drive: str, count: int) -> int | str:
    """How nodes are divided among kernels."""
    found = draw.choice([1, 2, "auto", "auto", "per-node", "per-node", "per-node"])
    if isinstance(found, int):
        return min(found, count)
    return found if count <= 4 or drive == "event" else "auto"


def sender(draw: random.Random, lab: Fields, net: Network, number: int) -> list[Fields]:
    """A server and its client."""
    one, other = draw.choice(net.hosts), draw.choice(net.hosts)
    port, server = 5201 + number, f"s{number}"
    if draw.random() < 0.2:
        web = {"exec": f"python3 -m http.server {port}", "cwd": "/usr/share/doc"}
        fetch = {"exec": f"curl -sS -m 2 -o /dev/null http://{other}:{port}/"}
    else:
        web = {"exec": f"iperf3 -s -p {port}"}
        kinds = [f"-n {draw.choice([50, 200, 1000])}K"] * 2
        if not net.is_quick:
            kinds += [f"-t {draw.choice([1, 2])}", "-t 1 -R", "-t 1 -P 3"]
            # Senders of UDP wait in a loop, which the event drive makes dear.
            kinds += [] if lab["time"]["drive"] == "event" else ["-u -l 200 -b 1M -t 1", "-u -l 1400 -b 10M -t 1"]
        fetch = {"exec": f"iperf3 -c {other} -p {port} -J {draw.choice(kinds)}"}
    listen = {"on": other, "name": server, "ready": {"tcp": port}, "background": True} | web
    if draw.random() < 0.15:
        listen["restart"] = draw.choice(["always", {"when": "on-failure", "delay": "50ms", "max": "1s"}])
    return [listen, {"on": one, "name": f"f{number}", "after": server} | fetch]


def alone(draw: random.Random, net: Network) -> Fields:
    """A program that needs no other one."""
    to = draw.choice(net.hosts)
    loop = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    hog = "b = bytearray(10**8)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint(len(b))"
    commands: list[str | list[str]] = [
        f"ping -i {draw.choice([0.05, 0.2])} -c 5 {to}",
        f"ping -c 2 -s 30000 {to}",
        f"ping -i 0.005 -c 20 {to}",
        ["sh", "-c", f"n=0; while [ $n -lt 5 ]; do {loop}; sleep 0.05; n=$((n+1)); done"],
        "dd if=/dev/zero of=/tried bs=64k count=32 conv=fsync",
        ["sh", "-c", "for i in $(seq 30); do echo $i >> /var/log/tried; sync; done; rm /var/log/tried"],
        ["sh", "-c", "for i in $(seq 20); do /bin/true; done"],
        ["python3", "-c", hog],
        "head -c 2000000 /dev/zero",
        "od -N 100 /dev/urandom",
        ["sh", "-c", "kill -9 $$"],
        ["sh", "-c", "(sleep 0.3; echo late) & exec sleep 0.1"],
        ["sh", "-c", "trap '' TERM; sleep 1; date; cat /proc/uptime; ls /proc"],
        ["sh", "-c", "for i in $(seq 50); do sleep 0.001; done; exit 3"],
        "md5sum /usr/bin/python3",
        "no-such-program",
    ]
    made: Fields = {"on": draw.choice(net.hosts), "exec": draw.choice(commands)}
    if draw.random() < 0.04:
        made["timeout"] = draw.choice(["10ms", "1s"])
    if draw.random() < 0.1:
        made["stop"] = draw.choice(["701ms", "1s"])
    if draw.random() < 0.1:
        made["user"] = "nobody"
    if draw.random() < 0.08:
        made |= draw.choice([{"restart": "always", "background": True}, {"restart": "on-failure"}])
    return made


def programs(draw: random.Random, lab: Fields, net: Network) -> list[Fields]:
    """What runs; how it ends is nobody's matter, but for one of twenty."""
    run: list[Fields] = []
    for number in range(draw.choice([0, 1, 1, 2, 3])):
        run += sender(draw, lab, net, number)
    for number in range(draw.choice([0, 1, 2, 3])):
        run.append({"name": f"p{number}"} | alone(draw, net))
    for process in run:
        if draw.random() < 0.7:
            process["start"] = f"{draw.choice([0, 1, 10, 500, 600, 700])}ms"
        if not process.get("background") and draw.random() < 0.95:
            process["expect_exit"] = "any"
    return run


def fault(draw: random.Random, lab: Fields, net: Network) -> Fields | None:
    """What is broken: anything that the language has."""
    node, disks = draw.choice(net.hosts), [name for name, node in net.nodes.items() if node.get("disk")]
    behind = [process for process in lab["run"] if process.get("background")]
    shared = [name for name in net.hosts if net.nodes[name].get("cpu")]
    other = draw.choice(net.hosts)
    kinds: list[Fields] = [
        {"pause": node},
        {"crash": node},
        {"stop": node},
        {"reboot": node},
        {"memory": {"node": node, "leave": draw.choice(["16MiB", "64MiB"])}},
        {"random": {"every": "200ms", "for": "uniform 10ms..300ms", "of": ["pause", "crash", "kill", "link"]}},
    ]
    if lab.get("guests") == "per-node":
        kinds.append({"clock": {"node": node, **draw.choice([{"jump": "+2s"}, {"back": "1s"}, {"drift": "500ppm"}])}})
    if len(net.hosts) > 2:
        kinds.append({"partition": {draw.choice(["isolate", "halves", "majority", "ring", "bridge"]): ["*"]}})
    if shared:
        kinds.append({"cpu": {"node": draw.choice(shared), "to": 0.00001}})
    if other != node:
        kinds += [{"partition": {"from": [node], "to": [other]}}, {"partition": [[node], [other]]}]
        load = draw.choice([{"syn": "200/s"}, {"udp": "500/s", "size": "1000B"}, {"http": "50/s"}])
        kinds.append({"load": {"from": node, "to": other, **load}})
    for _ in range(2 if net.pairs else 0):
        pair = draw.choice(net.pairs)
        kinds.append({"flap": {"link": pair, "down": "50ms", "up": "100ms"}})
        kinds.append({"link": pair} | draw.choice([{"loss": "20%"}, {"down": True}, {"rate": "500kbit"}]))
    if behind:
        process = draw.choice(behind)
        kinds += [{"kill": f"{process['on']}/{process['name']}", "restart": "100ms"}] * 2
    for name in disks:
        wrong = [{"delay": "20ms"}, {"stall": "100ms"}, {"errors": "10%"}, {"corrupt": "10%"}]
        wrong += [{"read_only": True}, {"full": True}]
        kinds += [{"disk": {"node": name, **draw.choice(wrong)}}, {"crash": name}]
    made = draw.choice(kinds)
    if "kill" not in made and "reboot" not in made and ("random" in made or draw.random() < 0.8):
        made["for"] = f"{draw.randrange(1, 400)}ms"
    return {"at": f"{draw.randrange(1, 1500)}ms"} | made


def measured(draw: random.Random, net: Network) -> Fields:
    """What a run measures."""
    made: Fields = {}
    for field, period in (("interfaces", "100ms"), ("tcp", "50ms"), ("nodes", "100ms")):
        if draw.random() < 0.25:
            made[field] = draw.choice([period, period, "1ms"])
    if draw.random() < 0.2:
        made["outputs"] = True
    if net.links and draw.random() < 0.3:
        end = f"{draw.choice(net.links)['endpoints'][0]}:eth0"
        made["capture"] = [draw.choice([end, {"interface": end, "filter": "icmp", "snaplen": 60}])]
    return made


def make_lab(seed: int) -> Fields:
    """The lab of that seed."""
    draw = random.Random(seed)
    drive = draw.choice(DRIVES)
    is_between = draw.random() < 0.6
    net = network(draw, is_between)
    lab: Fields = {"name": f"fuzz-{seed}", "seed": seed, "time": time_of(draw, drive)}
    if draw.random() < 0.03:
        lab["name"] = "n" * 64
    if is_between:
        lab["guests"] = guests(draw, drive, len(net.nodes))
    machines(draw, lab, net)
    lab["nodes"], lab["links"] = net.nodes, net.links
    if net.routing:
        lab["routing"] = net.routing
    if draw.random() < 0.15:
        lab["addressing"] = draw.choice([{"ipv6": "fd00:9::/48"}, {"loopback": "192.168.5.0/24"}])
    lab["run"] = programs(draw, lab, net)
    faults = [fault(draw, lab, net) for _ in range(draw.choice([0, 0, 1, 2, 3]))]
    if faults:
        lab["faults"] = faults
    if net.pairs and draw.random() < 0.2:
        change = draw.choice([{"rate": "3Mbit"}, {"delay": "30ms"}, {"loss": "1%"}, {"down": True}])
        lab["changes"] = [{"at": f"{draw.randrange(1500)}ms", "link": draw.choice(net.pairs)} | change]
    if found := measured(draw, net):
        lab["measure"] = found
    lab["stop_after"] = draw.choice(["2s", "3s", "3s", "5s"])
    return lab
