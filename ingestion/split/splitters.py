"""The ways to cut a page: along headings, not at all, by length alone, or where the topic changes. Only computing, without models, for workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Protocol

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.types import Chunk, Page, Vector
from ingestion.convert.document import Document
from ingestion.convert.prepare import Prepared, prepare
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.split.chunks import Limits, Part, bounds, make_chunks, plain_text, with_neighbours
from ingestion.split.pieces import ANNOUNCED, STACKED, Piece, pieces


class Splitter(Protocol):
    """One way to cut pages. Each of ours keeps sections with their anchors, closes fences and loses no line."""

    @property
    def name(self) -> str:
        """The splitter's name in the recipe: it changes when the same page would get other chunks."""

    def windows(self, page: Page) -> Sequence[str]:
        """Texts whose vectors `split` needs, in order; none when the text alone decides."""
        del page
        return ()

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks in order; `vectors` are those of its `windows`."""


@dataclass(frozen=True, slots=True)
class MarkdownSplitter(Splitter):
    """Chunks of at most `size` characters."""

    size: int
    abbreviations: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"markdown-5/{self.size}"

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks, none longer than the size but for single rows of tables."""
        del vectors
        page_pieces = pieces(page.markdown, self.size, abbreviations=self.abbreviations)
        parts = [Part(len(piece.text), len(piece.gap), piece.cost) for piece in page_pieces]
        # above half of the size the length doesn't matter, so that breaks fall where sections end
        limits = Limits(self.size, self.size / 2, shortness=1.0)
        groups = [page_pieces[first:last] for first, last in bounds(parts, limits)]
        return make_chunks(page, groups)


@dataclass(frozen=True, slots=True)
class PageSplitter(Splitter):
    """One chunk per page with all its sections. Embedders see only as much of it as they take."""

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return "page-2"

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """One chunk; none for a page without text."""
        del vectors
        page_pieces = pieces(page.markdown, max(1, len(page.markdown)))
        return make_chunks(page, [page_pieces] if page_pieces else [])


CHARACTERS_A_TOKEN = (4, 3, 2, 1)
"""Tried in this order: English prose has about four, code three, languages that tokenizers know less two."""


def count(text: str) -> int:
    """Returns the number of tokens of the text."""
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
        parts = tuple(pieces(markdown, most * characters, sentences_apart=True, abbreviations=abbreviations))
        lengths = tuple(count(piece.text) for piece in parts)
        if _longest(parts, lengths) <= most:
            return parts, lengths
        coarse = coarse or (parts, lengths)
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


@dataclass(frozen=True, slots=True)
class FixedSplitter(Splitter):
    """Chunks of at most `tokens`, each beginning with whole sentences, up to `overlap` tokens, of the one before.

    Nothing is repeated across a heading, where it would be in the wrong section.
    """

    tokens: int
    overlap: int
    abbreviations: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"fixed-2/{self.tokens}/{self.overlap}"

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks."""
        del vectors
        page_pieces, lengths = small_pieces(page.markdown, self.tokens, self.abbreviations)
        groups: list[Sequence[Piece]] = []
        start = begin = 0
        while begin < len(page_pieces):
            end = self._end(page_pieces, lengths, start, begin)
            groups.append(page_pieces[start:end])
            start, begin = self._repeated(page_pieces, lengths, begin, end), end
        return make_chunks(page, groups)

    def _end(self, found: Sequence[Piece], lengths: Sequence[int], start: int, begin: int) -> int:
        """Returns the end of the chunk from `start`: after the piece at `begin`, with no heading or announcement last."""
        end, room = begin + 1, self.tokens - sum(lengths[start : begin + 1]) - (begin - start)
        while end < len(found) and lengths[end] + 1 <= room:
            room -= lengths[end] + 1  # the gap is a token at most
            end += 1
        last = end
        while begin + 1 < last < len(found) and found[last].cost >= ANNOUNCED:
            last -= 1
        return end if last < len(found) and found[last].cost >= ANNOUNCED else last

    def _repeated(self, found: Sequence[Piece], lengths: Sequence[int], begin: int, end: int) -> int:
        """Returns the start of the next chunk: as far back as the overlap reaches, but after the last heading."""
        if end == len(found) or found[end].heading is not None:
            return end
        at, room = end, min(self.overlap, self.tokens - lengths[end] - 1)
        start = end
        while at > begin and found[at - 1].heading is None and lengths[at - 1] + 1 <= room:
            room -= lengths[at - 1] + 1
            at -= 1
            start = at if found[at].cost < ANNOUNCED else start
        return start


@dataclass(frozen=True, slots=True)
class NeighbourSplitter(Splitter):
    """The chunks of another splitter, which are also found by so many `characters` of the chunks beside them.

    Readers and the language model get the text of a chunk alone, so nothing is shown twice.
    """

    splitter: Splitter
    characters: int

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"{self.splitter.name}+{self.characters}"

    def windows(self, page: Page) -> Sequence[str]:
        """Those of the other splitter."""
        return self.splitter.windows(page)

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks."""
        return with_neighbours(self.splitter.split(page, vectors), self.characters)


