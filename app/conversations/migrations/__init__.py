"""Alembic's steps from each revision of the tables to the next. `Database.migrate` runs them."""
