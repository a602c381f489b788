"""Finds the chunks of an index that contain a question's evidence, an exact quote of the page.

Also finds its section: a chunk without headings contains the text, but can't link to the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core.types import Chunk
from app.index.protocols import Generation
from eval.questions.cases import Case
from eval.questions.documents import Documents

ENOUGH = 0.5  # a chunk's end may cut the quote: the chunk with most of it still proves it
NEXT_BEST = 0.8
GRAM = 3
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"#{1,6}\s+(.*?)(?:\s*\{#[\w-]+\})?\s*#*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Proof:
    """Ids of the chunks with a case's evidence; `placed` are those that know its section (None: it is in no section)."""

    chunks: frozenset[str]
    placed: frozenset[str] | None


def words(text: str) -> list[str]:
    """The words alone, because Markdown marks, line breaks and capitals make no difference between quotes."""
    return _WORD.findall(text.casefold())


def holds(text: str, quote: str) -> bool:
    """True if the quote is in the text, word for word."""
    return f" {' '.join(words(quote))} " in f" {' '.join(words(text))} "


def share(text: str, quote: str) -> float:
    """Share of the quote that is in the text, in runs of three words."""
    asked = words(quote)
    size = min(GRAM, len(asked))
    wanted, present = _grams(asked, size), set(_grams(words(text), size))
    return sum(gram in present for gram in wanted) / len(wanted) if wanted else 0.0


def places(text: str, quote: str) -> tuple[tuple[int, int], ...]:
    """Where the quote is in the text: begin and end of each place that has it word for word, or else of its runs of three
    words.
    """
    asked, found = words(quote), [(one[0].casefold(), one.start(), one.end()) for one in _WORD.finditer(text)]
    size = len(asked) if holds(text, quote) else min(GRAM, len(asked))
    wanted, spans = set(_grams(asked, size)), list[tuple[int, int]]()
    for i, gram in enumerate(_grams([word for word, _, _ in found], size)):
        if gram in wanted:
            start, end = found[i][1], found[i + size - 1][2]
            joined = spans and start <= spans[-1][1]
            spans[-1:] = [(spans[-1][0], end)] if joined else [*spans[-1:], (start, end)]
    return tuple(spans)


async def proofs(generation: Generation, documents: Documents, cases: Iterable[Case]) -> Mapping[str, Proof]:
    """The proof of each case, by its id; cases without evidence in the index are left out."""
    pages = _Pages(generation, {page.url: page.chunk_ids for page in await generation.pages()})
    found: dict[str, Proof] = {}
    for case in cases:
        urls = documents.pages(case.doc) if case.evidence else ()
        chunks = [chunk for url in urls for chunk in await pages.chunks(url)]
        best = _best(chunks, case.evidence)
        if not best:
            continue
        headings = {heading for url in urls if (heading := heading_of(await pages.text(url), case.evidence))}
        placed = frozenset(chunk.id for chunk in chunks if chunk.id in best and headings & set(_headings(chunk)))
        found[case.id] = Proof(best, placed if headings else None)
    return found


def heading_of(markdown: str, quote: str) -> str:
    """The heading, as words, of the section with most of the quote; empty for text above all headings."""
    best, most = "", 0.0
    for heading, text in _sections(markdown):
        if (part := share(text, quote)) > most:
            best, most = heading, part
    return best


class _Pages:
    """Pages of a generation, each read once."""

    def __init__(self, generation: Generation, chunk_ids: Mapping[str, tuple[str, ...]]) -> None:
        self._generation = generation
        self._chunk_ids = chunk_ids
        self._chunks: dict[str, tuple[Chunk, ...]] = {}
        self._texts: dict[str, str] = {}

    async def chunks(self, url: str) -> tuple[Chunk, ...]:
        if url not in self._chunks:
            self._chunks[url] = await self._generation.fetch(self._chunk_ids.get(url, ()))
        return self._chunks[url]

    async def text(self, url: str) -> str:
        if url not in self._texts:
            page = await self._generation.page(url)
            self._texts[url] = page.markdown if page else ""
        return self._texts[url]


def _sections(markdown: str) -> Iterator[tuple[str, str]]:
    heading, lines, fence = "", list[str](), ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        title = None if fence else _HEADING.match(line)
        if title:
            yield heading, "\n".join(lines)
            heading, lines = " ".join(words(title[1])), []
        lines.append(line)
    yield heading, "\n".join(lines)


def _headings(chunk: Chunk) -> list[str]:
    return [" ".join(words(section.path[-1])) for section in chunk.sections if section.path]


def _best(chunks: Sequence[Chunk], quote: str) -> frozenset[str]:
    shares = {chunk.id: share(chunk.text, quote) for chunk in chunks}
    least = max(ENOUGH, NEXT_BEST * max(shares.values(), default=0.0))
    return frozenset(id_ for id_, one in shares.items() if one >= least)


def _grams(tokens: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)] if size else []
