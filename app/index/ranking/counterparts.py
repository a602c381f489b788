"""Finds the chunks of a page that say the same as the chunks of its translation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from app.core.types import Chunk, Section
from app.index.translation_sets import Counterparts
from app.text.marks import marks, names

_Name = tuple[tuple[str, ...], str]


def counterparts(theirs: Sequence[Chunk], ours: Sequence[Chunk]) -> Counterparts:
    """For each chunk of theirs the one of ours with the same sections: of the same anchors, else at the same places where
    both pages have as many; else the one with most of its marks. Chunks that ours has nothing of are left out.
    """
    their_sections, our_sections = _sections(theirs), _sections(ours)
    same = _same_sections(list(their_sections), list(our_sections))
    by_marks = {chunk.id: marks(chunk.text) for chunk in ours}
    found: dict[str, str] = {}
    for chunk in theirs:
        votes: Counter[str] = Counter()
        for section in chunk.sections:
            if (name := same.get(_name(section))) is not None:
                votes[_at(chunk, their_sections[_name(section)], our_sections[name])] += 1
        if id_ := votes.most_common(1)[0][0] if votes else _alike(marks(chunk.text), by_marks):
            found[chunk.id] = id_
    only_there = _names(theirs) - _names(ours)
    return Counterparts(found, only_there, ours[0].id if ours else "")


def _name(section: Section) -> _Name:
    return section.path, section.anchor


def _sections(chunks: Sequence[Chunk]) -> dict[_Name, list[str]]:
    """The sections in order, each with the chunks that it lies in."""
    found: dict[_Name, list[str]] = {}
    for chunk in chunks:
        for section in chunk.sections:
            found.setdefault(_name(section), []).append(chunk.id)
    return found


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


def _names(chunks: Sequence[Chunk]) -> frozenset[str]:
    return frozenset().union(*(names(chunk.text) for chunk in chunks))
