"""Lengths in tokens (cl100k, which comes inside LlamaIndex, so that nothing is downloaded)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from app.core.errors import SettingsError
from ingestion.split.blocks import Piece, pieces

CHARACTERS_A_TOKEN = (4, 3, 2, 1)
"""Tried in this order: English prose has about four, code three, languages that tokenizers know less two."""


def count(text: str) -> int:
    """How many tokens the text is."""
    return len(_encoder()(text))


@lru_cache(maxsize=32)  # each page is needed twice: for the texts to embed, and with their vectors
def small_pieces(
    markdown: str, most: int, abbreviations: frozenset[str] | None = None
) -> tuple[Sequence[Piece], Sequence[int]]:
    """The page in sentences, list items and blocks of at most `most` tokens with their headings, each with its tokens.

    Single rows of tables may be longer, as no row is ever cut.
    """
    coarse: tuple[Sequence[Piece], Sequence[int]] | None = None
    for characters in CHARACTERS_A_TOKEN:
        found = tuple(pieces(markdown, most * characters, sentences_apart=True, abbreviations=abbreviations))
        lengths = tuple(count(piece.text) for piece in found)
        if _longest(found, lengths) <= most:
            return found, lengths
        coarse = coarse or (found, lengths)
    assert coarse is not None
    return coarse


def _longest(found: Sequence[Piece], lengths: Sequence[int]) -> int:
    """Tokens of the longest piece, with the headings that it can't be parted from."""
    longest = headed = 0
    for piece, length in zip(found, lengths, strict=True):
        longest = max(longest, headed + length)
        headed = headed + length + 1 if piece.heading is not None else 0
    return longest


@cache
def _encoder() -> Callable[[str], Sequence[int]]:
    from llama_index.core.utils import get_tokenizer

    try:
        encoder: Callable[[str], Sequence[int]] = get_tokenizer()
        encoder("")
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"Tokens can't be counted ({error}): the tokenizer inside llama-index-core is missing. "
            "Install llama-index-core again, or set DOCS_SPLITTER=markdown."
        ) from error
    return encoder
