"""Reads files of other programs as labs, in a process and a jail of its own: `python -m dilaton.server.labs.importing`,
JSON in, JSON out.

A file is what somebody has dropped onto the page: XML, YAML, GML, or a program of Mininet's, which is run in a further
jail. Beside it there is nothing, so that what it names of its own machine is not there.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from dilaton.lab.imported.file import imported
from dilaton.server.labs.layouts import Positions

STEP = 110
"""Between neighbours on the canvas."""


def read(name: str, text: str, topo: str) -> dict[str, Any]:
    """What is to be said about a file that is called so and has this text."""
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        # Without the directory, which whoever reads a mistake does not know.
        path = Path(name)
        try:
            path.write_text(text, newline="")
            found = imported(path, {"topo": topo} if topo and path.suffix == ".py" else {})
        except OSError as error:
            return {"wrong": f"{name}: {error.strerror}", "field": "name"}
        except ValueError as error:
            return {"wrong": str(error), "field": "text"}
    return {
        "kind": found.kind,
        "text": found.text,
        "left_out": found.left_out,
        "positions": on_canvas(found.positions),
        "places": found.places,
    }


def on_canvas(positions: Positions) -> Positions:
    """Positions with y up, in any unit, as the page has them: n nodes are about as far as the root of n steps."""
    if len(positions) < 2:
        return {}
    left, top = min(x for x, _ in positions.values()), max(y for _, y in positions.values())
    extent = max(max(x - left, top - y) for x, y in positions.values())
    if not 0 < extent < math.inf:
        return {}
    scale = 2.5 * STEP * math.sqrt(len(positions)) / extent
    return {name: (round((x - left) * scale), round((top - y) * scale)) for name, (x, y) in positions.items()}


if __name__ == "__main__":
    json.dump(read(**json.load(sys.stdin)), sys.stdout)
