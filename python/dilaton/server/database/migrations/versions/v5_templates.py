"""Labs that others start from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """Makes the table of templates."""
    op.create_table(
        "templates",
        sa.Column("identity", sa.String(16), primary_key=True),
        sa.Column("folder", sa.String(200), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("folder", "name"),
    )
    op.create_index("ix_templates_folder", "templates", ["folder"])
