"""How long a tree of hosts takes to be there: made by Mininet in one guest, and as a lab. Figures are host seconds.

    .venv/bin/python benches/tree.py [DEPTH FANOUT]

Mininet runs on the wall drive at TDF 1, where its seconds are those of the host: from its start until it could begin a
test, with Linux bridges as switches, which are the lab's too. The lab's are from the start of the kernel to all nodes
and links up.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

DILATON = [sys.executable, "-m", "dilaton"]
NOW = "date +%s.%N"


def by_mininet_s(depth: int, fanout: int) -> float:
    """Of Mininet, which tells the time before it starts and, as the first command of its prompt, when all is there."""
    tree = f"mn --topo tree,depth={depth},fanout={fanout} --switch lxbr --controller none --test none"
    script = f"{NOW}; echo 'sh {NOW}' > /run/ready; {tree} --pre /run/ready"
    command = [*DILATON, "exec", "--drive", "wall", "--tdf", "1", "--", "sh", "-c", script]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    begin, ready = (float(line) for line in printed.splitlines() if line.replace(".", "").isdigit())
    return ready - begin


def by_lab_s(depth: int, fanout: int) -> float:
    """Of a lab of the same shape."""
    lab = {
        "name": "tree",
        "topology": {"generate": "tree", "depth": str(depth), "fanout": str(fanout)},
        "groups": {"fabric": {"kind": "switch"}},
        "run": [{"on": "h1", "exec": "true"}],
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lab.yaml"
        path.write_text(json.dumps(lab))
        out = Path(directory) / "run"
        subprocess.run([*DILATON, "run", path, "--out", out], check=True, stdout=subprocess.DEVNULL)
        return float(json.loads((out / "run.json").read_text())["time"]["boot_host_s"])


def main() -> None:
    """Prints both."""
    depth, fanout = (int(argument) for argument in (sys.argv[1:] or ["2", "10"]))
    print(f"{fanout**depth} hosts: lab {by_lab_s(depth, fanout):.1f} s", flush=True)
    print(f"{fanout**depth} hosts: Mininet {by_mininet_s(depth, fanout):.1f} s")


if __name__ == "__main__":
    main()
