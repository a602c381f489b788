"""The HTTP service: the OpenAI dialect and what stands around it. No prompt and no search in here.

Started by the command line; sees assistants through the protocols of `service`, and imports pipeline, models and core.
"""
