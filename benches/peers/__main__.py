"""The same work for Dilaton and for its peers, in one session: `./dev peers [--rounds N] [--kernel NAME] [WORK ...]`.

Takes root, since control groups count CPU time, a C compiler, for Shadow its command `shadow`, and for ns-3 a C++
compiler with libns3-dev and libgsl-dev of Debian; a peer that is not there is left out, and said to be. The peers take
turns, so that all meet the same load, and CPU seconds of the process tree are compared, which other load changes less
than host seconds, but does change. Everything is left in target/peers: programs, labs, logs, `costs.jsonl` with each
run, and the table that docs/performance.md has. What `costs.jsonl` has of the same commit is not done again: what was
broken off goes on where it was, and works can be done one by one.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from meter import Cost, cost, forget_ended
from shadow import configurations
from works import BIG_BYTES, FILE_BYTES, Lab, Work, works

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "peers"
NS3 = [f"ns3-{part}" for part in ("core", "network", "internet", "point-to-point", "applications")]
DILATON = "Dilaton"
PEERS = ("Shadow", "ns-3", "native")
NGINX = """
daemon off;
error_log stderr;
pid nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{ listen 8000; root {root}; }}
}}
"""


def build() -> set[str]:
    """Makes the programs and files of the works; returns the peers that are there."""
    for source in (HERE / "programs").glob("*.c"):
        subprocess.run(["cc", "-O2", "-o", BUILT / source.stem, source], check=True)
    (BUILT / "nginx.conf").write_text(NGINX.format(root=BUILT))
    for name, size in (("file", FILE_BYTES), ("big", BIG_BYTES)):
        (BUILT / name).write_bytes(bytes(size))
    peers = {"native"}
    if shutil.which("shadow"):
        peers.add("Shadow")
    else:
        print("Shadow is left out: there is no command shadow", file=sys.stderr)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", *NS3], capture_output=True, text=True, check=False)
    if flags.returncode or not shutil.which("c++"):
        print("ns-3 is left out: it takes c++, libns3-dev and libgsl-dev", file=sys.stderr)
        return peers
    source = HERE / "programs" / "work.cc"
    built = BUILT / "work"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:  # it takes a minute
        subprocess.run(["c++", "-O2", "-std=c++17", "-o", built, source, *flags.stdout.split()], check=True)
    return peers | {"ns-3"}


def once(name: str, work: Work, peer: str) -> Cost:
    """Has a peer do a work; "Dilaton NAME" is Dilaton with guests of that kernel."""
    log = BUILT / f"{name}-{peer}.log"
    if peer.startswith(DILATON):
        return by_dilaton(name, work.lab, peer.removeprefix(DILATON).strip(), log)
    if peer == "Shadow":
        return by_shadow(name, log)
    return cost(work.peers[peer], log, {})


def by_shadow(name: str, log: Path) -> Cost:
    """Has Shadow do a work; it fails if a process did not end as it should."""
    configuration, out = BUILT / f"{name}-shadow.yaml", BUILT / f"{name}-shadow"
    configuration.write_text(json.dumps(configurations(BUILT)[name], indent=1))
    shutil.rmtree(out, ignore_errors=True)
    spent = cost(["shadow", "--data-directory", str(out), str(configuration)], log, {})
    if not spent.status:
        shutil.rmtree(out)
    return spent


def by_dilaton(name: str, what: Lab, kernel: str, log: Path) -> Cost:
    """Has Dilaton do a work, with guests of a kernel; without a name of the one that is used without a choice."""
    lab, out = BUILT / f"{name}.yaml", BUILT / f"{name}-run"
    lab.write_text(json.dumps({"name": name.lower()} | what, indent=1))
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "dilaton", "run", str(lab), "--out", str(out)]
    # Modules are compiled once and kept, as where somebody uses it, whatever the environment says.
    chosen = {"DILATON_KERNEL": kernel} if kernel else {}
    spent = cost(command, log, {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": ""} | chosen)
    record = json.loads((out / "run.json").read_text()) if (out / "run.json").exists() else {}
    shutil.rmtree(out, ignore_errors=True)
    # A run whose fidelity is suspect has done its work; that is another matter than what it costs.
    is_well = record.get("state") == "finished" and all(process["expected"] for process in record["processes"])
    return Cost(spent.cpu_s, spent.host_s, spent.memory_bytes, 0 if is_well else spent.status or 1)


class Costs:
    """What was measured of one commit, kept on disk."""

    def __init__(self, path: Path, commit: str) -> None:
        """Reads what is there."""
        self._path, self._commit = path, commit
        self._found: dict[tuple[str, str], list[Cost]] = {}
        for row in map(json.loads, path.read_text().splitlines() if path.exists() else ()):
            if row.pop("commit", None) == commit:
                self._found.setdefault((row.pop("work"), row.pop("peer")), []).append(Cost(**row))

    def add(self, work: str, peer: str, spent: Cost) -> None:
        """Keeps what a run cost."""
        self._found.setdefault((work, peer), []).append(spent)
        row = {"commit": self._commit, "work": work, "peer": peer} | asdict(spent)
        with self._path.open("a") as costs:
            print(json.dumps(row), file=costs)

    def of(self, work: str, peer: str) -> list[Cost]:
        """The runs that went well."""
        return [each for each in self._found.get((work, peer), ()) if not each.status]

    def row(self, name: str, work: Work, own: tuple[str, ...] = (DILATON,)) -> str | None:
        """The table's row of a work, if it was done; then the ratios of each of `own` to each peer."""
        if not any(tried == name for tried, _ in self._found):
            return None
        columns = (*own, *PEERS)
        cells = [cell(self.of(name, peer), (name, peer) in self._found) for peer in columns]
        medians = {
            peer: statistics.median(each.cpu_s for each in found) for peer in columns if (found := self.of(name, peer))
        }
        ratios = [
            f"{peer} {' and '.join(f'{medians[each] / medians[peer]:.1f}' for each in own if each in medians)}"
            for peer in PEERS
            if medians.get(peer)
        ]
        return f"| {name} {work.what} | {' | '.join(cells)} | {', '.join(ratios)} |"


