"""A user id for the runs of each person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "11"
down_revision = "10"


def upgrade() -> None:
    """Makes room for it; it is given at the first run."""
    op.add_column("people", sa.Column("uid", sa.BigInteger(), nullable=True))
    op.create_index("ix_people_uid", "people", ["uid"], unique=True)
