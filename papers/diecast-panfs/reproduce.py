"""DieCast (NSDI'08), figure 14 and table 1: clients of one storage server, on machines of their own or ten on one.

python papers/diecast-panfs/reproduce.py --out DIR [--figures 14,1] [--blocks 64,256,1024,4096,16384] [--many 10,250]

Figure 14 has ten clients and these sizes of a block, in KB; table 1 has so many clients, and blocks of `--table-block`.
`--blocks-each` says how many blocks a client writes, and then reads: of the largest of figure 14, or of the table's.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from diecast import ALONE, NETWORK_TDF, SCALED, SPARE, STYLES, TOGETHER  # noqa: E402
from sweeping import run  # noqa: E402

from dilaton.report.style import COLOURS, applied, axes, below, from_zero  # noqa: E402

PLACED = (ALONE, SCALED)
FASTER = 25
"""How many times as fast as a core of this host a machine is: what is asked is the storage's and the network's."""
LARGEST_KB = 16384
CLIENTS_PER_SWITCH = 50
DRIVES = {"fixed": {"read_latency": "4ms", "write_latency": "4ms", "bandwidth": "1GB/s"}, "size": "40GB"}
"""Twenty drives as one."""
WORK = ("write", "read")


@dataclass(frozen=True)
class Case:
    """An experiment: how many clients, the size of a block and of a client's file, and whether machines are shared."""

    clients: int
    block_kb: int
    file_kb: int
    placed: str


def programs(case: Case) -> list[dict[str, Any]]:
    """The server, then all clients write, then all read."""
    clients = [f"c{number}" for number in range(case.clients)]
    files = f"cd /srv; for one in {' '.join(clients)}; do truncate -s {case.file_kb}K $one; done"
    serve = f"{files}; exec nbdkit --foreground --threads 16 file dir=/srv"
    found: list[dict[str, Any]] = [
        {"on": "store", "name": "store", "exec": ["sh", "-ec", serve], "ready": {"tcp": "10809"}, "background": "true"}
    ]
    before = ["store"]
    for what in WORK:
        sizes = f"--bs={case.block_kb}k --size={case.file_kb}k"
        options = f"--ioengine=nbd --rw={what} {sizes} --end_fsync=1 --output-format=json"
        for client in clients:
            command = f"fio --name={what} {options} --uri=nbd://store/{client}"
            found.append(
                {"on": client, "name": f"{what}-{client}", "exec": ["sh", "-c", f"exec {command}"], "after": before}
            )
        # All wait for one, as the names of all before each of them are more than is read of a lab with 250 clients.
        ended = [f"{what}-{client}" for client in clients]
        found.append({"on": "store", "name": f"{what}-done", "exec": "true", "after": ended})
        before = [f"{what}-done"]
    return found


