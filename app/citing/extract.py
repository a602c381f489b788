"""Answers without a language model: quotes the parts of the best passages that fit the question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from app.citing.links import escaped
from app.citing.sections import STEM, asked_stems, stems
from app.core.language import vocabulary
from app.core.prompts import Language
from app.core.turn import Text, Turn
from app.core.types import Hit
from app.text.blocks import CUT, Block, blocks_of, bounded, joined
from app.text.sentences import quotable_sentences

PASSAGES = 3
LONGEST_FIRST, LONGEST_NEXT = 900, 500  # characters; only paragraphs are cut to fit
LONGEST_PARAGRAPH = 500
WORTH_QUOTING = 0.6  # share of the best part's score; parts with less are seldom about the question
HEADING = 0.5  # the weight of a word that only the heading has
LONGEST_BLOCK = 2000


def extract(turn: Turn, language: Language) -> list[Text]:
    """Quotes the best parts of up to three passages, each with its heading and number, after a line of introduction."""
    texts = [Text(language.extractive_intro)]
    heading = ""
    for part in _parts(turn, language):
        above = f"**{escaped(part.heading)}** [{part.number}]\n\n" if part.heading != heading else ""
        heading = part.heading
        texts += [Text(f"\n\n{above}"), Text(part.text, quoted=True)]
    return texts


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a passage that is quoted; `number` is that of the passage."""

    number: int
    heading: str
    text: str
    url: str
    position: int


def _parts(turn: Turn, language: Language) -> list[_Part]:
    """The parts to quote, without repetitions: best page first, parts of one page in its order."""
    candidates = _candidates(turn, language)
    best = max((candidate.score for candidate in candidates), default=0.0)
    parts: list[_Part] = []
    quoted: set[str] = set()
    for candidate in candidates:
        foreign = candidate.hit.chunk.language != turn.language and any(parts)
        if (
            len(parts) == PASSAGES
            or candidate.score < WORTH_QUOTING * best
            or (foreign and not _all_foreign(parts, turn))
        ):
            continue
        part = candidate.part(LONGEST_NEXT if parts else LONGEST_FIRST, quoted)
        if part.text:
            parts.append(part)
    pages = list(dict.fromkeys(part.url for part in parts))
    return sorted(parts, key=lambda part: (pages.index(part.url), part.position))


def _all_foreign(parts: Sequence[_Part], turn: Turn) -> bool:
    """Whether no part in the reader's language is quoted yet."""
    return all(turn.hits[part.number - 1].chunk.language != turn.language for part in parts)


def _candidates(turn: Turn, language: Language) -> list[_Candidate]:
    asked = asked_stems(turn) - {word[:STEM] for word in language.stopwords}
    passages = [(number, hit, blocks_of(hit.chunk)) for number, hit in enumerate(turn.hits, start=1)]
    words = [stems(block.text) & asked for _, _, blocks in passages for block in blocks]
    counts = Counter(word for found in words for word in found)
    # a word of all blocks distinguishes none of them
    weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
    abbreviations = vocabulary().abbreviations | language.abbreviations
    return [_Candidate(number, hit, blocks, weights, abbreviations) for number, hit, blocks in passages if blocks]


@dataclass(frozen=True)
class _Candidate:
    """A passage that can be quoted."""

    number: int
    hit: Hit
    blocks: Sequence[Block]
    weights: Mapping[str, float]
    abbreviations: frozenset[str]

    @property
    def score(self) -> float:
        """The score of its best block."""
        return max(self._score(block) for block in self.blocks)

    def part(self, longest: int, quoted: set[str]) -> _Part:
        """Its best block with what belongs to it, without blocks in `quoted`, to which it adds the quoted ones."""
        chosen = self._chosen(longest)
        sections = self.hit.chunk.sections
        path = sections[self.blocks[chosen.start].section].path if sections else ()
        texts = [block for block in self._shortened(chosen) if _normal(block) not in quoted]
        quoted.update(_normal(block) for block in texts)
        return _Part(
            number=self.number,
            heading=" > ".join(dict.fromkeys(name for name in (self.hit.chunk.title, *path) if name)),
            text=joined(texts),
            url=self.hit.chunk.url,
            position=self.hit.chunk.position,
        )

    def _score(self, block: Block) -> float:
        sections = self.hit.chunk.sections
        heading = stems(" ".join(sections[block.section].path)) if sections else set[str]()
        own = stems(block.text)
        return sum(
            weight * (1 if word in own else HEADING) for word, weight in self.weights.items() if word in own | heading
        )

    def _chosen(self, longest: int) -> range:
        """The best block, the blocks that it leads to or that lead to it, and what follows in its section and fits."""
        scores = [self._score(block) for block in self.blocks]
        first = last = max(range(len(scores)), key=lambda i: (scores[i], -i))
        while first > 0 and self.blocks[first - 1].leads and self._together(first - 1, first):
            first -= 1
        length = sum(self._length(i) for i in range(first, last + 1))
        while last + 1 < len(self.blocks) and self._together(last, last + 1):
            leads = self.blocks[last].leads
            if not leads and length + self._length(last + 1) > longest:
                break
            last += 1
            length += self._length(last)
        while last > first and self.blocks[last].leads:  # nothing follows that it could lead to
            last -= 1
        # blocks after it usually explain it; blocks before it only if no more follow
        while first > 0 and self._together(first - 1, first) and length + self._length(first - 1) <= longest:
            first -= 1
            length += self._length(first)
        return range(first, last + 1)

    def _together(self, one: int, other: int) -> bool:
        return self.blocks[one].section == self.blocks[other].section

    def _length(self, index: int) -> int:
        block = self.blocks[index]
        return min(len(block.text), LONGEST_PARAGRAPH) if block.kind == "paragraph" else len(block.text)

    def _shortened(self, chosen: range) -> Iterator[Block]:
        for index in chosen:
            block = self.blocks[index]
            long = block.kind == "paragraph" and len(block.text) > LONGEST_PARAGRAPH and not block.leads
            yield replace(block, text=self._best_sentences(block.text)) if long else bounded(block, LONGEST_BLOCK)

    def _best_sentences(self, text: str) -> str:
        """The sentence with most words of the question, and the neighbours that fit."""
        pieces = quotable_sentences(text, self.abbreviations)
        scores = [sum(self.weights.get(word, 0.0) for word in stems(piece)) for piece in pieces]
        first = last = max(range(len(scores)), key=lambda i: (scores[i], -i))
        length = len(pieces[first])
        while True:
            after = len(pieces[last + 1]) if last + 1 < len(pieces) else LONGEST_PARAGRAPH
            before = len(pieces[first - 1]) if first > 0 else LONGEST_PARAGRAPH
            if length + after <= LONGEST_PARAGRAPH:
                last, length = last + 1, length + after
            elif length + before <= LONGEST_PARAGRAPH:
                first, length = first - 1, length + before
            else:
                break
        chosen = " ".join(pieces[first : last + 1])
        return f"{f'{CUT} ' if first else ''}{chosen}{f' {CUT}' if last + 1 < len(pieces) else ''}"


def _normal(block: Block) -> str:
    return " ".join(block.text.split())
