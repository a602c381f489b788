"""Merges the translations of a page in a ranking: a hit in any language counts, the page in the reader's is returned."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter

from app.core.types import Candidate, Chunk, Query, Section
from app.index.protocols import Counterparts, Generation, TranslationSet, TranslationSets
from app.text.marks import marks, names

COMPARED = 2
"""Times the limit of the query: so many pages from the top are compared with their translations."""


_Pair = tuple[str, str]  # the address of a page and of its translation in the reader's language


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates by id, with their fused scores and boosts.

    `sets` are translation sets by the address of a page. `found_as` has, by id, the candidate in another language that
    a score comes from.
    """

    candidates: dict[str, Candidate]
    scores: dict[str, float]
    boosts: Mapping[str, float]
    sets: Mapping[str, TranslationSet] = field(default_factory=dict)
    found_as: dict[str, Candidate] = field(default_factory=dict)

    def best(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The candidate with the highest score."""
        return min(candidates, key=lambda one: (-self.scores[one.id], one.id), default=None)


async def merge_translations(generation: Generation, scored: Scored, query: Query) -> Scored:
    """The candidates with one page of each translation set: the reader's, unless it lacks what is asked for.

    Calls the store only if pages are compared that weren't compared before, and then once.
    """
    sets = await generation.translation_sets()
    groups = _groups(scored, sets, query)
    if not groups:
        return scored
    pairs = {(foreign.url, group.own_url) for group in groups if group.own_url for foreign in group.foreign}
    compared = await _compared(generation, sets, pairs)
    asked = names(" ".join(text.text for text in query.texts))
    merged = Scored(dict(scored.candidates), dict(scored.scores), scored.boosts, sets.of)
    for group in groups:
        _Merge(merged, compared, group, query.language).run(asked)
    return merged


@dataclass(frozen=True, slots=True)
class _Group:
    """The candidates of one translation set: of the reader's page, if the query admits it, and of the others."""

    id: str
    own_url: str
    own: Sequence[Candidate]
    foreign: Sequence[Candidate]


def _groups(scored: Scored, sets: TranslationSets, query: Query) -> list[_Group]:
    """The translation sets at the top of which a page in another language was found."""
    if not sets.of:
        return []
    by_set: dict[str, list[Candidate]] = defaultdict(list)
    for id_, _ in sorted(scored.scores.items(), key=itemgetter(1), reverse=True):
        candidate = scored.candidates[id_]
        translations = sets.of.get(candidate.url)
        by_set[translations.id if translations else candidate.url].append(candidate)
    groups: list[_Group] = []
    for candidates in islice(by_set.values(), COMPARED * query.limit):
        translations = sets.of.get(candidates[0].url)
        if translations and any(candidate.language != query.language for candidate in candidates):
            own_url = translations.own_page(candidates[0], query)
            own = [candidate for candidate in candidates if candidate.url == own_url]
            groups.append(
                _Group(
                    translations.id, own_url, own, [candidate for candidate in candidates if candidate.url != own_url]
                )
            )
    return [group for group in groups if group.foreign]


async def _compared(
    generation: Generation, sets: TranslationSets, pairs: Collection[_Pair]
) -> dict[_Pair, Counterparts]:
    known = {pair: sets.counterparts[pair] for pair in pairs if pair in sets.counterparts}
    if missing := [pair for pair in pairs if pair not in known]:
        chunks = await generation.chunks_of({url for pair in missing for url in pair})
        for theirs, ours in missing:
            known[theirs, ours] = counterparts(chunks.get(theirs, ()), chunks.get(ours, ()))
            sets.cache((theirs, ours), known[theirs, ours])
    return known


@dataclass(frozen=True, slots=True)
class _Merge:
    """Leaves one page of a group."""

    scored: Scored
    compared: Mapping[_Pair, Counterparts]
    group: _Group
    language: str

    def run(self, asked: frozenset[str]) -> None:
        """Leave the candidates of one page, with the best scores of all. `asked` are the names in the question."""
        best, other = self.scored.best(self.group.own), self.scored.best(self.group.foreign)
        assert other
        if self.group.own_url and not self._lacks(best, other, asked):
            for foreign in self.group.foreign:
                self._move(foreign, best)
        else:
            self._keep(other)

    def _lacks(self, best: Candidate | None, other: Candidate, asked: frozenset[str]) -> bool:
        """True if the reader's page lacks what the best candidate of the others was found for."""
        if best and self.scored.scores[best.id] >= self.scored.scores[other.id]:
            return False
        compared = self.compared[other.url, self.group.own_url]
        return bool(asked & compared.only_there) or not (best or other.id in compared.of)

    def _move(self, one: Candidate, best: Candidate | None) -> None:
        """Move the score of a candidate to the chunk of the reader's page that says the same, else to its best one."""
        compared = self.compared[one.url, self.group.own_url]
        id_ = compared.of.get(one.id) or (best.id if best else compared.first)
        candidates, scores = self.scored.candidates, self.scored.scores
        del candidates[one.id]
        if id_ not in candidates:
            candidates[id_] = one._replace(id=id_, url=self.group.own_url, language=self.language)
        if id_ not in scores or scores[one.id] > scores[id_]:
            scores[id_] = scores[one.id]
            self.scored.found_as[id_] = one

    def _keep(self, best: Candidate) -> None:
        """Leave the page that the set is named after, else the page of the best candidate."""
        named = [candidate for candidate in self.group.foreign if candidate.url == self.group.id]
        chosen = self.scored.best(named) or best
        self.scored.scores[chosen.id] = self.scored.scores[best.id]
        for candidate in (*self.group.own, *self.group.foreign):
            if candidate.url != chosen.url:
                del self.scored.candidates[candidate.id]


_Name = tuple[tuple[str, ...], str]


def counterparts(theirs: Sequence[Chunk], ours: Sequence[Chunk]) -> Counterparts:
    """For each chunk of theirs the one of ours with the same sections: of the same anchors, else at the same places where
    both pages have as many; else the one with most of its marks. Chunks that ours has nothing of are left out.
    """
    their_sections, our_sections = _sections(theirs), _sections(ours)
    same = _same_sections(list(their_sections), list(our_sections))
    by_marks = {chunk.id: marks(chunk.text) for chunk in ours}
    ours_of: dict[str, str] = {}
    for chunk in theirs:
        votes: Counter[str] = Counter()
        for section in chunk.sections:
            if (name := same.get(_name(section))) is not None:
                votes[_at(chunk, their_sections[_name(section)], our_sections[name])] += 1
        if id_ := votes.most_common(1)[0][0] if votes else _alike(marks(chunk.text), by_marks):
            ours_of[chunk.id] = id_
    only_there = _names(theirs) - _names(ours)
    return Counterparts(ours_of, only_there, ours[0].id if ours else "")


def _name(section: Section) -> _Name:
    return section.path, section.anchor


def _sections(chunks: Sequence[Chunk]) -> dict[_Name, list[str]]:
    """The sections in order, each with the chunks that it lies in."""
    chunks_of: dict[_Name, list[str]] = {}
    for chunk in chunks:
        for section in chunk.sections:
            chunks_of.setdefault(_name(section), []).append(chunk.id)
    return chunks_of


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
    having = Counter(mark for marks_there in ours.values() for mark in marks_there & wanted)
    weights = {
        id_: sum(math.log1p(len(ours) / having[mark]) for mark in marks_there & wanted)
        for id_, marks_there in ours.items()
    }
    best = max(weights, key=lambda id_: weights[id_], default="")
    return best if best and weights[best] else ""


def _names(chunks: Sequence[Chunk]) -> frozenset[str]:
    return frozenset().union(*(names(chunk.text) for chunk in chunks))