def cell(costs: list[Cost], was_tried: bool) -> str:
    """What is shown of a peer: the median of its CPU seconds with the least and most, host seconds, and memory."""
    if not costs:
        return "failed" if was_tried else ""
    cpu = sorted(each.cpu_s for each in costs)
    host_s = statistics.median(each.host_s for each in costs)
    memory_mb = max(each.memory_bytes for each in costs) / 1e6
    spread = f" ({cpu[0]:.2f} to {cpu[-1]:.2f})" if len(cpu) > 1 else ""
    return f"{statistics.median(cpu):.2f}{spread} / {host_s:.1f} / {memory_mb:.0f}"


def main() -> None:
    """Measures what was not measured, and prints the table."""
    parser = argparse.ArgumentParser(prog="./dev peers", description=__doc__)
    known = works(BUILT)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each work is done (default: 3)")
    parser.add_argument(
        "--kernel", metavar="NAME", help="have Dilaton do each work once more, with guests of this kernel"
    )
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(known)}; all without one")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.works if name not in known]:
        parser.error(f"{unknown[0]}: no work; there are {', '.join(known)}")
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        # Two at once would use the same directories, and measure each other.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            parser.error(f"{BUILT}: another ./dev peers measures there; wait until it has ended")
        forget_ended()
        own = (DILATON, *([f"{DILATON} {arguments.kernel}"] if arguments.kernel else []))
        measure(arguments.works or list(known), arguments.rounds, known, own)


def measure(names: list[str], rounds: int, known: dict[str, Work], own: tuple[str, ...]) -> None:
    """Measures what was not measured of these works, and prints the table of all that were."""
    there, shadows = build(), configurations(BUILT)
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    costs = Costs(BUILT / "costs.jsonl", revision.stdout.strip())
    for name in names:
        can = there & ({*known[name].peers} | ({"Shadow"} if name in shadows else set()))
        peers = [*own, *(peer for peer in PEERS if peer in can)]
        for turn in range(rounds):
            for peer in peers:
                if len(costs.of(name, peer)) > turn:
                    continue
                spent = once(name, known[name], peer)
                costs.add(name, peer, spent)
                print(f"{name} {peer}: {spent}", file=sys.stderr, flush=True)
    rows = [row for name, work in known.items() if (row := costs.row(name, work, own))]
    columns = ("work", *own, *PEERS, "ratio")
    table = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *rows]
    (BUILT / "table.md").write_text("\n".join([*table, ""]))
    print("\n".join(table))


if __name__ == "__main__":
    main()
