"""Passwords."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Makes the table of passwords."""
    op.create_table(
        "passwords",
        sa.Column("person", sa.String(64), sa.ForeignKey("people.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("hash", sa.String(255), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
    )
