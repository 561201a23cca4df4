"""People, labs, runs, what happened and who did it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the first tables."""
    op.create_table(
        "people",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "grants",
        sa.Column("number", NUMBER, primary_key=True),
        _person(),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("role", sa.String(64), nullable=False),
        sa.Column("denies", sa.Boolean(), nullable=False),
        sa.Column("propagates", sa.Boolean(), nullable=False),
        sa.UniqueConstraint("person", "path", "role"),
    )
    op.create_table(
        "sessions",
        sa.Column("digest", sa.String(64), primary_key=True),
        _person(),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("identity", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        _person(),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "labs",
        sa.Column("identity", sa.String(16), primary_key=True),
        sa.Column("folder", sa.String(200), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("head", sa.BigInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "versions",
        sa.Column("lab", sa.String(16), sa.ForeignKey("labs.identity", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("identity", sa.String(16), nullable=False, unique=True),
        sa.Column("folder", sa.String(200), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("lab", sa.String(16), sa.ForeignKey("labs.identity", ondelete="SET NULL")),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("verdict", sa.String(16)),
        sa.Column("virtual_s", sa.Float()),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger()),
    )
    op.create_table(
        "events",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("permission", sa.String(32), nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.String(64), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    for table, column in (
        ("grants", "person"),
        ("sessions", "person"),
        ("tokens", "person"),
        ("labs", "folder"),
        ("runs", "folder"),
        ("runs", "lab"),
        ("runs", "state"),
        ("audit", "person"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])


def _person() -> sa.Column[str]:
    return sa.Column("person", sa.String(64), sa.ForeignKey("people.name", ondelete="CASCADE"), nullable=False)
