"""How sure each answer is; unknown of older ones."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns."""
    for table in ("answers", "questions"):
        op.add_column(table, sa.Column("confidence", sa.Double))