def lab(case: Case) -> dict[str, Any]:
    """The server and all clients on one switch, each in a guest of its own, or clients ten to a guest.

    Links of many clients lead to more switches, each in a guest of its own, as a guest can have a hundred wires or so.
    """
    together = 1 if case.placed == ALONE else TOGETHER
    guests: dict[str, Any] = {"network": {"tdf": NETWORK_TDF}, "server": {"memory": "4GiB"}}
    nodes: dict[str, Any] = {
        "core": {"kind": "switch", "guest": "network"},
        "store": {"guest": "server", "cpu": str(FASTER), "disk": DRIVES},
    }
    access = {"delay": "50us", "queue": {"limit": "1000"}}
    # Four gigabits a second are all that the paper's server has.
    links = [{"endpoints": ["store", "core"], "rate": "4Gbit", **access}]
    leaves = [f"leaf{number}" for number in range(-(-case.clients // CLIENTS_PER_SWITCH))]
    leaves = leaves if len(leaves) > 1 else []
    for switch in leaves:
        guests[switch] = {"tdf": NETWORK_TDF}
        nodes[switch] = {"kind": "switch", "guest": switch}
        links.append({"endpoints": [switch, "core"], "rate": "100Gbit", "delay": "10us"})
    for number in range(case.clients):
        guest = f"machine{number // together}"
        guests[guest] = {"memory": f"{256 + round(24 + 2.5 * case.block_kb / 1024) * together}MiB"}
        if together > 1:
            guests[guest]["tdf"] = f"{SPARE * FASTER * together:g}"
        nodes[f"c{number}"] = {"guest": guest, "cpu": str(FASTER)}
        links.append(
            {
                "endpoints": [f"c{number}", leaves[number // CLIENTS_PER_SWITCH] if leaves else "core"],
                "rate": "1Gbit",
                **access,
            }
        )
    return {"name": "diecast-panfs", "guests": guests, "nodes": nodes, "links": links, "run": programs(case)}


def throughput(out: Path, case: Case, what: str) -> float:
    """What all clients write or read together until the last of them is done, in MB/s; they begin together."""
    jobs = []
    for number in range(case.clients):
        text = (out / "nodes" / f"c{number}" / f"{what}-c{number}.stdout").read_text()
        jobs.append(json.loads(text[text.index("{") :])["jobs"][0])
    total_bytes = sum(job[what]["io_bytes"] for job in jobs)
    return float(total_bytes / max(job["job_runtime"] for job in jobs) / 1e3)


def measure(case: Case, place: Path) -> tuple[dict[str, float], str]:
    """Runs a case unless that was done; what was written and read in MB/s, and what remains of its row."""
    out = place / f"{case.clients}-{case.block_kb}-{case.file_kb}-{case.placed}"
    record = run(lab(case), out)
    ends = f"{record['time']['host_s']:.0f} | {record['verdict']['level']}"
    return {what: throughput(out, case, what) for what in WORK}, ends


def draw(found: dict[Case, dict[str, float]]) -> Figure:
    """Figure 14."""
    figure, (where,) = axes()
    for number, what in enumerate(WORK):
        for placed in PLACED:
            rates = {case.block_kb: rate[what] for case, rate in found.items() if case.placed == placed}
            look = {"marker": "^o"[number], "markersize": 4, "color": COLOURS[number]}
            where.plot(list(rates), list(rates.values()), STYLES[placed], label=f"{what}: {placed}", **look)
    where.set_xscale("log", base=2)
    where.set_xlabel("block size (KB)")
    where.set_ylabel("throughput of all clients (MB/s)")
    from_zero(where)
    below(figure, *where.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the tables and draws the figure."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figures", default="14,1", help="14, 1 (the table; default both)")
    parser.add_argument("--blocks", default="64,256,1024,4096,16384", help="KB, of figure 14 (default %(default)s)")
    parser.add_argument("--many", default="10,250,1000", help="clients, of table 1 (default %(default)s)")
    parser.add_argument("--table-block", type=int, default=LARGEST_KB, help="KB, of table 1 (default %(default)s)")
    parser.add_argument("--blocks-each", type=int, default=4, help="(default %(default)s)")
    chosen = parser.parse_args()
    chosen.out = chosen.out.resolve()
    large, table = (chosen.blocks_each * block for block in (LARGEST_KB, chosen.table_block))
    blocks, many = (map(int, given.split(",")) for given in (chosen.blocks, chosen.many))
    cases = {
        "14": [Case(10, block, large, placed) for block in blocks for placed in PLACED],
        "1": [Case(clients, chosen.table_block, table, SCALED) for clients in many],
    }
    for number, name in enumerate(chosen.figures.split(",")):
        head = ["clients", "block, KB", "case", "write, MB/s", "read, MB/s", "host s", "verdict"]
        print("\n" * min(number, 1) + f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
        found = {}
        for case in cases[name]:
            found[case], ends = measure(case, chosen.out)
            rates = " | ".join(f"{found[case][what]:.0f}" for what in WORK)
            print(f"| {case.clients} | {case.block_kb} | {case.placed} | {rates} | {ends} |", flush=True)
        if name == "14":
            with applied():
                draw(found).savefig(chosen.out / "figure-14.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
