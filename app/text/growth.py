"""Small to big: the found chunks of a page as one passage, grown to whole sections while a budget lasts.

Only offsets are computed here: the plain text of a page says where its sections are and where it may be cut.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, pairwise

from app.core.types import Chunk, Hit, Passage, PlainText, Section
from app.text.blocks import CUT, blocks, plain, sentences

SAME = 80  # characters of a block that no second passage repeats
LEAST = 600  # characters: with less room, a passage that has to be cut isn't begun
WHOLE = 0.9  # of the length of its place: a chunk that has as much is no part of a longer block
_HEADINGS = re.compile(r"(?:#{1,6} [^\n]*+\n++)*+")
_MARKS = 8  # characters of the signs between passages and where one is cut


def grown(hits: Sequence[Hit], pages: Mapping[str, PlainText], budget: int) -> tuple[Passage, ...]:
    """The hits as the model reads them: one for each page, best first, together with their headings `budget` characters at most.

    The text of each is that of whole blocks, in the order of the page, with its sections; `CUT` stands where something
    is left out. First each hit gets its own text, then the blocks it was cut from, its section, the sections around
    it, the page: the best one first, step by step. Text that stands in an earlier passage is left out. A chunk
    without a place in its page's Markdown stays as it is. The first hit is always there, cut where it must be.
    """
    growth = _Growth(budget)
    seeds = [seed for hit in hits if (seed := growth.begun(hit, pages.get(hit.chunk.url)))]
    for step in range(max((len(seed.steps) for seed in seeds), default=0)):
        for seed in seeds:
            if step < len(seed.steps):
                growth.extend(seed, *seed.steps[step])
    for seed in seeds:
        growth.fill(seed)
    return tuple(_written(growth.passages))


def site_of(chunk: Chunk) -> str:
    """The host of the chunk's page, with its port."""
    return chunk.url.partition("://")[2].partition("/")[0]


def chunks_in(page: PlainText, passage: Chunk) -> set[str]:
    """The ids of the chunks of the page that have any of the sections of a passage."""
    offsets, read = [section.offset for section in page.sections], {section.path for section in passage.sections}
    found = set[str]()
    for id_, (start, end) in page.places.items():
        sections = page.sections[max(bisect_right(offsets, start) - 1, 0) : bisect_left(offsets, end)]
        if not read.isdisjoint([section.path for section in sections]):
            found.add(id_)
    return found


def heading_line(chunk: Chunk) -> str:
    """Returns the place of the chunk's text: site > page > headings, without one that the text itself begins with; then the day of
    the page, if it is known.
    """
    path = chunk.heading_path[: -1 if chunk.text.startswith("#") else None]
    line, day = " > ".join(dict.fromkeys(filter(None, (site_of(chunk), chunk.title, *path)))), chunk.dated[:10]
    return f"{line} ({day})" if day else line


@dataclass(slots=True)
class _Span:
    """A part of a page, in characters of its Markdown; `own` is the chunk that stands there with its own text, as the
    block it was cut from is too long.
    """

    start: int
    end: int
    own: Chunk | None = None


@dataclass(slots=True)
class _Reading:
    """Text of one page that is given; of a chunk that has no place in one, the chunk."""

    hits: list[Hit]
    page: PlainText | None
    spans: list[_Span] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Seed:
    """A hit in its passage, with the ranges that it may grow to, each larger than the one before."""

    passage: _Reading
    chunk: Chunk
    place: tuple[int, int]
    steps: Sequence[tuple[int, int]]


