"""Assistants: parses assistants.toml, builds each assistant from store, models, prompts and steps, and runs it.

Called by the API, the command line and eval; imports pipeline, index, models, text and core.
"""
