"""How often the verdict is wrong: random labs at random loads, and what the same labs show at a much larger TDF.

    PYTHONPATH=python .venv/bin/python benches/verdicts.py RECORDS [--seed 0] [--count 100] [--prove] [--judge-only]

A lab's seed says all of it. It is run on the work drive at a TDF at which the machine has next to nothing to do, the
truth, and at some at which it would have to do a tenth to four times of what it can. Each run is a line of the file
RECORDS: the lab, what the clocks counted, and the results. What is there is not run again, so that a benchmark that was
interrupted goes on, and verdicts are judged anew from the file, without a run, whenever the judgement has changed. A
run that takes too long is a line, too, and its lab is left out.

Labs take one or two virtual seconds, and some seconds of CPU time for all their runs. Their results are those that a
network decides: of TCP flows that last, which take from each other by chance, the sum. With each miss and false alarm
its lab is printed.

A **miss** is a verdict `valid` with a result that is more than 5 % off, and a **false alarm** one that is not, where
all are right. Chance: what the runs of the truth differ by does not count. With next to nothing to do they would all be
the same, and chance would not show: two flows that meet in a queue of ten packets do so the same way each time. So all
but the first begin each program up to a tick of the kernel later than the lab says, or than what it waits for. What
runs at the TDF in question differ by does: a CPU that is too slow makes results not only other but also less certain,
and a run that is wrong is not made right by another one of the same lab that is more wrong. Of five pings one more or
less that is lost is chance, and the mean of two or three is no result.

**Luck.** A machine with too little time is right now and then, and who doubts such a run is right to. So a run that is
right and in doubt is made twice more: where one of these is wrong beyond chance it is no false alarm, but counted by
itself.

With `--prove` what is `suspect` or `invalid` is run again with more time, as by `--confirm-suspect`, but for the search
for a TDF that helps. Then it is counted, too, of how many the proof takes the doubt, rightly or not, and how many runs
that took: most of the time of such a benchmark, so that without it three times as many labs are judged in an hour.

A guest is no slower than what its nodes' shares of a CPU are together. Where that is a higher TDF than a load asks for,
loads are drawn from what is left, and only that TDF is judged where nothing is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.confirm import refusal
from dilaton.run.record.model import BELIEVED, GuestFidelity, ProcessRecord
from dilaton.run.record.observation import NOTHING_BESIDE
from dilaton.run.record.programs import programs_of
from dilaton.run.record.record import judge_fidelity

OFF = 0.05
"""Of a result, that is more than a run may be wrong by."""

TRUTH_TDF = 40
"""At which a machine is busy with these labs for some hundredths of the time."""

PINGS = 5
"""`ping` polls for 10 ms before it sends, at the cost of the TDF: this many are two seconds of the truth."""

PINGS_LOST_MAX = 2
"""Of these, where the mean of the others counts."""

TRUTHS_MAX = 5
PHASE_US = 10_000
"""By how much later programs begin in runs of the truth that show chance: less than a tick, which no program minds."""

TRUTHS = ("truth", "phased")
TRIES = 2
"""How often a run that is right and in doubt is made once more, to see whether that was luck."""

LOADS = (0.1, 4.0)
"""Of the machine, between which the others are drawn."""

LOADS_PER_LAB = 2
CLEARLY_OFF = 0.6
"""Which no chance explains where two runs of the truth agree."""

LOSS_OFF = 0.02
"""Of all packets: a loss is a share already, and 5 % of a small one is a packet."""

RUN_HOST_S = 900
"""After which a run is given up, or its proof; the machine may do much else."""

PROVING = """
from dilaton.report import confirmation
confirmation.RUNGS_MAX = 1
from dilaton.__main__ import run
run()
"""
"""The command line where a proof ends once it is known whether anything changes."""

COMPARED = re.compile(r"(f\d+( interval)? throughput|all throughput|[fp]\d+ delivered|p\d+ rtt|d0 time)")
"""Results of a proof that are looked at here, too. Others are the jitter of iperf3, how long a ping had no answer, and
how long programs compute."""

Record = dict[str, Any]


def link(draw: random.Random, one: str, other: str) -> Record:
    """A link between two nodes."""
    rate = round(3 * 10 ** draw.random(), 1)
    limit = draw.choice([10, 30, 100, 300, 1000, "1bdp", "2bdp"])
    delay_us = round(200 * 100 ** draw.random())
    if str(limit).endswith("bdp") and delay_us < 3000:
        limit = 50
    return {
        "endpoints": f"{one} -- {other}",
        "rate": f"{rate}Mbit",
        "delay": f"{delay_us}us",
        "queue": {"limit": limit},
    }


def network(draw: random.Random) -> tuple[list[str], list[Record]]:
    """Two to six nodes: a line, a star, or any tree."""
    names = "abcdef"[: draw.choice([2, 2, 3, 3, 4, 5, 6])]
    shape = draw.choice(["line", "star", "tree"])
    parents: dict[str, Callable[[int], int]] = {"line": lambda n: n - 1, "star": lambda _: 0, "tree": draw.randrange}
    return list(names), [link(draw, names[parents[shape](number)], names[number]) for number in range(1, len(names))]


def programs(draw: random.Random, names: list[str], seconds: int) -> list[Record]:
    """One to four that send, and perhaps some beside them that ping, compute or write to a disk."""
    run: list[Record] = []
    for number in range(draw.choice([1, 1, 2, 2, 3, 4])):
        one, other = draw.sample(names, 2)
        port = 5201 + number
        run.append(
            {
                "on": other,
                "name": f"s{number}",
                "exec": f"iperf3 -s -p {port}",
                "ready": {"tcp": port},
                "background": True,
            }
        )
        kind = draw.choice(["tcp", "tcp", "tcp", "short", "udp", "flood"])
        how = {
            "tcp": f"-t {seconds}{draw.choice(['', '', ' -R'])}",
            "short": f"-n {draw.choice([50, 200, 1000])}K",
            "udp": f"-u -l {draw.choice([200, 1000, 1400])} -b {draw.choice([1, 2, 4])}M -t {seconds}",
            "flood": f"-u -l 1400 -b {draw.choice([5, 10, 20])}M -t {seconds}",
        }[kind]
        flow = {"on": one, "name": f"f{number}", "exec": f"iperf3 -c {other} -p {port} -J {how}"}
        run.append(flow | {"start": "500ms", "after": f"s{number}"})
    for number in range(draw.choice([0, 0, 1, 2])):
        one, other = draw.sample(names, 2)
        run.append(
            {
                "on": one,
                "name": f"p{number}",
                "exec": f"ping -i {draw.choice([0.05, 0.1])} -c {PINGS} {other}",
                "start": "600ms",
            }
        )
    if draw.random() < 0.25:
        turns, work = draw.choice([(1, 100_000), (5, 10_000), (10, 3_000)])
        loop = f"i=0; while [ $i -lt {work} ]; do i=$((i+1)); done"
        script = f"n=0; while [ $n -lt {turns} ]; do {loop}; sleep 0.1; n=$((n+1)); done"
        run.append(
            {"on": draw.choice(names), "name": "c0", "exec": ["sh", "-c", script], "start": "700ms", "background": True}
        )
    return run


def make_lab(seed: int) -> Record:
    """The lab of that seed."""
    draw = random.Random(seed)
    names, links = network(draw)
    nodes: dict[str, Record] = {name: {} for name in names}
    run = programs(draw, names, draw.choice([1, 1, 1, 2]))
    drive = draw.choice(["work"] * 12 + ["wall", "event"])
    if drive == "event":
        # Senders of UDP wait in a loop there, which is known.
        run = [process for process in run if " -u " not in process["exec"] and process["name"] != "c0"]
    for name in names:
        if draw.random() < 0.1 and drive != "event":
            nodes[name]["cpu"] = draw.choice([0.05, 0.2, 0.5])
    if draw.random() < 0.1:
        node = draw.choice(names)
        nodes[node]["disk"] = draw.choice(["ssd-sata", "hdd-7200"])
        run.append(
            {
                "on": node,
                "name": "d0",
                "exec": "dd if=/dev/zero of=/tried bs=64k count=32 conv=fsync",
                "start": "600ms",
            }
        )
    lab: Record = {
        "name": f"verdict-{seed}",
        "time": {"drive": drive},
        "nodes": nodes,
        "links": links,
        "run": run,
        "stop_after": "30s",
    }
    guests = draw.choice([1] * 5 + [2, 3])
    if guests > 1 and len(names) > guests:
        lab["guests"] = guests
    return lab


def loads_of(seed: int, most: float = math.inf) -> list[float]:
    """At which the lab of a seed is judged: shares of the machine, one of each part of the range.

    Args:
        seed: That.
        most: What the machine has to do at the least TDF that the lab can have.
    """
    draw = random.Random(seed + 10**6)
    if most <= LOADS[0]:
        return [most]
    low, high = math.log(LOADS[0]), math.log(min(LOADS[1], most))
    step = (high - low) / LOADS_PER_LAB
    return [math.exp(low + step * (number + draw.random())) for number in range(LOADS_PER_LAB)]


def competing(lab: Record) -> set[str]:
    """The names of the TCP flows that go on for a time, and take from each other what there is."""
    flows = {process["name"]: process["exec"] for process in lab["run"] if process["name"].startswith("f")}
    return {name for name, command in flows.items() if " -t " in command and " -u " not in command}


def summed(lab: Record, results: dict[str, float]) -> dict[str, float]:
    """Results with one throughput for all flows that compete."""
    flows = {f"{name}.throughput" for name in competing(lab)} & results.keys()
    kept = {name: value for name, value in results.items() if name not in flows}
    return kept | ({"tcp.throughput": sum(results[name] for name in flows)} if flows else {})


def results_of(record: Record, directory: Path) -> dict[str, float]:
    """What a run measured, by name; names that end in `.loss` are shares."""
    found: dict[str, float] = {}
    for process in record["processes"]:
        result, name = process.get("result"), process["name"]
        if name.startswith("f") and result and result.get("throughput"):
            found[f"{name}.throughput"] = result["throughput"]
            if result.get("loss") is not None:
                found[f"{name}.loss"] = result["loss"]
        elif name.startswith("p") and result:
            found[f"{name}.loss"] = result["loss"]
            if result.get("rtt"):
                found[f"{name}.rtt"] = result["rtt"]["avg"]
        elif name == "d0":
            said = (directory / "nodes" / process["node"] / f"{name}.stderr").read_text().strip().splitlines()[-1]
            found["d0.seconds"] = float(said.split(",")[2].split()[0])
        if name.startswith("f") and process.get("exit") not in (0, None):
            found[f"{name}.throughput"] = 0.0
    return found


def can_be_proven(lab: Record) -> bool:
    """Whether a lab can be confirmed at all."""
    read = loads(json.dumps(lab), "lab.yaml")
    return not refusal(read, compile_plan(read))


def run_lab(lab: Record, drive: str, tdf: float, *, is_proven: bool = False) -> Record:
    """Runs a lab, and again with more time if its verdict leaves a doubt and `is_proven`; what there is to know."""
    lab = lab | {"time": {"drive": drive, "tdf": tdf}}
    is_proven = is_proven and can_be_proven(lab)
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(lab))
        # Who is interrupted ends in good order, and the run stands if it was its proof that took too long.
        limited = ["timeout", "--signal=INT", "--kill-after=60", str(RUN_HOST_S)]
        command = [*limited, sys.executable, "-c", PROVING, "run", str(path), "--out", str(out)]
        command += ["--confirm-suspect"] if is_proven else []
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        try:
            record = json.loads((out / "run.json").read_text())
            if record["state"] == "aborted":
                return {"tdf": tdf, "state": "given up", "said": f"it took more than {RUN_HOST_S} s"}
            proof = record["confirmation"]
            proven = {"proof": proof and said_of(proof)} if is_proven else {}
            return {
                "tdf": tdf,
                "state": record["state"],
                "verdict": record["verdict"],
                "virtual_s": record["time"]["virtual_s"],
                "guests": [guest["fidelity"] for guest in record["guests"]],
                "results": summed(lab, results_of(record, out)),
                "processes": record["processes"],
                "host_s": record["time"]["boot_host_s"] + record["time"]["host_s"],
            } | proven
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            return {"tdf": tdf, "state": "broken", "said": f"{error!r}: {(done.stdout + done.stderr)[-500:]}"}


def said_of(proof: Record) -> Record:
    """What is kept of a proof."""
    changes = [each for comparison in proof["comparisons"][:1] for each in comparison["changes"]]
    different = [each["metric"] for each in changes if each["is_different"]]
    return {name: proof[name] for name in ("outcome", "what", "runs", "host_s")} | {"different": different}


@dataclass
class Book:
    """The file of all runs."""

    path: Path

    def lines(self) -> list[Record]:
        """What is there; a line that was cut off does not count."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return [line for line in found if line["state"] != "broken"]

    def add(self, record: Record) -> None:
        """Adds a run, on a line of its own also behind one that was cut off."""
        with self.path.open("a+b") as file:
            is_cut = file.tell() > 0 and self.path.read_bytes()[-1:] != b"\n"
            file.write((b"\n" if is_cut else b"") + json.dumps(record).encode() + b"\n")


