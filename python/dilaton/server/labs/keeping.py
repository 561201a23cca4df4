"""Labs as the database has them: versions, which only follow each other."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete
from sqlalchemy.orm import Session

from dilaton.server.access.callers import Caller
from dilaton.server.access.secrets import identity
from dilaton.server.database.actions import note, now_ms, tell
from dilaton.server.database.tables import GrantRow, LabRow, VersionRow
from dilaton.server.problems import Problem, missing


@dataclass(frozen=True)
class Written:
    """A lab and one of its versions."""

    lab: LabRow
    version: VersionRow


def make(session: Session, who: Caller, folder: str, name: str, text: str) -> Written:
    """A new lab."""
    lab = LabRow(identity=identity(), folder=folder, name=name, head=0, created_ms=now_ms())
    session.add(lab)
    return _written(session, who, lab, text, "lab.make")


def change(session: Session, who: Caller, identity: str, base: int, text: str, name: str | None) -> Written:
    """A new version of a lab, made of version `base`.

    Raises:
        Problem: that is not the newest any more; the answer has the one that is.
    """
    lab = session.get(LabRow, identity)
    if lab is None:
        raise missing("lab", identity)
    if lab.head != base:
        newest = version(session, lab, lab.head)
        raise Problem(409, "stale", f"version {lab.head} is the newest, not {base}", version=lab.head, text=newest.text)
    lab.name = name or lab.name
    return _written(session, who, lab, text, "lab.change")


def version(session: Session, lab: LabRow, number: int) -> VersionRow:
    """A version of a lab.

    Raises:
        Problem: there is none.
    """
    row = session.get(VersionRow, (lab.identity, number))
    if row is None:
        raise Problem(404, "missing", f"version {number}: the lab has {lab.head}")
    return row


def remove(session: Session, who: Caller, identity: str) -> None:
    """Removes a lab with its versions; runs of it stay, and have its text, for those who see its folder."""
    lab = session.get(LabRow, identity)
    if lab is None:
        raise missing("lab", identity)
    session.execute(delete(GrantRow).where(GrantRow.path.in_((lab.path, lab.runs_path))))
    session.delete(lab)
    note(session, who.name, "lab.delete", lab.path, name=lab.name)
    tell(session, "Lab.Read", lab.path, "lab", lab=identity, version=None)


def _written(session: Session, who: Caller, lab: LabRow, text: str, action: str) -> Written:
    lab.head += 1
    session.flush()
    row = VersionRow(lab=lab.identity, number=lab.head, text=text, person=who.name, created_ms=now_ms())
    session.add(row)
    note(session, who.name, action, lab.path, version=lab.head, name=lab.name)
    tell(session, "Lab.Read", lab.path, "lab", lab=lab.identity, version=lab.head)
    return Written(lab, row)
