"""`topohub:`: networks of the package topohub by name, such as `topozoo/Abilene` and `sndlib/polska`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import networkx

from dilaton.lab.importers._attributed import AttributedGraph
from dilaton.lab.importers.json import node_link_graph


class Source(AttributedGraph):
    """A network of topohub, which is installed on its own, for the Python that runs Dilaton."""

    topohub: str

    def graph(self, directory: Path) -> networkx.Graph[Any]:
        """The graph of this name."""
        try:
            topohub: Any = importlib.import_module("topohub")
        except ImportError as error:
            install = f"{sys.executable} -m pip install topohub"
            raise ValueError(f"the package topohub is not installed; {install}") from error
        try:
            data = topohub.get(self.topohub)
        except (KeyError, OSError) as error:
            raise ValueError(
                f"{self.topohub}: topohub has no such network; write for example topozoo/Abilene"
            ) from error
        return node_link_graph(data, self.topohub)