def work_of(run: Record) -> float:
    """Host seconds of work per virtual second that the busiest guest did."""
    return max(guest["busy"] or 0.0 for guest in run["guests"]) * float(run["tdf"])


def phased(lab: Record, number: int) -> Record:
    """A lab whose programs begin at other instants, less than a tick later.

    Those that wait for others do so after them: two flows whose servers share a twentieth of a CPU begin when that is
    done, 50 us apart in each run of the truth, and which of them comes first to a queue decides what it gets.
    """
    draw = random.Random(number)
    run: list[Record] = []
    for process in lab["run"]:
        later_us = draw.randrange(PHASE_US)
        begun = process | {"start": f"{start_us(process) + later_us}us"}
        if "after" in process:
            waits = {"on": process["on"], "name": f"w-{process['name']}", "exec": f"sleep {later_us / 1e6}"}
            run.append(waits | {"after": process["after"]})
            begun |= {"after": waits["name"]}
        run.append(begun)
    return lab | {"run": run}


def start_us(process: Record) -> int:
    """When a program of these labs begins, virtual microseconds."""
    return 1000 * int(process.get("start", "0ms").removesuffix("ms"))


def measure(book: Book, seed: int, *, is_proven: bool) -> None:
    """Makes the runs of a seed that are not there yet; `is_proven`: what leaves a doubt is run again with more time."""
    there = {(line["role"], line["number"]): line for line in book.lines() if line["seed"] == seed}
    lab = make_lab(seed)

    def made(role: str, number: int, tdf: float) -> Record:
        if (role, number) not in there:
            # The results of the work drive do not depend on what else the machine does, and it skips what is idle.
            drive = "work" if role in TRUTHS else lab["time"]["drive"]
            asked = phased(lab, number) if role == "phased" else lab
            found = run_lab(asked, drive, tdf, is_proven=is_proven and role == "judged")
            there[role, number] = {"seed": seed, "role": role, "number": number, **found}
            book.add(there[role, number])
        return there[role, number]

    truth = made("truth", 0, TRUTH_TDF)
    if truth["state"] != "finished":
        return
    # The event drive knows no TDF.
    shares = sum(node.get("cpu", 0) for node in lab["nodes"].values())
    most = work_of(truth) / shares if shares else math.inf
    for number, load in enumerate(loads_of(seed, most)[: 1 if lab["time"]["drive"] == "event" else None]):
        # Rounded it may be less than the shares are.
        tdf = max(shares, float(f"{work_of(truth) / load:.3g}"))
        run, truths = made("judged", number, tdf), [truth]
        judged = [run]
        # Chance, or wrong: both are tried again.
        while far_off(truths, judged) and len(truths) < TRUTHS_MAX:
            truths.append(made("phased", len(truths), TRUTH_TDF))
            if far_off(truths, judged) and max(far_off(truths, judged).values()) < CLEARLY_OFF:
                judged.append(made(f"again-{number}", len(judged), tdf))
        if "verdict" not in run or run["verdict"]["level"] in BELIEVED:
            continue
        while len(judged) <= TRIES and not far_off(truths, judged) and not was_luck(truths, judged[1:]):
            judged.append(made(f"again-{number}", len(judged), tdf))
            while was_luck(truths, judged[1:]) and len(truths) < TRUTHS_MAX:
                truths.append(made("phased", len(truths), TRUTH_TDF))