@dataclass(slots=True)
class _Growth:
    """All passages, and how many characters are left for them."""

    left: int
    passages: list[_Reading] = field(default_factory=list)

    def begun(self, hit: Hit, page: PlainText | None) -> _Seed | None:
        """The hit in the passage of its page, or in one of its own; None if there is no room for it."""
        place = page.places.get(hit.chunk.id) if page and not hit.chunk.translated_from else None
        page = page if place else None
        known = next((reading for reading in self.passages if page and reading.page is page), None)
        passage = known or _Reading([], page)
        head = len(heading_line(hit.chunk)) + len(" > ".join(hit.chunk.heading_path)) + 2 * _MARKS
        span = self._first_span(hit.chunk, page, place, self.left - head)
        if span is None or any(
            taken.own is None and taken.start < span.end and span.start < taken.end for taken in passage.spans
        ):
            return None
        self.left -= head + _length([span])
        if not known:
            self.passages.append(passage)
        passage.hits.append(hit)
        passage.spans = sorted([*passage.spans, span], key=_in_order)
        if page is None or place is None or span.own is not hit.chunk:
            return None
        return _Seed(passage, hit.chunk, place, _steps(page, place))

    def _first_span(
        self, chunk: Chunk, page: PlainText | None, place: tuple[int, int] | None, room: int
    ) -> _Span | None:
        """The chunk, or its beginning where there is less room."""
        start, end = place or (0, 0)
        if len(chunk.text) <= room:
            return _Span(start, end, chunk)
        if self.passages and room < LEAST:
            return None
        room = max(room, LEAST)
        borders = page.borders if page else ()
        last = borders[bisect_right(borders, start + room) - 1] if borders else start
        if last > start:
            return _Span(start, min(last, end))
        return _Span(start, end, replace(chunk, text=_beginning(chunk.text, room)))

    def extend(self, seed: _Seed, start: int, end: int) -> None:
        """Give the passage all from `start` to `end` where there is room for it."""
        passage = seed.passage
        for span in passage.spans:
            if span.own is None and span.start <= start and end <= span.end:
                return
        length = _length(passage.spans)
        if end - start - length > self.left:  # all of these are computed for each question, and most find no room
            return
        spans = _with(passage.spans, start, end)
        more = _length(spans) - length
        if more <= self.left:
            self.left -= more
            passage.spans = spans

    def fill(self, seed: _Seed) -> None:
        """Give a hit whose section is too long as many of its blocks as there is room for, behind it and before it."""
        page, (first, last) = seed.passage.page, seed.steps[min(1, len(seed.steps) - 1)]
        if page is None or any(span.own is seed.chunk for span in seed.passage.spans):
            return
        start, end = seed.place
        for share in (2, 1):
            after = page.borders[bisect_right(page.borders, end + self.left // share) - 1]
            self.extend(seed, start, max(end, min(after, last)))
            before = page.borders[bisect_left(page.borders, start - self.left)]
            self.extend(seed, min(start, max(before, first)), end)


@lru_cache(maxsize=2000)
def _steps(page: PlainText, place: tuple[int, int]) -> list[tuple[int, int]]:
    """The blocks of the chunk, its sections, then each one that they are part of, and the page."""
    offsets, depths = [section.offset for section in page.sections], [len(section.path) for section in page.sections]
    at, after, length = bisect_right(offsets, place[0]) - 1, bisect_left(offsets, place[1]), len(page.text)
    own = (offsets[at] if at >= 0 else 0, offsets[after] if after < len(offsets) else length)
    steps = [place, own]
    while at >= 0:
        depth = depths[at]
        end = next((offsets[i] for i in range(at + 1, len(depths)) if depths[i] <= depth), length)
        if end >= own[1]:
            steps.append((offsets[at], end))
        at = next((i for i in range(at - 1, -1, -1) if depths[i] < depth), -1)
    return list(dict.fromkeys([*steps, (0, length)]))


def _in_order(span: _Span) -> tuple[int, int, int]:
    return span.start, span.end, span.own.position if span.own else 0


def _length(spans: Sequence[_Span]) -> int:
    return sum([len(span.own.text) if span.own else span.end - span.start for span in spans])


def _with(spans: Sequence[_Span], start: int, end: int) -> list[_Span]:
    """The spans with this one; those that it has a part of, or touches, are in it as a whole."""
    before, apart = -1, list(spans)
    while len(apart) != before:  # a span that grows may meet another one
        before, rest = len(apart), []
        for span in apart:
            touches = 0 if span.own else 1
            if span.start < end + touches and start < span.end + touches:
                start, end = min(start, span.start), max(end, span.end)
            else:
                rest.append(span)
        apart = rest
    return sorted([*apart, _Span(start, end)], key=_in_order)


def _written(passages: Sequence[_Reading]) -> Iterator[Passage]:
    """Each passage with the text of all its spans; without what an earlier one has."""
    told: dict[str, tuple[PlainText, int, int]] = {}
    for passage in passages:
        if passage.page is None:
            text, sections = _plain(passage.spans[0].own or passage.hits[0].chunk)
        else:
            text, sections = _joined(passage.page, _touching(_untold(passage, told)))
        if text:
            yield Passage(replace(passage.hits[0].chunk, text=text, sections=sections), tuple(passage.hits))


def _plain(chunk: Chunk, offset: int = 0) -> tuple[str, tuple[Section, ...]]:
    """The chunk's own text as a model reads it, and its sections where that begins at `offset`."""
    starts = [section.offset for section in chunk.sections]
    texts = [plain(chunk.text[first:last]) for first, last in pairwise([0, *starts[1:], len(chunk.text)])]
    at = [0, *accumulate(map(len, texts))]
    sections = (replace(section, offset=offset + start) for section, start in zip(chunk.sections, at, strict=False))
    return "".join(texts), tuple(sections)


def _untold(reading: _Reading, told: dict[str, tuple[PlainText, int, int]]) -> Iterator[_Span]:
    """The spans of a page, cut around blocks that an earlier passage has."""
    assert reading.page
    page = reading.page
    starts, blocks_of_page = _long_blocks(page)
    for span in reading.spans:
        if span.own:
            yield span
            continue
        start = span.start
        for block in blocks_of_page[bisect_left(starts, span.start) : bisect_left(starts, span.end)]:
            _, first, last, beginning = block
            if last > span.end:
                break
            # most blocks differ in how they begin
            earlier, *place = told.setdefault(beginning, (page, first, last))
            if earlier is not page and earlier.text[slice(*place)].rstrip() == page.text[first:last].rstrip():
                if start < first:
                    yield _Span(start, first)
                start = last
        if start < span.end:
            yield _Span(start, span.end)


@lru_cache(maxsize=256)  # pages, some kilobytes for each
def _long_blocks(page: PlainText) -> tuple[Sequence[int], Sequence[tuple[int, int, int, str]]]:
    """The borders at which blocks of `SAME` characters begin, and each with the places where its text begins, behind
    headings, and ends, and with how it begins.
    """
    found = [
        (border, first, last, page.text[first : first + SAME])
        for border, last in pairwise(page.borders)
        for first in (_HEADINGS.match(page.text, border).end(),)  # type: ignore[union-attr]  # it matches nothing too
        if last - first >= SAME
    ]
    return [border for border, *_ in found], found


def _touching(spans: Iterable[_Span]) -> Iterator[_Span]:
    """The spans, those that touch made one."""
    waiting: _Span | None = None
    for span in spans:
        if waiting and not waiting.own and not span.own and waiting.end == span.start:
            waiting = _Span(waiting.start, span.end)
            continue
        if waiting:
            yield waiting
        waiting = span
    if waiting:
        yield waiting


def _joined(page: PlainText, spans: Iterable[_Span]) -> tuple[str, tuple[Section, ...]]:
    """The text of the spans with marks where something is left out, and the sections in it."""
    offsets = [section.offset for section in page.sections]
    parts, length, sections = list[str](), 0, list[Section]()
    at = inside = 0  # how far in the page the text goes, and how many sections have begun there
    for span in spans:
        begun = bisect_right(offsets, span.start)
        path, anchor = (page.sections[begun - 1].path, page.sections[begun - 1].anchor) if begun else ((), "")
        if _is_part(span) or (begun and offsets[begun - 1] != span.start and at < span.start):
            parts.append(f"{CUT} ({path[-1]})" if parts and path and begun != inside else CUT)
        elif parts and at < span.start:
            parts.append(CUT)
        length = sum(map(len, parts)) + 2 * len(parts)
        if span.own:
            text, own = _plain(span.own, length)
            sections += own
            parts.append(text)
        else:
            later = page.sections[begun : bisect_left(offsets, span.end)]
            sections.append(Section(length, path, anchor))
            sections += [
                Section(length + section.offset - span.start, section.path, section.anchor) for section in later
            ]
            parts.append(page.text[span.start : span.end].rstrip("\n"))
        at, inside = span.end - _is_part(span), bisect_left(offsets, span.end)
    if at < len(page.text) and at not in offsets:
        parts.append(CUT)
    return "\n\n".join(parts), tuple(sections)


def _is_part(span: _Span) -> bool:
    """True if the chunk is a part of the block where it stands: blank lines, and how a heading is written, may differ."""
    return span.own is not None and len(span.own.text) < WHOLE * (span.end - span.start)


def _beginning(text: str, room: int) -> str:
    """As many of the first blocks as there is room for; of a first one that is too long, the first lines or sentences."""
    beginning, room = "", room - len(CUT) - 2
    for code, piece in blocks(text):
        if len(beginning) + len(piece) <= room:
            beginning += piece
            continue
        if not code:
            beginning += piece[: max(piece.rfind("\n\n", 0, room - len(beginning)), 0)]
        break
    return f"{beginning.rstrip() or _first_lines(text, room).rstrip()}\n\n{CUT}"


def _first_lines(text: str, room: int) -> str:
    code, block = next(blocks(text))
    pieces = block.splitlines(keepends=True) if code or block.startswith("|") else sentences(block)
    fence = block[: len(block) - len(block.lstrip("`~"))] if code else ""
    lengths = accumulate(len(piece) for piece in pieces)
    count = sum(length + len(fence) + 1 <= room for length in lengths)
    if not count:
        return block[: block.rfind(" ", 0, room)] if " " in block[:room] else block[:room]
    return "".join([*pieces[:count], fence])
