"""The steps that an assistants.toml may add, one file each, with what only they need.

Made by app.pipeline.registry; may use the steps that every assistant has.
"""
