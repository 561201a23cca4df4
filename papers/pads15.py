"""What the reproductions of PADS'15 share: running one lab and reading the throughputs of its flows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MEGA = 10**6


def run(lab: dict[str, Any], out: Path) -> dict[str, Any]:
    """Runs a lab, unless that was done already, and returns its record; ends the program when the run fails."""
    if not (out / "run.json").is_file():
        out.parent.mkdir(parents=True, exist_ok=True)
        path = out.with_suffix(".yaml")
        path.write_text(json.dumps(lab, indent=1))
        command = [sys.executable, "-m", "dilaton", "run", str(path), "--out", str(out)]
        with out.with_suffix(".log").open("w") as log:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    if record["state"] != "finished":
        sys.exit(f"{out}: {record['state']}; see {out.with_suffix('.log')}")
    return record


def throughputs(record: dict[str, Any]) -> list[float]:
    """The received bits per second of each iperf3 client, in Mbit/s."""
    results = [process["result"] for process in record["processes"] if process["name"].startswith("flow")]
    return [result["throughput"] / MEGA for result in results]
