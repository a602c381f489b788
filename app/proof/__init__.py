"""What of an answer the passages prove: literals, statements, and what no reader should get. `app.pipeline.steps.cite` and `eval` call it.

It imports `app.text` and `app.core`, and knows nothing of models, links and the API.
"""
