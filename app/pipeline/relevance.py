"""Whether the passages say anything of what was asked, decided on raw evidence, and how many of them are worth reading.

Fused scores are relative to the question, so a best hit of 1.0 says nothing. The evidence is the share of the
question's words, weighted by how rare they are in the index, that the best passage has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.analysis import PREFIX_MARK, analyse
from app.core.language import without_stopwords
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.store.base import Generation
from app.core.turn import Turn
from app.core.types import Hit
from app.pipeline.step import Changes

SAME_BEGINNING = 0.5  # what a word counts of which the passage has only the first letters
Word = tuple[str, ...]  # the tokens of one word, any of which a passage may have


@dataclass(frozen=True)
class Relevance:
    """Puts hits aside as merely related when even the best has too little of the question, else leaves out weak ones."""

    prompts: Prompts
    settings: Settings
    name = "relevance"
    reads = ("question", "language", "hits", "generation")
    uses = ("referred", "smalltalk", "keywords")
    writes = ("evidence", "hits", "related")
    optional = False

    async def __call__(self, turn: Turn) -> Changes:
        """The evidence of 0..1; below `min_evidence` no hits are left, else those that aren't far behind the best."""
        if turn.smalltalk:  # nothing was asked, so no passage is an answer
            return {"evidence": 0.0, "hits": ()}
        generation: Generation = turn.generation
        asked = f"{turn.referred} {turn.question}".strip()
        texts = [_words(without_stopwords(asked, self.prompts.language(turn.language)), turn.language)]
        texts += [_words(text, language) for language, text in turn.keywords.items()]
        tokens = list(dict.fromkeys(token for words in texts for word in words for token in word))
        counts = await generation.frequencies(tokens)
        passages = [frozenset(analyse(hit.chunk.embedded_text, hit.chunk.language)) for hit in turn.hits]
        rarity = Rarity(counts, generation.info.chunks)
        evidence = max((coverage(words, tokens, rarity) for words in texts for tokens in passages), default=0.0)
        if evidence < self.settings.min_evidence:
            return {"evidence": evidence, "hits": (), "related": turn.hits}
        kept = without_tail(turn.hits, self.settings.tail * evidence)
        return {"evidence": evidence, "hits": kept} if len(kept) < len(turn.hits) else {"evidence": evidence}


def without_tail(hits: Sequence[Hit], share: float) -> tuple[Hit, ...]:
    """The hits whose fused score is at least this share of the first one's; what a reranker ordered stays whole."""
    if any(hit.rerank is not None for hit in hits):
        return tuple(hits)
    return tuple(hit for hit in hits if hit.fused >= share * hits[0].fused)


@dataclass(frozen=True, slots=True)
class Rarity:
    """How much a word tells: its inverse document frequency, as in BM25."""

    counts: Mapping[str, int]
    chunks: int

    def of(self, word: Word) -> float:
        """Above 0, most for a word that the index doesn't have."""
        count = max((self.counts.get(token, 0) for token in word if not token.endswith(PREFIX_MARK)), default=0)
        return math.log(1 + (max(self.chunks, count) - count + 0.5) / (count + 0.5))


def _words(text: str, language: str) -> list[Word]:
    return [tokens for word in dict.fromkeys(text.split()) if (tokens := tuple(analyse(word, language)))]


def coverage(words: Sequence[Word], passage: frozenset[str], rarity: Rarity) -> float:
    """The share 0..1 of the words, by their rarity, that the passage's tokens have."""
    weights = [rarity.of(word) for word in words]
    had = sum(weight * _share(word, passage) for word, weight in zip(words, weights, strict=True))
    return had / sum(weights) if words else 0.0


def _share(word: Word, passage: frozenset[str]) -> float:
    found = passage.intersection(word)
    if not found:
        return 0.0
    return SAME_BEGINNING if all(token.endswith(PREFIX_MARK) for token in found) else 1.0
