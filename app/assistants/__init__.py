"""Assistants: read from assistants.toml, put together from store, models, prompts and steps, and asked.

Called by the API, the command line and eval; imports pipeline, index, models, text and core.
"""
