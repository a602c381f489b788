"""Reading text: tokens, sentences, Markdown blocks and fences, and the language of questions and answers.

Called by the index, the pipeline, citing and ingestion; imports app.core.
"""
