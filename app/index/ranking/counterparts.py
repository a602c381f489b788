"""Compares a page with its translations, chunk by chunk. A run stores with each page what it finds, and a question only reads that."""

import hashlib
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from app.core.types import Chunk, Derived, Page, Section
from app.index.protocols import Counterparts, Pair, TranslationSets
from app.text.marks import FORM, marks, names

COMPARISON = f"1 {FORM}"
"""Raise the number when `counterparts` finds others: what is stored is then compared again."""

CHUNKS_AT_ONCE = 2000  # in memory while a run compares them
LINE = "\n"
NONE = "-"  # in place of the number of a chunk

_Name = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Comparable:
    """The chunks of a page, in order, and what is read of them once, however many translations they are compared with."""

    chunks: Sequence[Chunk]

    @cached_property
    def sections(self) -> Mapping[_Name, Sequence[str]]:
        """The sections in order, each with the ids of the chunks that it lies in."""
        found: dict[_Name, list[str]] = {}
        for chunk in self.chunks:
            for section in chunk.sections:
                found.setdefault(_name(section), []).append(chunk.id)
        return found

    @cached_property
    def marks(self) -> Mapping[str, frozenset[str]]:
        """The marks of each chunk, by its id."""
        return {chunk.id: marks(chunk.text) for chunk in self.chunks}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in all chunks."""
        return frozenset().union(*(names(chunk.text) for chunk in self.chunks))


def counterparts(theirs: Comparable, ours: Comparable) -> Counterparts:
    """For each chunk of theirs the one of ours with the same sections: of the same anchors, else at the same places where
    both pages have as many; else the one with most of its marks. Chunks that ours has nothing of are left out.
    """
    same = _same_sections(list(theirs.sections), list(ours.sections))
    found: dict[str, str] = {}
    for chunk in theirs.chunks:
        votes: Counter[str] = Counter()
        for section in chunk.sections:
            if (name := same.get(_name(section))) is not None:
                votes[_at(chunk, theirs.sections[_name(section)], ours.sections[name])] += 1
        if id_ := votes.most_common(1)[0][0] if votes else _alike(theirs.marks[chunk.id], ours.marks):
            found[chunk.id] = id_
    return Counterparts(found, theirs.names - ours.names, ours.chunks[0].id if ours.chunks else "")


def _name(section: Section) -> _Name:
    return section.path, section.anchor


def _same_sections(theirs: Sequence[_Name], ours: Sequence[_Name]) -> Mapping[_Name, _Name]:
    by_anchor = {anchor: (path, anchor) for path, anchor in reversed(ours) if anchor}
    same = {name: by_anchor[name[1]] for name in theirs if name[1] in by_anchor}
    if len(theirs) == len(ours):
        same = dict(zip(theirs, ours, strict=True)) | same
    return same


def _at(chunk: Chunk, theirs: Sequence[str], ours: Sequence[str]) -> str:
    """Of the chunks that a section of ours lies in, the one as far into it as the chunk is into theirs."""
    return ours[theirs.index(chunk.id) * len(ours) // len(theirs)]


def _alike(wanted: frozenset[str], ours: Mapping[str, frozenset[str]]) -> str:
    """The chunk with most of the wanted marks, rare ones weighing most; empty if none has one."""
    having = Counter(mark for found in ours.values() for mark in found & wanted)
    weights = {id_: sum(math.log1p(len(ours) / having[mark]) for mark in found & wanted) for id_, found in ours.items()}
    best = max(weights, key=lambda id_: weights[id_], default="")
    return best if best and weights[best] else ""


class _Stored(NamedTuple):
    """What a page keeps of the comparison with its translation at `url`: for each of its chunks the number of one there."""

    proof: str
    numbers: str
    only_there: str
    url: str

    @classmethod
    def of(cls, line: str) -> "_Stored":
        return cls(*line.split(LINE, len(cls._fields) - 1))

    @classmethod
    def made(cls, found: Counterparts, theirs: Page, ours: Page) -> "_Stored":
        number = {id_: str(place) for place, id_ in enumerate(ours.derived.chunk_ids)}
        numbers = (number.get(found.of.get(id_, ""), NONE) for id_ in theirs.derived.chunk_ids)
        only_there = " ".join(sorted(found.only_there))
        return cls(_proof(theirs.derived, ours.derived), " ".join(numbers), only_there, ours.url)

    def counterparts(self, theirs: Derived, ours: Derived) -> Counterparts:
        numbered = zip(theirs.chunk_ids, self.numbers.split(), strict=True)
        of = {id_: ours.chunk_ids[int(number)] for id_, number in numbered if number != NONE}
        return Counterparts(of, frozenset(self.only_there.split()), next(iter(ours.chunk_ids), ""))


def _proof(theirs: Derived, ours: Derived) -> str:
    """What the comparison depends on: an index may have an older state of one of the pages beside it."""
    ids = "\n".join((COMPARISON, *theirs.chunk_ids, "", *ours.chunk_ids))
    return hashlib.blake2b(ids.encode(), digest_size=8).hexdigest()


async def counterparts_of(
    pairs: Collection[Pair],
    pages: Mapping[str, Derived],
    chunks_of: Callable[[Collection[str]], Awaitable[Mapping[str, Sequence[Chunk]]]],
) -> dict[Pair, Counterparts]:
    """The counterparts that these pages have stored, by address. Pairs that no run has compared as they are now, such as those of
    a generation before the live one, are compared after one call of `chunks_of`.
    """
    found = {pair: known for pair in pairs if (known := _read(pair, pages)) is not None}
    if missing := [pair for pair in pairs if pair not in found]:
        chunks = await chunks_of({url for pair in missing for url in pair})
        of = {url: Comparable(chunks.get(url, ())) for pair in missing for url in pair}
        found |= {(theirs, ours): counterparts(of[theirs], of[ours]) for theirs, ours in missing}
    return found


def _read(pair: Pair, pages: Mapping[str, Derived]) -> Counterparts | None:
    theirs, ours = (pages.get(url) for url in pair)
    if theirs is None or ours is None:
        return None
    lines = (line for line in theirs.counterparts if line.endswith(LINE + pair[1]))
    known = next(map(_Stored.of, lines), None)
    return known.counterparts(theirs, ours) if known and known.proof == _proof(theirs, ours) else None


def uncompared(pages: Mapping[str, Page]) -> Iterator[list[Sequence[Page]]]:
    """Yields the translation sets in which a pair of pages isn't stored as it is now, and pages that left one, each alone: as many
    at once as may be in memory.
    """
    ordered = sorted(pages.items())
    sets = TranslationSets.read((url, page.language, page.shared_set) for url, page in ordered if page.shared_set)
    groups = [[pages[url] for url in one.pages.values()] for one in {one.id: one for one in sets.of.values()}.values()]
    groups += [[page] for url, page in ordered if url not in sets.of]
    batch, chunks = list[Sequence[Page]](), 0
    for group in groups:
        if not _is_stored(group):
            batch.append(group)
            chunks += sum(len(page.derived.chunk_ids) for page in group)
        if chunks >= CHUNKS_AT_ONCE:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _is_stored(group: Sequence[Page]) -> bool:
    """True if each page has the counterparts of all others, and no more."""
    return all(
        [(known.url, known.proof) for known in map(_Stored.of, page.derived.counterparts)]
        == [(other.url, _proof(page.derived, other.derived)) for other in group if other is not page]
        for page in group
    )


def compared(group: Sequence[Page], chunks: Mapping[str, Chunk]) -> list[Page]:
    """The pages of a translation set, with their counterparts. Takes milliseconds for two pages, so call it in a thread."""
    of = {page.url: Comparable([chunks[id_] for id_ in page.derived.chunk_ids if id_ in chunks]) for page in group}
    made: list[Page] = []
    for page in group:
        others = (other for other in group if other is not page)
        kept = tuple(
            LINE.join(_Stored.made(counterparts(of[page.url], of[other.url]), page, other)) for other in others
        )
        made.append(replace(page, derived=replace(page.derived, counterparts=kept)))
    return made
