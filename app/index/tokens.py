"""The tokens that a chunk is found by: those of its text, and of the questions that a language model wrote for it."""

from __future__ import annotations

from app.core.types import Chunk
from app.text.analysis import analyse


def tokens_of(chunk: Chunk) -> list[str]:
    """The analysed text, then the analysed questions, each in its own language."""
    tokens = list(analyse(chunk.embedded_text, chunk.language))
    for language, text in chunk.questions:
        tokens += analyse(text, language)
    return tokens
