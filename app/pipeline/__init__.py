"""From a question to an answer: the runner, the registry of steps, the proof of their order, and the trace.

Called by app.assistants; the steps themselves are in `steps`. Imports citing, index, models, text and core.
"""
