"""The key that asked and the tokens of its answer, unknown of older questions, in the index that lists and figures read."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

LISTED = ["created", "number", "outcome", "rating", "language", "assistant", "confidence", "key", "tokens"]


def upgrade() -> None:
    """Add the columns, and make the index again with them."""
    op.add_column("questions", sa.Column("key", sa.String(80), nullable=False, server_default=""))
    op.add_column("questions", sa.Column("tokens", sa.BigInteger, nullable=False, server_default="0"))
    op.drop_index("questions_listed", "questions")
    op.create_index("questions_listed", "questions", LISTED)
