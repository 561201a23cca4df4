"""An index by which a page of the runs of one folder is read, and not all of them sorted."""

from __future__ import annotations

from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Makes the index, which also serves whatever the one of folders alone did."""
    op.create_index("ix_runs_folder_number", "runs", ["folder", "number"])
    op.drop_index("ix_runs_folder", "runs")
