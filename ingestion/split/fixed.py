"""Cuts by length alone: chunks of a number of tokens, which repeat the end of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.types import Chunk, Page, Vector
from ingestion.split.blocks import ANNOUNCED, Piece
from ingestion.split.chunks import make_chunks
from ingestion.split.tokens import small_pieces


@dataclass(frozen=True, slots=True)
class FixedSplitter:
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

    def windows(self, page: Page) -> Sequence[str]:
        """None: the text alone decides."""
        del page
        return ()

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks."""
        del vectors
        found, lengths = small_pieces(page.markdown, self.tokens, self.abbreviations)
        groups: list[Sequence[Piece]] = []
        start = begin = 0
        while begin < len(found):
            end = self._end(found, lengths, start, begin)
            groups.append(found[start:end])
            start, begin = self._repeated(found, lengths, begin, end), end
        return make_chunks(page, groups)

    def _end(self, found: Sequence[Piece], lengths: Sequence[int], start: int, begin: int) -> int:
        """Where the chunk from `start` ends; it has at least the piece at `begin`, and no heading or announcement last."""
        end, room = begin + 1, self.tokens - sum(lengths[start : begin + 1]) - (begin - start)
        while end < len(found) and lengths[end] + 1 <= room:
            room -= lengths[end] + 1  # the gap is a token at most
            end += 1
        last = end
        while begin + 1 < last < len(found) and found[last].cost >= ANNOUNCED:
            last -= 1
        return end if last < len(found) and found[last].cost >= ANNOUNCED else last

    def _repeated(self, found: Sequence[Piece], lengths: Sequence[int], begin: int, end: int) -> int:
        """Where the next chunk starts: as far back as the overlap reaches, but after the last heading."""
        if end == len(found) or found[end].heading is not None:
            return end
        at, room = end, min(self.overlap, self.tokens - lengths[end] - 1)
        start = end
        while at > begin and found[at - 1].heading is None and lengths[at - 1] + 1 <= room:
            room -= lengths[at - 1] + 1
            at -= 1
            start = at if found[at].cost < ANNOUNCED else start
        return start
