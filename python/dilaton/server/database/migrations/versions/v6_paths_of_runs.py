"""Runs are below their lab: what was granted on one is granted where it is now."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"

OLD = re.compile(r"(.*/runs)/([0-9a-z]+)")


def upgrade() -> None:
    """Gives grants on runs the paths that these have from now on."""
    connection = op.get_bind()
    grants = sa.table("grants", sa.column("number", sa.Integer), sa.column("path", sa.String))
    runs = sa.table("runs", sa.column("identity", sa.String), sa.column("lab", sa.String))
    for number, path in list(connection.execute(sa.select(grants.c.number, grants.c.path))):
        found = OLD.fullmatch(path)
        lab = found and connection.scalar(sa.select(runs.c.lab).where(runs.c.identity == found[2]))
        if found and lab:
            moved = f"{found[1]}/{lab}/{found[2]}"
            connection.execute(grants.update().where(grants.c.number == number).values(path=moved))
