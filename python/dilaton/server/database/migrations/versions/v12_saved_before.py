"""Whose the saved labs are that did not say so: who saved last by that name, as the audit log has it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "12"
down_revision = "11"


def upgrade() -> None:
    """Makes the table, of what the log still has."""
    made = op.create_table(
        "saved_before",
        sa.Column("folder", sa.String(255), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("person", sa.String(64), nullable=False),
    )
    op.create_index("ix_saved_before_person", "saved_before", ["person"])
    columns: tuple[sa.ColumnClause[object], ...] = (
        sa.column("number"),
        sa.column("person"),
        sa.column("action"),
        sa.column("data", sa.JSON),
    )
    audit = sa.table("audit", *columns)
    saves = sa.select(audit.c.person, audit.c.data).where(audit.c.action == "run.save").order_by(audit.c.number)
    connection = op.get_bind()
    last = {(data["folder"], data["name"]): person for person, data in connection.execute(saves)}
    rows = [{"folder": folder, "name": name, "person": person} for (folder, name), person in last.items()]
    if rows:
        connection.execute(made.insert(), rows)
