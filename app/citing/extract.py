"""Answers without a language model: quotes the best block of the first passage, and one line of each further passage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.citing.links import escaped
from app.citing.sections import STEM, asked_stems, stems
from app.core.language import Language, vocabulary
from app.core.turn import Text, Turn
from app.core.types import Hit
from app.text.blocks import Block, blocks_of, joined, shortened, units_of

LONGEST_QUOTE = 680
"""Characters; a single sentence, row, item or code block that is longer stays whole."""

LONGEST_LINE = 150  # characters of a further passage
FURTHER = 3  # passages with a line each
RELEVANT = 0.6  # share of the best score; passages with less are seldom about the question
HEADING = 0.5  # weight of a word that only the heading has


def extract(turn: Turn, language: Language, *, failed: bool = False) -> list[Text]:
    """Quotes the first passage after its heading and number, then one line of each further passage, in their ranking.

    `failed` selects the introduction for a model that did not answer. Passages without text to quote are skipped; those
    in another language too, unless none is in the question's.
    """
    intro = language.extractive_failed if failed else language.extractive_intro
    passages = _passages(turn, language)
    own = [passage for passage in passages if passage.hit.chunk.language == turn.language]
    if not (passages := own or passages):
        return [Text(intro)]
    first, *further = passages
    quoted = first.quote()
    said = [
        Text(f"{intro}\n\n**{escaped(first.heading(quoted))}** [{first.number}]\n\n"),
        Text(quoted.text, quoted=True),
    ]
    least = RELEVANT * max(passage.score for passage in passages)
    lines = {quoted.text}
    for passage in [passage for passage in further if passage.score >= least][
        : len(further) if turn.overview else FURTHER
    ]:
        best = passage.line()
        if best.text in lines:
            continue
        lines.add(best.text)
        gap = "\n\n" if len(lines) == 2 else "\n"
        said += [
            Text(f"{gap}- **{escaped(passage.heading(best))}** [{passage.number}]: "),
            Text(best.text, quoted=True),
        ]
    return said


def _passages(turn: Turn, language: Language) -> list[_Passage]:
    # of an overview, every passage is quoted from its beginning
    asked = set[str]() if turn.overview else asked_stems(turn) - {word[:STEM] for word in language.stopwords}
    passages = [(number, hit, blocks_of(hit.chunk)) for number, hit in enumerate(turn.hits, start=1)]
    words = [stems(block.text) & asked for _, _, blocks in passages for block in blocks]
    counts = Counter(word for in_block in words for word in in_block)
    # a word of all blocks distinguishes none of them
    weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
    abbreviations = vocabulary().abbreviations | language.abbreviations
    return [_Passage(number, hit, blocks, weights, abbreviations) for number, hit, blocks in passages if blocks]


@dataclass(frozen=True, slots=True)
class _Quote:
    """Text of a passage and the number of its section."""

    text: str
    section: int


@dataclass(frozen=True)
class _Passage:
    """A passage that can be quoted, with its number in the answer."""

    number: int
    hit: Hit
    blocks: Sequence[Block]
    weights: Mapping[str, float]
    abbreviations: frozenset[str]

    @property
    def score(self) -> float:
        """The score of its best block."""
        return max(self._score(block) for block in self.blocks)

    def heading(self, quote: _Quote) -> str:
        """The title of the page and the headings above the quote, without a full stop, which ends a sentence."""
        sections = self.hit.chunk.sections
        path = sections[quote.section].path if sections else ()
        return " > ".join(dict.fromkeys(name for name in (self.hit.chunk.title, *path) if name)).removesuffix(".")

    def quote(self) -> _Quote:
        """The best block, and neighbours in its section that fit."""
        chosen = self._chosen()
        blocks = self.blocks[chosen.start : chosen.stop]
        longest = max(blocks, key=lambda block: len(block.text))
        room = LONGEST_QUOTE - sum(len(block.text) for block in blocks if block is not longest)
        return _Quote(
            joined(self._short(block, room) if block is longest else block for block in blocks), blocks[0].section
        )

    def line(self) -> _Quote:
        """The best sentence, row or item of its best block, as one line; code only if there is nothing else."""
        block = max(self.blocks, key=lambda block: (block.kind != "code", self._score(block)))
        units = units_of(block, self.abbreviations)
        text = " ".join(units.plain(max(units.texts, key=self._weight)).split())
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE].rsplit(maxsplit=1)[0]} …"
        return _Quote(text, block.section)

    def _weight(self, text: str) -> float:
        text_stems = stems(text)
        return sum(weight for word, weight in self.weights.items() if word in text_stems)

    def _score(self, block: Block) -> float:
        sections = self.hit.chunk.sections
        heading = stems(" ".join(sections[block.section].path)) if sections else set[str]()
        own = stems(block.text)
        return sum(
            weight * (1 if word in own else HEADING) for word, weight in self.weights.items() if word in own | heading
        )

    def _best(self) -> int:
        return max(range(len(self.blocks)), key=lambda i: (self._score(self.blocks[i]), -i))

    def _chosen(self) -> range:
        """The best block, the blocks that it leads to or that lead to it, and what follows in its section and fits."""
        first = last = self._best()
        while first > 0 and self.blocks[first - 1].leads and self._together(first - 1, first):
            first -= 1
        length = sum(self._length(i) for i in range(first, last + 1))
        while last + 1 < len(self.blocks) and self._together(last, last + 1):
            leads = self.blocks[last].leads
            if not leads and length + self._length(last + 1) > LONGEST_QUOTE:
                break
            last += 1
            length += self._length(last)
        while last > first and self.blocks[last].leads:  # nothing follows that it could lead to
            last -= 1
        # blocks after it usually explain it; blocks before it only if no more follow
        while first > 0 and self._together(first - 1, first) and length + self._length(first - 1) <= LONGEST_QUOTE:
            first -= 1
            length += self._length(first)
        return range(first, last + 1)

    def _together(self, one: int, other: int) -> bool:
        return self.blocks[one].section == self.blocks[other].section

    def _length(self, index: int) -> int:
        return min(len(self.blocks[index].text), LONGEST_QUOTE)

    def _short(self, block: Block, longest: int) -> Block:
        if len(block.text) <= longest:
            return block
        return replace(block, text=shortened(units_of(block, self.abbreviations), longest, self._weight))