def far_off(truths: list[Record], judged: list[Record]) -> dict[str, float]:
    """The results that are off beyond chance, and by how much: shares of the truth.

    Args:
        truths: Runs of the truth.
        judged: The run in question, and others at its TDF. It is wrong if it is off, and so are all in the mean.
    """
    found = {}
    truths, runs = ([run for run in each if "results" in run] for each in (truths, judged))
    for name in sorted({name for truth in truths for name in truth["results"]}):
        true = [truth["results"].get(name) for truth in truths]
        seen = [run["results"].get(name, 0.0) for run in runs]
        if not seen or None in true or is_of_few(name, [*truths, *runs]):
            continue
        spread, middle = max(true) - min(true), sum(true) / len(true)
        off = min(abs(value - middle) - spread for value in (seen[0], sum(seen) / len(seen)))
        scale = 1.0 if name.endswith(".loss") else middle
        if scale and off / scale > off_max(name):
            found[name] = off / scale
    return found


def was_luck(truths: list[Record], again: list[Record]) -> bool:
    """Whether one of the runs that were made once more is off beyond chance, by itself."""
    return any(far_off(truths, [run]) for run in again)


def off_max(name: str) -> float:
    """By how much a result may be off: a share of it, or of all packets."""
    if not name.endswith(".loss"):
        return OFF
    return 1 / PINGS + LOSS_OFF if name.startswith("p") else LOSS_OFF


