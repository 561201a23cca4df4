"""What is made of the text of a lab: its network for other programs, its images by digest, itself on few guests.

Each reads the text that it is given and keeps nothing, so who may have a text checked may have it made into these.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, Endpoints, Server, Who
from dilaton.server.api.labs.labs import Text, sees_host
from dilaton.server.api.session import Asked
from dilaton.service.request import Overrides

ENDPOINTS = Endpoints()

MACHINES_MAX = 100_000


class ToExport(Asked):
    """A lab whose network another program is to have."""

    text: Text
    overrides: Overrides = Overrides()
    """What counts instead of what it says."""
    form: Literal["containerlab", "dot", "graphml", "mininet", "xml"]


class Exported(BaseModel):
    """A network in a format of another program."""

    text: str
    left_out: list[str]
    """What of the lab the format has no place for."""


class ToLock(Asked):
    """A lab whose images are to mean the same next year."""

    text: Text


class Locked(BaseModel):
    """Which images the names in a lab mean."""

    images: dict[str, str]
    """Digests by complete names, as `dilaton.lock` has them."""


class ToScale(Asked):
    """A lab whose machines are to be on few guests."""

    text: Text
    onto: Annotated[int, Field(ge=1, le=MACHINES_MAX)]
    """How many guests."""
    machines: Annotated[int, Field(ge=1, le=MACHINES_MAX)] | None = None
    """How many hosts the lab must have; null: as many as it has."""
    confirm: bool = False
    """Whether the scaled lab says that its runs are to be confirmed."""


class ScaledGuest(BaseModel):
    """A guest of a lab that was scaled."""

    guest: str
    machines: list[str]
    cpu: float
    """The CPUs of its machines in sum, in cores of the host."""
    memory_bytes: int
    """What its machines may take in sum, as far as they say it."""


class Scaled(BaseModel):
    """A lab on few guests. A run of it with `stop_after` set is the pilot that shows what it costs."""

    text: str
    """The scaled lab."""
    tdf: int
    guests: list[ScaledGuest]
    machines_per_guest_max: int
    """How many machines like these a guest can hold."""
    bound: str
    """What bounds that."""
    not_scaled: list[str]
    """What it does not preserve, a sentence each."""
    host_s_per_virtual_s_max: float
    """Host seconds of a virtual second in which all CPUs are busy."""


@ENDPOINTS.add("POST", f"{PREFIX}/export", LOGGED_IN)
async def export_text(asked: ToExport, who: Who, server: Server) -> Exported:
    """Writes the network of a lab for containerlab, Mininet, Graphviz or a graph library."""
    return Exported.model_validate(await server.checker.derived("export", asked, sees_host=sees_host(who)))


@ENDPOINTS.add("POST", f"{PREFIX}/lock", LOGGED_IN)
async def lock_text(asked: ToLock, who: Who, server: Server) -> Locked:
    """Says which images of the server's store the names in a lab mean, by digest, but for those named so."""
    return Locked.model_validate(await server.checker.derived("lock", asked, sees_host=sees_host(who)))


@ENDPOINTS.add("POST", f"{PREFIX}/scale", LOGGED_IN)
async def scale_text(asked: ToScale, who: Who, server: Server) -> Scaled:
    """Puts the machines of a lab onto few guests: its TDF, what each guest holds, and a lab that can run."""
    return Scaled.model_validate(await server.checker.derived("scale", asked, sees_host=sees_host(who)))
