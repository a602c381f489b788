"""The question log, and the key of its digests."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables, and a key."""
    op.create_table(
        "questions",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(200), nullable=False, unique=True),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("assistant", sa.String(200), nullable=False),
        sa.Column("language", sa.String(20), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("digest", sa.String(32), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("evidence", sa.Double),
        sa.Column("needed", sa.Double, nullable=False),
        sa.Column("nearest", sa.JSON, nullable=False),
        sa.Column("used", sa.JSON, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("embedder", sa.String(200), nullable=False),
        sa.Column("rating", sa.String(4), nullable=False),
    )
    op.create_index("questions_by_time", "questions", ["created"])
    key = op.create_table("question_key", sa.Column("key", sa.LargeBinary, primary_key=True))
    op.bulk_insert(key, [{"key": secrets.token_bytes(32)}])
