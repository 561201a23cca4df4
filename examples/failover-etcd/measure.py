"""measure.py [SEEDS]: what happens to the leader, over so many seeds each; writes figure.svg and prints the table.

To be started with Dilaton's own Python: .venv/bin/python examples/failover-etcd/measure.py 20
"""

import json
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import dilaton

HERE = Path(__file__).parent
FAULTS = {
    "crashed": {"crash": "db1"},
    "cut off": {"partition": {"isolate": ["db1"]}},
    "paused": {"pause": "db1"},
    "disk stalled": {"disk": {"node": "db1", "stall": "4s"}},
    "clock jumped": {"clock": {"node": "db1", "jump": "+1h"}},
}
"""What happens to db1, which leads."""

DATE_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""At virtual 0 of the event drive."""


def run(name, seed, directory):
    """Seconds to another leader (None: none was elected) and without a write, and writes refused and lost."""
    fault = {"name": "fault", "after": "client", "wait": "1s", "for": "4s", **FAULTS[name]}
    settings = {"seed": seed, "faults": [fault]}
    if name == "clock jumped":
        settings["nodes.db1.guest"] = "leader"  # a date belongs to a kernel
    with dilaton.start(HERE, out=Path(directory) / f"{name}-{seed}", settings=settings) as going:
        measured = going.wait()
    assert measured.record.state == "finished", measured.record.reason
    assert measured.record.verdict.level == "valid", measured.record.verdict
    events = measured.events
    began = float(events[events.kind == "began"].t_s.iloc[0])
    elected = []
    for number in range(2, 6):
        for line in measured.output(f"etcd{number}", "stderr").splitlines():
            if "elected leader" in line:
                instant = datetime.fromisoformat(json.loads(line)["ts"].replace("Z", "+00:00")).timestamp() - DATE_S
                elected += [instant - began] if instant > began else []
    result = json.loads(measured.output("client").splitlines()[-1])
    return {"leader": min(elected, default=None), **{key: result[key] for key in ("outage", "refused", "lost")}}


def row(name, found):
    """A line of the table."""
    leaders = [one["leader"] for one in found if one["leader"] is not None]
    times = f"{statistics.median(leaders):.2f} s ({min(leaders):.2f} to {max(leaders):.2f})" if leaders else "none"
    outages = [one["outage"] for one in found]
    longest = f"{statistics.median(outages):.2f} s ({min(outages):.2f} to {max(outages):.2f})"
    refused, lost = (sum(one[key] for one in found) for key in ("refused", "lost"))
    return f"| {name} | {len(leaders)} of {len(found)} | {times} | {longest} | {refused} | {lost} |"


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in FAULTS:
            found[name] = [run(name, seed, directory) for seed in range(1, seeds + 1)]
            print(row(name, found[name]), flush=True)
    draw(found)


def draw(found):
    """The figure: a point of each run."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for place, of_fault in enumerate(found.values()):
        for axes, key in ((left, "leader"), (right, "outage")):
            values = [one[key] for one in of_fault if one[key] is not None]
            axes.plot(values, [place] * len(values), "o", alpha=0.5, color=f"C{place}")
    left.set_yticks(range(len(found)), list(found))
    left.invert_yaxis()
    left.set_xlabel("seconds to another leader")
    right.set_xlabel("longest time without a write, seconds")
    for axes in (left, right):
        axes.set_xlim(left=0)
        axes.grid(axis="x", alpha=0.3)
    figure.tight_layout()
    figure.savefig(HERE / "figure.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
