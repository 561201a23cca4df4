"""Places that are kept for a class."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "reservations",
        sa.Column("identity", sa.String(16), primary_key=True),
        sa.Column("folder", sa.String(200), nullable=False),
        sa.Column("places", sa.BigInteger(), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_reservations_until_ms", "reservations", ["until_ms"])
