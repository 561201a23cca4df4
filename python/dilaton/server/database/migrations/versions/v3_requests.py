"""What runs need, who may have to approve them, and by which key they were asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Gives runs their needs."""
    for column in (
        sa.Column("needs", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("priority", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("is_approved", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("key", sa.String(64)),
    ):
        op.add_column("runs", column)
    op.create_index("ix_runs_key", "runs", ["person", "key"], unique=True)
