"""The commands of `docs-assistant eval`; `app.cli.commands` lists them."""
