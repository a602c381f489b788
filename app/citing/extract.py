"""An answer without a language model: the parts of the best passages that speak of the question, word for word."""

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
LONGEST_FIRST, LONGEST_NEXT = 900, 500  # characters; a block that is longer stays whole, save paragraphs
LONGEST_PARAGRAPH = 500
WORTH_QUOTING = 0.6  # of the best part's score: less is seldom about the question
HEADING = 0.5  # what a word counts that only the heading above has
LONGEST_BLOCK = 2000


def extract(turn: Turn, language: Language) -> list[Text]:
    """The best parts of up to three passages, each under its heading and number, below a line that says what this is."""
    said = [Text(language.extractive_intro)]
    heading = ""
    for part in _parts(turn, language):
        above = f"**{escaped(part.heading)}** [{part.number}]\n\n" if part.heading != heading else ""
        heading = part.heading
        said += [Text(f"\n\n{above}"), Text(part.text, quoted=True)]
    return said


@dataclass(frozen=True, slots=True)
class _Part:
    """What is quoted of one passage; `number` is the passage's."""

    number: int
    heading: str
    text: str
    url: str
    position: int


def _parts(turn: Turn, language: Language) -> list[_Part]:
    """Best page first, the parts of one page as they stand there, nothing twice."""
    candidates = _candidates(turn, language)
    best = max((candidate.score for candidate in candidates), default=0.0)
    parts: list[_Part] = []
    quoted: set[str] = set()
    for candidate in candidates:
        foreign = candidate.hit.chunk.language != turn.language and any(parts)
        if len(parts) == PASSAGES or candidate.score < WORTH_QUOTING * best or (foreign and not _lone(parts, turn)):
            continue
        part = candidate.part(LONGEST_NEXT if parts else LONGEST_FIRST, quoted)
        if part.text:
            parts.append(part)
    pages = list(dict.fromkeys(part.url for part in parts))
    return sorted(parts, key=lambda part: (pages.index(part.url), part.position))


def _lone(parts: Sequence[_Part], turn: Turn) -> bool:
    """Whether nothing in the reader's language has been quoted."""
    return all(turn.hits[part.number - 1].chunk.language != turn.language for part in parts)


def _candidates(turn: Turn, language: Language) -> list[_Candidate]:
    asked = asked_stems(turn) - {word[:STEM] for word in language.stopwords}
    passages = [(number, hit, blocks_of(hit.chunk)) for number, hit in enumerate(turn.hits, start=1)]
    words = [stems(block.text) & asked for _, _, blocks in passages for block in blocks]
    counts = Counter(word for found in words for word in found)
    # what all blocks have says little about any of them
    weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
    abbreviations = vocabulary().abbreviations | language.abbreviations
    return [_Candidate(number, hit, blocks, weights, abbreviations) for number, hit, blocks in passages if blocks]


@dataclass(frozen=True)
class _Candidate:
    """A passage that may be quoted."""

    number: int
    hit: Hit
    blocks: Sequence[Block]
    weights: Mapping[str, float]
    abbreviations: frozenset[str]

    @property
    def score(self) -> float:
        """How much of the question its best block has."""
        return max(self._score(block) for block in self.blocks)

    def part(self, longest: int, quoted: set[str]) -> _Part:
        """Its best block with what belongs to it; nothing of what was `quoted` before, which grows."""
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
        """The best block, what it announces or is announced by, and what follows in its section while there is room."""
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
        while last > first and self.blocks[last].leads:  # it would announce nothing
            last -= 1
        # what follows usually explains or shows it; what stands before only where nothing more follows
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
        """The sentence that has most of the question, and its neighbours while there is room."""
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
        said = " ".join(pieces[first : last + 1])
        return f"{f'{CUT} ' if first else ''}{said}{f' {CUT}' if last + 1 < len(pieces) else ''}"


def _normal(block: Block) -> str:
    return " ".join(block.text.split())