def is_of_few(name: str, runs: list[Record]) -> bool:
    """Whether a result is the mean of too few pings in one of these runs."""
    losses = (run["results"].get(name.replace(".rtt", ".loss"), 0.0) for run in runs)
    return name.startswith("p") and name.endswith(".rtt") and max(losses) > PINGS_LOST_MAX / PINGS + LOSS_OFF


def judged_again(lab: Record, run: Record) -> Record:
    """The verdict that this version of Dilaton gives on a run."""
    planned = compile_plan(loads(json.dumps(lab | {"time": lab["time"] | {"tdf": run["tdf"]}}), "lab.yaml"))
    guests = [GuestFidelity.model_validate(guest) for guest in run["guests"]]
    programs = programs_of(planned, [ProcessRecord.model_validate(each) for each in run["processes"]], guests)
    return judge_fidelity(planned, guests, run["virtual_s"], None, NOTHING_BESIDE, programs).model_dump()


def cases(book: Book) -> Iterator[tuple[Record, Record, dict[str, float], Record, str]]:
    """Each run that is judged: the lab, the run, what is off, the verdict, and how that is to be called."""
    by_seed: dict[int, list[Record]] = defaultdict(list)
    for line in book.lines():
        by_seed[line["seed"]].append(line)
    for seed, runs in sorted(by_seed.items()):
        truths = [run for run in runs if run["role"] in TRUTHS and run["state"] == "finished"]
        if not truths:
            continue
        lab = make_lab(seed)
        judged = [run for run in runs if run["role"] == "judged" and "guests" in run]
        # The first of those at one TDF: one verdict does not count twice.
        for run in {run["tdf"]: run for run in sorted(judged, key=lambda run: -run["number"])}.values():
            again = [other for other in runs if other["role"] == f"again-{run['number']}" and "guests" in other]
            off = far_off(truths, [run, *again])
            if off and len([run for run in runs if run["role"] in TRUTHS]) < TRUTHS_MAX:
                print(f"seed {seed}, TDF {run['tdf']}: not counted, as runs that would tell chance are not there yet")
                continue
            verdict = judged_again(lab, run)
            is_luck = not off and was_luck(truths, again)
            kind = {(True, True): "miss", (True, False): "rightly valid", (False, True): "rightly not valid"}.get(
                (verdict["level"] == "valid", bool(off)), "right by luck" if is_luck else "false alarm"
            )
            yield lab, run, off, verdict, kind


