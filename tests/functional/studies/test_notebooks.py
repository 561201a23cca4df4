"""The notebooks of the documents run from top to bottom, as they do for people: what waits is awaited, lines show how far a run
is while it goes on, and the last cells check what came of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, environment, show

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))

PATIENCE_HOST_S = 280
"""For one cell of a notebook, on a machine that does much else."""

EXECUTE = """
import sys
from pathlib import Path
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
try:
    NotebookClient(notebook, timeout=int(sys.argv[3]), resources={"metadata": {"path": str(Path(sys.argv[2]).parent)}}).execute()
finally:
    nbformat.write(notebook, sys.argv[2])
"""
"""In a process of its own, as a notebook's client has an event loop, threads and warnings of its own."""


def texts(notebook: dict[str, Any]) -> Iterator[str]:
    """What its cells have shown as text, as it stands in the end."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            yield "".join(output.get("data", {}).get("text/plain", output.get("text", "")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: ./dev setup does it")
    done_at = tmp_path / path.name
    command = [sys.executable, "-c", EXECUTE, str(path), str(done_at), str(PATIENCE_HOST_S)]
    variables = environment() | {
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "jupyter"),
    }
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    show(command, done)
    assert done.returncode == 0
    notebook = json.loads(done_at.read_text())
    shown = list(texts(notebook))
    expected = {
        "congestion-control": ["cubic: finished", "bbr: finished"],
        "service-under-faults": ["3.000 s: still began", "9.000 s: still undone"],
    }[path.stem]
    assert set(expected) <= set(shown)
    pictures = [
        out for cell in notebook["cells"] for out in cell.get("outputs", []) if "image/png" in out.get("data", {})
    ]
    assert pictures


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_is_before_it_runs(path: Path) -> None:
    """What it has shown on one machine is not what it says to readers, and would differ with each commit."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in cells)
