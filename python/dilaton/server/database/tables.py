"""The tables. Instants are milliseconds since the epoch, UTC; identities of labs and runs are random."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Float, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

Number = BigInteger().with_variant(Integer, "sqlite")
"""The type of numbers that the database gives to rows itself. SQLite does so only for what is called INTEGER."""


class Table(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map: ClassVar = {dict[str, Any]: JSON, list[str]: JSON, list[dict[str, Any]]: JSON, int: BigInteger}


class Person(Table):
    """Somebody who may log in."""

    __tablename__ = "people"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    is_active: Mapped[bool]
    created_ms: Mapped[int]
    uid: Mapped[int | None] = mapped_column(index=True, unique=True)
    """The user id of their runs; see `runs.user_ids`."""


class PasswordRow(Table):
    """The password of a person, as argon2 keeps it."""

    __tablename__ = "passwords"
    person: Mapped[str] = mapped_column(ForeignKey("people.name", ondelete="CASCADE"), primary_key=True)
    hash: Mapped[str] = mapped_column(String(255))
    changed_ms: Mapped[int]


class IdentityRow(Table):
    """Who a person is for a provider by which they log in, and the groups that it said they are in, then."""

    __tablename__ = "identities"
    issuer: Mapped[str] = mapped_column(String(255), primary_key=True)
    subject: Mapped[str] = mapped_column(String(255), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("people.name", ondelete="CASCADE"), index=True)
    groups: Mapped[list[str]]


class GrantRow(Table):
    """A role of a person on a path; see `access.rules.Grant`."""

    __tablename__ = "grants"
    __table_args__ = (UniqueConstraint("person", "path", "role"),)
    number: Mapped[int] = mapped_column(Number, primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("people.name", ondelete="CASCADE"), index=True)
    path: Mapped[str] = mapped_column(String(255))
    role: Mapped[str] = mapped_column(String(64))
    denies: Mapped[bool]
    propagates: Mapped[bool]


class SessionRow(Table):
    """A login. Of its secret only the digest is kept."""

    __tablename__ = "sessions"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    person: Mapped[str] = mapped_column(ForeignKey("people.name", ondelete="CASCADE"), index=True)
    created_ms: Mapped[int]
    seen_ms: Mapped[int]


class TokenRow(Table):
    """A token of a person's, for programs. Of its secret only the digest is kept."""

    __tablename__ = "tokens"
    identity: Mapped[str] = mapped_column(String(16), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person: Mapped[str] = mapped_column(ForeignKey("people.name", ondelete="CASCADE"), index=True)
    label: Mapped[str] = mapped_column(String(100))
    scopes: Mapped[list[str]]
    created_ms: Mapped[int]
    expires_ms: Mapped[int]


class LabRow(Table):
    """A lab; `head` is the number of its newest version."""

    __tablename__ = "labs"
    identity: Mapped[str] = mapped_column(String(16), primary_key=True)
    folder: Mapped[str] = mapped_column(String(200), index=True)
    name: Mapped[str] = mapped_column(String(100))
    head: Mapped[int]
    created_ms: Mapped[int]

    @property
    def path(self) -> str:
        """The path by which grants name it."""
        return f"{self.folder}/labs/{self.identity}"

    @property
    def runs_path(self) -> str:
        """The path of its runs in its own folder."""
        return f"{self.folder}/runs/{self.identity}"


class VersionRow(Table):
    """A version of a lab: its text, which never changes."""

    __tablename__ = "versions"
    lab: Mapped[str] = mapped_column(ForeignKey("labs.identity", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(Text)
    person: Mapped[str] = mapped_column(String(64))
    created_ms: Mapped[int]


class TemplateRow(Table):
    """A lab that others start from."""

    __tablename__ = "templates"
    __table_args__ = (UniqueConstraint("folder", "name"),)
    identity: Mapped[str] = mapped_column(String(16), primary_key=True)
    folder: Mapped[str] = mapped_column(String(200), index=True)
    name: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    """Of its lab."""
    description: Mapped[str] = mapped_column(Text)
    """What `template.yaml` would say; empty: nothing."""
    parameters: Mapped[list[dict[str, Any]]]
    """What that names, as a worker has read it."""
    person: Mapped[str] = mapped_column(String(64))
    """Who has written it last."""
    changed_ms: Mapped[int]

    @property
    def path(self) -> str:
        """The path by which grants name it."""
        return f"{self.folder}/templates/{self.identity}"


class ReservationRow(Table):
    """Places that are kept for the runs of a folder; see `runs.queue.Reserved`."""

    __tablename__ = "reservations"
    identity: Mapped[str] = mapped_column(String(16), primary_key=True)
    folder: Mapped[str] = mapped_column(String(200))
    places: Mapped[int]
    from_ms: Mapped[int]
    until_ms: Mapped[int] = mapped_column(index=True)
    person: Mapped[str] = mapped_column(String(64))
    """Who has reserved them."""
    created_ms: Mapped[int]


class QuotaRow(Table):
    """What somebody set, by the API, that a person, a group or everyone may use; see `runs.queue.Quota`."""

    __tablename__ = "quotas"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    quota: Mapped[dict[str, Any]]
    person: Mapped[str] = mapped_column(String(64))
    """Who has set it."""
    changed_ms: Mapped[int]


class SweepRow(Table):
    """Runs of one lab with other values of its fields, asked for together."""

    __tablename__ = "sweeps"
    __table_args__ = (UniqueConstraint("person", "key"),)
    number: Mapped[int] = mapped_column(Number, primary_key=True)
    identity: Mapped[str] = mapped_column(String(16), unique=True)
    folder: Mapped[str] = mapped_column(String(200), index=True)
    person: Mapped[str] = mapped_column(String(64))
    lab: Mapped[str | None] = mapped_column(ForeignKey("labs.identity", ondelete="SET NULL"), index=True)
    version: Mapped[int]
    name: Mapped[str] = mapped_column(String(100))
    fields: Mapped[list[dict[str, Any]]]
    """Each `path` with its `values`, in their order."""
    repeat: Mapped[int]
    key: Mapped[str | None] = mapped_column(String(64))
    created_ms: Mapped[int]

    @property
    def path(self) -> str:
        """The path by which grants name it: beside the runs of its lab."""
        return path_of_run(self)


class RunRow(Table):
    """A run: what was asked for, and how far it is known to have come."""

    __tablename__ = "runs"
    number: Mapped[int] = mapped_column(Number, primary_key=True)
    """Numbers go up in the order in which runs were asked for."""
    identity: Mapped[str] = mapped_column(String(16), unique=True)
    folder: Mapped[str] = mapped_column(String(200))
    person: Mapped[str] = mapped_column(String(64))
    lab: Mapped[str | None] = mapped_column(ForeignKey("labs.identity", ondelete="SET NULL"), index=True)
    version: Mapped[int]
    name: Mapped[str] = mapped_column(String(100))
    text: Mapped[str] = mapped_column(Text)
    """The text of the lab, as it was then."""
    asked: Mapped[dict[str, Any]]
    """What counts instead of what the lab says."""
    state: Mapped[str] = mapped_column(String(16), index=True)
    reason: Mapped[str | None] = mapped_column(Text)
    verdict: Mapped[str | None] = mapped_column(String(16))
    virtual_s: Mapped[float | None] = mapped_column(Float)
    created_ms: Mapped[int]
    ended_ms: Mapped[int | None]
    needs: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """As in `runs.queue.Needs`."""
    priority: Mapped[int] = mapped_column(default=0)
    is_approved: Mapped[bool] = mapped_column(default=False)
    started_ms: Mapped[int | None]
    """When it left the queue."""
    key: Mapped[str | None] = mapped_column(String(64))
    """The name by which its person asked for it, so that asking again is no second run."""
    sweep: Mapped[str | None] = mapped_column(String(16), index=True)
    """The sweep that it belongs to."""
    point: Mapped[int | None]
    """Which run of that it is, from 0."""
    __table_args__ = (
        Index("ix_runs_key", "person", "key", unique=True),
        Index("ix_runs_folder_number", "folder", "number"),
    )

    @property
    def path(self) -> str:
        """The path by which grants name it: with its lab, so that one grant is about all runs of that."""
        return path_of_run(self)


def path_of_run(row: RunRow | SweepRow) -> str:
    """The path of a run, or of a sweep, in its folder."""
    return f"{row.folder}/runs/{row.lab}/{row.identity}" if row.lab else f"{row.folder}/runs/{row.identity}"


class EventRow(Table):
    """Something that happened, for whoever may see the object at its path."""

    __tablename__ = "events"
    number: Mapped[int] = mapped_column(Number, primary_key=True)
    at_ms: Mapped[int]
    permission: Mapped[str] = mapped_column(String(32))
    """Which it takes to be told."""
    path: Mapped[str] = mapped_column(String(255))
    kind: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]]
    __table_args__ = ({"sqlite_autoincrement": True},)


class SavedBeforeRow(Table):
    """Whose a saved lab is of an older version, which did not say so; another one of that name says it itself."""

    __tablename__ = "saved_before"
    folder: Mapped[str] = mapped_column(String(255), primary_key=True)
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    person: Mapped[str] = mapped_column(String(64), index=True)


class AuditRow(Table):
    """Who did what."""

    __tablename__ = "audit"
    number: Mapped[int] = mapped_column(Number, primary_key=True)
    at_ms: Mapped[int]
    person: Mapped[str] = mapped_column(String(64), index=True)
    """Empty: nobody who is known, or the server itself."""
    action: Mapped[str] = mapped_column(String(32))
    path: Mapped[str] = mapped_column(String(255))
    data: Mapped[dict[str, Any]]
    __table_args__ = ({"sqlite_autoincrement": True},)
