"""Sweeps, and which runs are theirs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"


def upgrade() -> None:
    """Makes the table of sweeps, and says of runs whether they are of one."""
    op.create_table(
        "sweeps",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("identity", sa.String(16), nullable=False, unique=True),
        sa.Column("folder", sa.String(200), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("lab", sa.String(16), sa.ForeignKey("labs.identity", ondelete="SET NULL")),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("repeat", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(64)),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("person", "key"),
    )
    for column in ("folder", "lab"):
        op.create_index(f"ix_sweeps_{column}", "sweeps", [column])
    op.add_column("runs", sa.Column("sweep", sa.String(16)))
    op.add_column("runs", sa.Column("point", sa.BigInteger()))
    op.create_index("ix_runs_sweep", "runs", ["sweep"])
