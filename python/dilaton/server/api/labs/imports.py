"""Files of other programs, as the labs that they become."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, needs
from dilaton.server.api.labs.labs import TEXT_CHARACTERS_MAX, Text
from dilaton.server.api.session import Asked
from dilaton.server.problems import Problem

ENDPOINTS = Endpoints()

FileName = Annotated[str, Field(max_length=255, pattern=r"^[^\x00-\x1f\x7f/]*[^\x00-\x1f\x7f/.][^\x00-\x1f\x7f/]*$")]
"""Of a file in no directory: neither . nor .., and nothing that a terminal would obey."""


class ToImport(Asked):
    """A file of another program."""

    name: FileName
    """What it is called, which tells what it is."""
    text: Text
    topo: Annotated[str, Field(max_length=100)] = ""
    """Which of the topologies of a file of Mininet; empty: its only one."""


class Imported(BaseModel):
    """The lab that a file becomes. Nothing is kept of it."""

    kind: str
    """What it was taken for, as `topology:` names it; `lab`: it is one of our own, and stays as it is."""
    text: str
    left_out: list[str]
    """What of the file the lab does not have."""
    positions: dict[str, tuple[float, float]]
    """Where the file has its nodes, as a layout has them; may leave nodes out."""
    places: dict[str, tuple[float, float]]
    """Where on earth it has them, likewise."""


@ENDPOINTS.add("POST", f"{PREFIX}/import", needs(("Lab.Write", "folder")))
async def import_file(asked: ToImport, server: Server) -> Imported:
    """Reads a file of another program, and writes its network as a lab, which needs that file no more."""
    found = Imported.model_validate(await server.checker.imported(asked.name, asked.text, asked.topo))
    if len(found.text) > TEXT_CHARACTERS_MAX:
        most = f"{TEXT_CHARACTERS_MAX} are the most that a lab may have"
        raise Problem(422, "argument", f"{asked.name}: its lab would have {len(found.text)} characters; {most}")
    return found
