"""The HTTP service: the routes of the OpenAI API, search, health, ingestion runs, MCP and the documentation site.

The command line starts it. It imports assistants, pipeline, models and core, and contains no prompt and no search.
"""
