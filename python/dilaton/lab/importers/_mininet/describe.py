"""Runs a topology file of Mininet and prints its network as JSON: `describe.py FILE [NAME [ARGUMENT...]]`.

It runs in a process of its own, since the file is a program. What is wrong is printed as `{"error": text}`: with
the kind of the exception where it is the file's.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any


class AskedWrongError(Exception):
    """The file runs, but has not what it was asked for."""


def describe(file: str, name: str | None, arguments: list[str]) -> dict[str, Any]:
    """The network that the file's topology of this name makes; of its only one if there is no name."""
    sys.path[:0] = [str(Path(__file__).parent), str(Path(file).resolve().parent)]
    topologies = runpy.run_path(file).get("topos", {})
    if not topologies:
        raise AskedWrongError("has no dictionary topos, as in topos = {'mytopo': MyTopo}")
    if name is None and len(topologies) > 1:
        names = ", ".join(topologies)
        raise AskedWrongError(f"has the topologies {names}; say which by topo:, or --set topology.topo=NAME")
    chosen = name or next(iter(topologies))
    if chosen not in topologies:
        raise AskedWrongError(f"has no topology {chosen}; it has {', '.join(topologies)}")
    named = dict(text.split("=", 1) for text in arguments if "=" in text)
    listed = [_value(text) for text in arguments if "=" not in text]
    topo = topologies[chosen](*listed, **{name: _value(text) for name, text in named.items()})
    return {
        "nodes": [[node, topo.isSwitch(node), topo.nodeInfo(node)] for node in topo.nodes(sort=False)],
        "links": [info for _, _, info in topo.links(sort=False, withInfo=True)],
    }


def _value(text: str) -> object:
    """An argument as `mn --topo name,3,speed=fast` passes it: a number if it looks like one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


if __name__ == "__main__":
    output = sys.stdout
    sys.stdout = sys.stderr
    try:
        result: dict[str, Any] = describe(sys.argv[1], sys.argv[2] or None, sys.argv[3:])
    except AskedWrongError as error:
        result = {"error": str(error)}
    except Exception as error:  # Whatever the file does is told as its mistake.
        result = {"error": f"{type(error).__name__}: {error}"}
    json.dump(result, output, default=str)
