"""The commands of `docs-assistant eval`; `docs_assistant.cli.commands` lists them."""