def report(book: Book) -> None:
    """Prints what was wrong, and how often."""
    counts: dict[str, int] = defaultdict(int)
    proofs: dict[str, list[Record]] = defaultdict(list)
    seeds = set()
    for lab, run, off, verdict, kind in cases(book):
        seeds.add(run["seed"])
        counts[kind] += 1
        if verdict["level"] not in BELIEVED and "proof" in run:
            proofs[f"{'wrong' if off else 'right'} and {after_proof(run)}"].append(run)
            print(f"seed {run['seed']}, TDF {run['tdf']}: {after_proof(run)}: {(run['proof'] or {}).get('what')}")
        if kind in ("miss", "false alarm"):
            why = [reason["what"] for reason in verdict["reasons"]] or {name: round(by, 3) for name, by in off.items()}
            print(f"{kind}: seed {run['seed']}, {lab['time']['drive']} drive, TDF {run['tdf']}: {why}")
            print(f"  off: { {name: round(by, 3) for name, by in off.items()} }\n  {json.dumps(lab)}")
    total = sum(counts.values())
    print(
        f"{len(seeds)} labs, {total} verdicts: {', '.join(f'{count} {kind}' for kind, count in sorted(counts.items()))}"
    )
    if proofs:
        print(
            f"of those that are not valid, {', '.join(f'{len(runs)} {kind}' for kind, runs in sorted(proofs.items()))}"
        )
    for outcome in ("confirmed", "changed", "unclear"):
        made = [run for runs in proofs.values() for run in runs if run["proof"] and run["proof"]["outcome"] == outcome]
        if made:
            runs, times = (sum(run["proof"][name] for run in made) for name in ("runs", "host_s"))
            own = sum(run["host_s"] for run in made)
            print(f"{len(made)} proofs came out {outcome}: {runs} runs, {times / own:.1f} times the time of their own")


def after_proof(run: Record) -> str:
    """What a proof said of a run that was in doubt."""
    if not (proof := run["proof"]):
        return "not proven"
    if proof["outcome"] == "confirmed" and run["verdict"]["level"] not in BELIEVED:
        return "as one with more time that is in doubt itself"
    if proof["outcome"] == "changed" and not proof["different"]:
        return "changed in all together"
    if proof["outcome"] == "changed" and not any(map(COMPARED.fullmatch, proof["different"])):
        return "changed in what is not looked at here"
    return str(proof["outcome"])


def main() -> None:
    """Runs what is missing, and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, help="JSON lines, made or gone on with")
    parser.add_argument("--seed", type=int, default=0, help="of the first lab")
    parser.add_argument("--count", type=int, default=100, help="of labs; their seeds are consecutive")
    parser.add_argument("--prove", action="store_true", help="run what leaves a doubt again with more time")
    parser.add_argument("--judge-only", action="store_true", help="run nothing")
    asked = parser.parse_args()
    book = Book(asked.records)
    if not asked.judge_only:
        for seed in range(asked.seed, asked.seed + asked.count):
            measure(book, seed, is_proven=asked.prove)
    report(book)


if __name__ == "__main__":
    main()
