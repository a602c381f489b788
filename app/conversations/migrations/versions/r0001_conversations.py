"""Conversations, answers and feedback."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_index("conversations_by_owner", "conversations", ["owner", "created", "id"])
    op.create_index("conversations_by_time", "conversations", ["created"])
    op.create_table(
        "answers",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(200), nullable=False, unique=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("conversation", sa.String(80), sa.ForeignKey("conversations.id", ondelete="CASCADE")),
        sa.Column("previous", sa.String(200)),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("sources", sa.JSON, nullable=False),
        sa.Column("assistant", sa.String(200), nullable=False),
        sa.Column("language", sa.String(20), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("generation", sa.BigInteger),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_index("answers_by_conversation", "answers", ["conversation", "number"])
    op.create_index("answers_by_time", "answers", ["created"])
    op.create_table(
        "feedback",
        sa.Column("answer", sa.String(200), sa.ForeignKey("answers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("rating", sa.String(4), nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_index("feedback_by_time", "feedback", ["created"])
