"""Quotas that were set by the API."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "10"
down_revision = "9"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "quotas",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("quota", sa.JSON(), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
    )
