"""What no passage proves of an answer, unknown of older ones, for those who read it by a link."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column."""
    op.add_column("answers", sa.Column("unsupported", sa.JSON, nullable=False, server_default="[]"))
