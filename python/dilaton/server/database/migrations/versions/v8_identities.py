"""Who somebody is for a provider by which people log in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(255), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("person", sa.String(64), sa.ForeignKey("people.name", ondelete="CASCADE"), nullable=False),
        sa.Column("groups", sa.JSON(), nullable=False),
    )
    op.create_index("ix_identities_person", "identities", ["person"])
