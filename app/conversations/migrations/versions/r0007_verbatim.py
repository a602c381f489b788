"""How many statements of an answer are word for word in the pages, unknown of older ones, for those who read it by a link."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column. `confidence` stays, because replicas of the version before may still write it."""
    op.add_column("answers", sa.Column("verbatim", sa.JSON))
