"""Templates: labs that others start from, with what may be chosen."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from dilaton.server.access.callers import Caller
from dilaton.server.access.secrets import identity
from dilaton.server.api.endpoints import PREFIX, Endpoints, Folder, Server, TheTemplate, Who, needs
from dilaton.server.api.labs.labs import Name, Text, WholeLab, sees_host, whole
from dilaton.server.api.lists import ByIdentity
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import TemplateRow
from dilaton.server.labs import keeping
from dilaton.server.problems import Problem, missing
from dilaton.server.state import State
from dilaton.templates.store import NAME

ENDPOINTS = Endpoints()

TEMPLATE = f"{PREFIX}/templates/{{template}}"

TemplateName = Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
Description = Annotated[str, Field(max_length=100_000)]

CHOSEN_MAX = 200


class Parameter(BaseModel):
    """What may be chosen of a template."""

    name: str
    fields: list[str]
    """Of the lab, as `links.0.rate`; all of them get the value, which their rules hold for."""
    about: str
    default: str
    """What the template's lab says there."""


class Template(BaseModel):
    """A lab that others start from."""

    template: str
    """Its identity."""
    name: str
    folder: str
    title: str
    parameters: list[Parameter]
    person: str
    """Who has written it last."""
    changed_ms: int

    @classmethod
    def of(cls, row: TemplateRow) -> Template:
        """As the database has it."""
        fields = {name: getattr(row, name) for name in cls.model_fields if name not in ("template", "parameters")}
        return cls(template=row.identity, parameters=[Parameter(**one) for one in row.parameters], **fields)


class WholeTemplate(Template):
    """A template with its lab."""

    text: str
    """Of the lab."""
    description: str
    """What says which fields may be chosen, as a `template.yaml` does; empty: none is named."""


class ChangedTemplate(Asked):
    """What a template is from now on."""

    text: Text
    """Of its lab, which has no mistakes."""
    description: Description = ""
    """Title and parameters, as a `template.yaml` has them."""


class NewTemplate(ChangedTemplate):
    """A lab that others are to start from."""

    name: TemplateName


class LabOfTemplate(Asked):
    """A lab that begins with a template."""

    name: Name
    chosen: Annotated[dict[str, Annotated[str, Field(max_length=10_000)]], Field(max_length=CHOSEN_MAX)] = Field(
        default={}
    )
    """Values of parameters by their names, or of other fields of the lab by their paths, as texts of YAML."""


@ENDPOINTS.add("GET", f"{PREFIX}/templates", needs(("Template.Read", "each")))
def list_templates(listed: ByIdentity) -> list[Template]:
    """The templates that one may see, by their identities; those after the identity `skip_to`, where it is given."""
    return [Template.of(row) for row in listed.of(TemplateRow, "Template.Read")]


@ENDPOINTS.add("POST", f"{PREFIX}/templates", needs(("Template.Write", "folder")), status_code=201)
async def make_template(asked: NewTemplate, who: Who, folder: Folder, server: Server) -> WholeTemplate:
    """Keeps a lab as a template, in a folder, one's own unless the query names another."""
    said = await _said(server, who, asked)
    return await asyncio.to_thread(_made, server, who, folder, asked, said)


@ENDPOINTS.add("GET", TEMPLATE, needs(("Template.Read", "template")))
def show_template(template: TheTemplate) -> WholeTemplate:
    """A template with its lab."""
    return _whole(template)


@ENDPOINTS.add("PUT", TEMPLATE, needs(("Template.Write", "template")))
async def change_template(asked: ChangedTemplate, template: TheTemplate, who: Who, server: Server) -> WholeTemplate:
    """Another lab for a template, or other parameters; labs that have begun with it stay as they are."""
    said = await _said(server, who, asked)
    return await asyncio.to_thread(_changed, server, who, template.identity, asked, said)


@ENDPOINTS.add("DELETE", TEMPLATE, needs(("Template.Delete", "template")), status_code=204)
def delete_template(template: TheTemplate, who: Who, server: Server) -> None:
    """Removes a template; labs that have begun with it stay."""
    with server.store.writing() as session:
        row = _found(session, template.identity)
        session.delete(row)
        note(session, who.name, "template.delete", row.path, name=row.name)
        tell(session, "Template.Read", row.path, "template", template=row.identity, changed_ms=None)


@ENDPOINTS.add(
    "POST", f"{TEMPLATE}/labs", needs(("Template.Read", "template"), ("Lab.Write", "folder")), status_code=201
)
async def make_lab_of_template(
    asked: LabOfTemplate, template: TheTemplate, who: Who, folder: Folder, server: Server
) -> WholeLab:
    """Keeps a lab that begins with a template, in a folder, one's own unless the query names another.

    With a value that a field does not take there is no lab, and the problem names the field.
    """
    wanted = {"text": template.text, "description": template.description} | asked.model_dump()
    said = await server.checker.template(wanted, sees_host=sees_host(who))
    return await asyncio.to_thread(_begun, server, who, folder, asked.name, said["text"])


def _begun(server: State, who: Caller, folder: str, name: str, text: str) -> WholeLab:
    with server.store.writing() as session:
        return whole(who, keeping.make(session, who, folder, name, text))


async def _said(server: State, who: Caller, asked: ChangedTemplate) -> dict[str, Any]:
    """What a template says of itself."""
    wanted = {"text": asked.text, "description": asked.description}
    return await server.checker.template(wanted, sees_host=sees_host(who))


def _made(server: State, who: Caller, folder: str, asked: NewTemplate, said: dict[str, Any]) -> WholeTemplate:
    with server.store.writing() as session:
        same = select(TemplateRow.identity).where(TemplateRow.folder == folder, TemplateRow.name == asked.name)
        if taken := session.scalar(same):
            raise Problem(409, "taken", f"{asked.name}: there is a template of that name", field="name", template=taken)
        row = TemplateRow(identity=identity(), folder=folder, name=asked.name)
        session.add(row)
        return _written(session, who, row, asked, said, "template.make")


def _changed(server: State, who: Caller, known: str, asked: ChangedTemplate, said: dict[str, Any]) -> WholeTemplate:
    with server.store.writing() as session:
        return _written(session, who, _found(session, known), asked, said, "template.change")


def _written(
    session: Session, who: Caller, row: TemplateRow, asked: ChangedTemplate, said: dict[str, Any], action: str
) -> WholeTemplate:
    row.text, row.description = asked.text, asked.description
    row.title, row.parameters = said["title"], said["parameters"]
    row.person, row.changed_ms = who.name, now_ms()
    session.flush()
    note(session, who.name, action, row.path, name=row.name)
    tell(session, "Template.Read", row.path, "template", template=row.identity, changed_ms=row.changed_ms)
    return _whole(row)


def _found(session: Session, known: str) -> TemplateRow:
    row = session.get(TemplateRow, known)
    if row is None:
        raise missing("template", known)
    return row


def _whole(row: TemplateRow) -> WholeTemplate:
    return WholeTemplate(**Template.of(row).model_dump(), text=row.text, description=row.description)
