"""Runs the migrations in the transaction of the connection that the caller has opened and locked."""

from alembic import context

from app.conversations.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite can't change a column
)
with context.begin_transaction():
    context.run_migrations()
