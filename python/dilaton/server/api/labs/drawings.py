"""What a drawing of a lab takes: where its nodes are, and labs to start from."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from dilaton.host.files import EXAMPLES
from dilaton.lab.imported.writing import written_out
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, Endpoints, Server, TheLab, needs
from dilaton.server.api.session import Asked
from dilaton.server.labs import layouts
from dilaton.templates.single import single

ENDPOINTS = Endpoints()

NODES_MAX = 20_000

LAB, README = "lab.yaml", "README.md"

Coordinate = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Place = tuple[
    Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)],
    Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)],
]
Node = Annotated[str, Field(min_length=1, max_length=255)]


class Positions(Asked):
    """Where the nodes of a lab are drawn; those that are not named are put where there is room."""

    positions: Annotated[dict[Node, tuple[Coordinate, Coordinate]], Field(max_length=NODES_MAX)]
    """x to the right and y downwards, by the names of the nodes."""
    places: Annotated[dict[Node, Place], Field(max_length=NODES_MAX, default_factory=dict)]
    """Where on earth nodes are, of a network that says so: longitude and latitude, in degrees."""


class Example(BaseModel):
    """A lab to start from."""

    name: str
    title: str
    """What it shows."""
    text: str
    places: dict[str, Place]
    """Where on earth nodes are, of a network that says so: longitude and latitude, in degrees."""


@ENDPOINTS.add("GET", f"{PREFIX}/labs/{{lab}}/layout", needs(("Lab.Read", "lab")))
def show_layout(lab: TheLab, server: Server) -> Positions:
    """Where the nodes of a lab are drawn."""
    layout = layouts.read(server.settings.layouts, lab.identity)
    return Positions(positions=dict(layout.positions), places=dict(layout.places))


@ENDPOINTS.add("PUT", f"{PREFIX}/labs/{{lab}}/layout", needs(("Lab.Write", "lab")), status_code=204)
def change_layout(asked: Positions, lab: TheLab, server: Server) -> None:
    """Keeps where the nodes of a lab are drawn, all of them; no version of the lab comes of it."""
    layouts.write(server.settings.layouts, lab.identity, layouts.Layout(asked.positions, asked.places))


@ENDPOINTS.add("GET", f"{PREFIX}/examples", LOGGED_IN)
def list_examples(name: Annotated[str, Query(max_length=64)] = "") -> list[Example]:
    """Labs to start from, all or the one of a name: the examples, each as one text with the files of its nodes.

    A network that is read from a file is in its text, node by node.
    """
    found = []
    for directory in sorted(EXAMPLES.iterdir()):
        if (name and directory.name != name) or not (directory / LAB).is_file():
            continue
        others = [path for path in sorted(directory.iterdir()) if path.name not in (LAB, README)]
        beside = {path.name: path.read_text() for path in others if path.suffix != ".svg" and path.is_file()}
        lab = (directory / LAB).read_text()
        text, places = single(lab, beside), {}
        if text is None:
            text, network = written_out(lab, directory)
            places = dict(network.places)
        title = (directory / README).read_text().partition("\n")[0].lstrip("# ")
        found.append(Example(name=directory.name, title=title, text=text, places=places))
    return found