WINDOW = 3
"""Sentences or blocks on each side of a point that are compared."""

_WANTED, _UNWANTED = -0.3, 0.3


@dataclass(frozen=True, slots=True)
class SemanticSplitter(Splitter):
    """Chunks of `least` to `most` tokens. The `percentile` % of points where a page is least alike are where it's cut.

    The windows are those of TextTiling (Hearst 1997), compared by embeddings with a percentile of the page as threshold,
    as LlamaIndex's SemanticSplitterNodeParser does; that one itself cuts through code and tables and knows no lengths.
    """

    least: int
    most: int
    percentile: int
    abbreviations: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """See `Splitter`."""
        return f"semantic-2/{self.least}-{self.most}/{self.percentile}"

    def windows(self, page: Page) -> Sequence[str]:
        """One text from each sentence or block on."""
        page_pieces, _ = small_pieces(page.markdown, self.most, self.abbreviations)
        return [_text(page_pieces[at : at + WINDOW]) for at in range(len(page_pieces))] if len(page_pieces) > 1 else []

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks; only the first or last of a page, or one between long blocks, may be shorter than `least`."""
        page_pieces, lengths = small_pieces(page.markdown, self.most, self.abbreviations)
        costs = self._costs(page_pieces, vectors) if len(page_pieces) > 1 else [0.0] * len(page_pieces)
        parts = [Part(length, 1, cost) for length, cost in zip(lengths, costs, strict=True)]
        groups = [
            page_pieces[first:last] for first, last in bounds(parts, Limits(self.most, self.least, shortness=3.0))
        ]
        return make_chunks(page, groups)

    def _costs(self, found: Sequence[Piece], vectors: Sequence[Vector]) -> list[float]:
        """Returns the cost of a break before each piece, by how alike the windows before and after it are."""
        import numpy as np

        matrix = np.asarray(vectors, dtype=np.float32)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        matrix = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
        before = matrix[[max(0, at - WINDOW) for at in range(1, len(found))]]
        alike = np.einsum("ij,ij->i", before, matrix[1:])
        threshold = float(np.percentile(alike, self.percentile))
        costs = [0.0]
        for piece, likeness in zip(found[1:], alike.tolist(), strict=True):
            cost = 2.0 * (likeness - threshold) + (_WANTED if likeness <= threshold else _UNWANTED)
            costs.append(piece.cost if piece.cost >= STACKED else cost)
        return costs


def _text(found: Sequence[Piece]) -> str:
    return "".join((piece.gap if number else "") + piece.text for number, piece in enumerate(found))


def prepare_and_cut(  # one call to another process instead of two
    splitter: Splitter, known_hash: str, document: Document, fetched: Fetched, entry: Entry, settings: Settings
) -> Prepared:
    """The page, with chunks when its text is not the known one and cutting it needs no vectors."""
    prepared = prepare(document, fetched, entry, settings)
    if prepared.page.hash == known_hash or splitter.windows(prepared.page):
        return prepared
    chunks = splitter.split(prepared.page)
    return replace(prepared, page=with_plain_text(prepared.page, chunks), chunks=chunks)


def with_plain_text(page: Page, chunks: Sequence[Chunk]) -> Page:
    """The page with its plain text, in which these chunks have their places."""
    return replace(page, derived=replace(page.derived, plain=plain_text(page.markdown, chunks)))


def windows_or_chunks(splitter: Splitter, page: Page) -> tuple[Sequence[str], tuple[Chunk, ...]]:
    """The texts to embed first, or the chunks where there are none."""
    windows = splitter.windows(page)
    return windows, () if windows else splitter.split(page)
