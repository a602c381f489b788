"""Indexes to list the question log by: all that is chosen by, and in PostgreSQL the words."""

from alembic import op

revision = "0004"
down_revision = "0003"

LISTED = ["created", "number", "outcome", "rating", "language", "assistant", "confidence"]
WORDS = "to_tsvector('simple', regexp_replace(text, '[^[:alnum:]]+', ' ', 'g'))"


def upgrade() -> None:
    """Make the indexes; the first does what that by time did."""
    op.create_index("questions_listed", "questions", LISTED)
    op.drop_index("questions_by_time", "questions")
    if op.get_context().dialect.name == "postgresql":
        op.execute(f"CREATE INDEX questions_by_word ON questions USING gin ({WORDS})")
