"""Labs and their versions, and what is to be said about a text before it is one."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field
from sqlalchemy import select

from dilaton.lab.errors import Problem as LabProblem
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, Endpoints, Folder, Server, TheLab, Who, needs
from dilaton.server.api.lists import ByIdentity
from dilaton.server.api.session import Asked
from dilaton.server.database.tables import LabRow, VersionRow
from dilaton.server.labs import keeping, layouts
from dilaton.server.labs.drawing import Drawing
from dilaton.service.request import Overrides

ENDPOINTS = Endpoints()

TEXT_CHARACTERS_MAX = 1_000_000

ON_LABS = ("Lab.Write", "Lab.Delete", "Lab.Share")
"""What somebody who sees a lab may do with it, or not: so that nothing is offered that would be refused."""

Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(max_length=TEXT_CHARACTERS_MAX)]


class Lab(BaseModel):
    """A lab."""

    lab: str
    """Its identity."""
    name: str
    folder: str
    path: str
    """By which grants name it."""
    version: int
    """The newest."""
    created_ms: int
    permissions: list[str]
    """What who asks may do with it, of `ON_LABS`."""

    @classmethod
    def of(cls, row: LabRow, who: Caller) -> Lab:
        """As the database has it, for somebody who may see it."""
        fields = {name: getattr(row, name) for name in ("name", "folder", "path", "created_ms")}
        permissions = [permission for permission in ON_LABS if who.access.may(permission, row.path)]
        return cls(lab=row.identity, version=row.head, permissions=permissions, **fields)


class Version(BaseModel):
    """A version of a lab, without its text."""

    version: int
    person: str
    """Who has written it."""
    created_ms: int

    @classmethod
    def of(cls, row: VersionRow) -> Version:
        """As the database has it."""
        return cls(version=row.number, person=row.person, created_ms=row.created_ms)


class WholeLab(Lab):
    """A lab with the text of a version."""

    text: str
    shown: Version
    """The version of this text."""


class NewLab(Asked):
    """A lab that is to be kept. It need not be right yet."""

    name: Name
    text: Text


class ChangedLab(Asked):
    """A new version of a lab."""

    base: int
    """The version that was changed; another one that came meanwhile is not overwritten."""
    text: Text
    name: Name | None = None


class Told(BaseModel):
    """A mistake in a lab, or what is likely to be one. Lines and columns count from 1; 0: all of it."""

    line: int
    column: int
    field: str
    message: str

    @classmethod
    def of(cls, problem: LabProblem) -> Told:
        """As the lab's reader has found it."""
        return cls(line=problem.line, column=problem.column, field=problem.field, message=problem.message)


class ToCheck(Asked):
    """A text that is to be checked."""

    text: Text
    overrides: Overrides = Overrides()
    """What counts instead of what it says."""
    is_drawn: bool = False
    """Whether only its drawing is wanted, which of a large lab is far less than its plan."""


class LabChecked(BaseModel):
    """A lab that can be run."""

    name: str
    doubts: list[Told]
    drawing: Drawing
    plan: dict[str, Any] | None
    """As `dilaton plan` prints it; null where `is_drawn`."""


def sees_host(who: Caller) -> bool:
    """Whether somebody's labs may name files of the server's machine."""
    return who.access.may("Host.Files", "/")


@ENDPOINTS.add("GET", f"{PREFIX}/labs", needs(("Lab.Read", "each")))
def list_labs(listed: ByIdentity, who: Who) -> list[Lab]:
    """The labs that one may see, by their identities; those after the identity `skip_to`, where it is given."""
    return [Lab.of(row, who) for row in listed.of(LabRow, "Lab.Read")]


@ENDPOINTS.add("POST", f"{PREFIX}/labs", needs(("Lab.Write", "folder")), status_code=201)
def make_lab(asked: NewLab, who: Who, folder: Folder, server: Server) -> WholeLab:
    """Keeps a lab in a folder, one's own unless the query names another."""
    with server.store.writing() as session:
        return whole(who, keeping.make(session, who, folder, asked.name, asked.text))


@ENDPOINTS.add("GET", f"{PREFIX}/labs/{{lab}}", needs(("Lab.Read", "lab")))
def show_lab(lab: TheLab, who: Who, server: Server, version: int | None = None) -> WholeLab:
    """A lab with its newest text, or that of a version."""
    with server.store.reading() as session:
        return whole(who, keeping.Written(lab, keeping.version(session, lab, version or lab.head)))


@ENDPOINTS.add("GET", f"{PREFIX}/labs/{{lab}}/versions", needs(("Lab.Read", "lab")))
def list_versions(lab: TheLab, server: Server) -> list[Version]:
    """All versions of a lab."""
    with server.store.reading() as session:
        rows = session.scalars(select(VersionRow).where(VersionRow.lab == lab.identity).order_by(VersionRow.number))
        return [Version.of(row) for row in rows]


@ENDPOINTS.add("PUT", f"{PREFIX}/labs/{{lab}}", needs(("Lab.Write", "lab")))
def change_lab(asked: ChangedLab, lab: TheLab, who: Who, server: Server) -> WholeLab:
    """A new version of a lab."""
    with server.store.writing() as session:
        return whole(who, keeping.change(session, who, lab.identity, asked.base, asked.text, asked.name))


@ENDPOINTS.add("DELETE", f"{PREFIX}/labs/{{lab}}", needs(("Lab.Delete", "lab")), status_code=204)
def delete_lab(lab: TheLab, who: Who, server: Server) -> None:
    """Removes a lab with all its versions."""
    with server.store.writing() as session:
        keeping.remove(session, who, lab.identity)
    layouts.remove(server.settings.layouts, lab.identity)


@ENDPOINTS.add("POST", f"{PREFIX}/check", LOGGED_IN)
async def check_text(asked: ToCheck, who: Who, server: Server) -> LabChecked:
    """Reads a text as a lab, without keeping it; its mistakes have their lines and columns."""
    checked = await server.checker.check(asked.text, asked.overrides, sees_host=sees_host(who), is_drawn=asked.is_drawn)
    doubts = [Told.of(doubt) for doubt in checked.doubts]
    return LabChecked(name=checked.name, doubts=doubts, drawing=checked.drawing, plan=checked.plan)


def whole(who: Caller, written: keeping.Written) -> WholeLab:
    """A lab as somebody is answered."""
    lab = Lab.of(written.lab, who)
    return WholeLab(**lab.model_dump(), text=written.version.text, shown=Version.of(written.version))
