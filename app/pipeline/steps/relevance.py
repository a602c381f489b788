"""Whether the passages say anything of what was asked, decided on raw evidence, and how many of them are worth reading.

Fused scores are relative to the question, so a best hit of 1.0 says nothing. The evidence is the share of the
question's words, weighted by how rare they are in the index, that the best passage has. A name that the index doesn't
have weighs most: who asks for a product that no page mentions isn't answered by the rest of the words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Hit
from app.index.protocols import Generation
from app.index.ranking.fuse import rank
from app.pipeline.conversation import spelled_out
from app.pipeline.off_loop import off_loop
from app.pipeline.runner import Changes
from app.text.analysis import PREFIX_MARK, analyse
from app.text.language import both_ends, without_stopwords
from app.text.sentences import hurried_sentences

SAME_BEGINNING = 0.5  # what a word counts of which the passage has only the first letters
UNKNOWN_NAME = 3.0  # times what another unknown word counts
WITH_KEYWORDS = 1.3  # times the evidence that is needed: the best of several wordings has more of it by chance alone
MOST_NAMES = 0.7  # of the words: beyond, the capitals are those of a title
FEWEST_WORDS = 2  # of an end of the question: a single one is on some page
MOST_ENDS = 16
_CLAUSE = re.compile(r"(?<=[,;:])\s+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: its tokens, any of which a passage may have, and whether it is written as a name."""

    tokens: tuple[str, ...]
    name: bool = False


@dataclass(frozen=True)
class Relevance:
    """Puts hits aside as merely related when even the best has too little of the question, else leaves out weak ones."""

    prompts: Prompts
    settings: Settings
    name = "relevance"
    reads = ("question", "language", "hits", "generation")
    uses = ("referred", "refined", "keywords", "related", "search")
    writes = ("evidence", "evidence_needed", "hits", "related")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The evidence of 0..1; below what is needed no hits are left, else those that aren't far behind the best.

        Needed is `min_evidence`, and of words `WITH_KEYWORDS` times that where keywords were searched as well. Where that
        isn't reached, what the question finds alone counts, as if there were no keywords: bad ones hide its passages.
        """
        generation: Generation = turn.generation
        texts = self._asked(turn)
        named = frozenset(token for words in texts for word in words if word.name for token in word.tokens)
        alone, texts = texts, texts + [_also_named(_words(t.split(), code), named) for code, t in turn.keywords.items()]
        tokens = list(dict.fromkeys(token for words in texts for word in words for token in word.tokens))
        counts = await generation.frequencies(tokens)
        rarity = Rarity(counts, generation.info.chunks)
        by_reranker, needed, hits = reranked(turn.hits), self.settings.min_evidence, turn.hits
        evidence = max(await best(texts, hits, rarity), by_reranker)
        if turn.keywords and by_reranker < needed:
            own = await _found_alone(turn) if evidence < needed * WITH_KEYWORDS else ()
            if own and (by_question := await best(alone, own, rarity)) >= needed:
                evidence, hits = by_question, own
            else:
                needed *= WITH_KEYWORDS
        judged: Changes = {"evidence": evidence, "evidence_needed": needed}
        if evidence < needed:
            return {**judged, "hits": (), **aside(hits)}
        kept = without_tail(hits, self.settings.tail * evidence)
        return {**judged, "hits": kept} if kept != turn.hits else judged

    def _asked(self, turn: Turn) -> list[list[Word]]:
        asked = spelled_out(turn)
        referred, question = both_ends(asked.referred), both_ends(asked.question)
        whole = f"{referred} {question}".strip()
        language = self.prompts.language(turn.language)
        named = names(referred, nouns=language.nouns_capitalised) | names(question, nouns=language.nouns_capitalised)
        telling = frozenset(without_stopwords(whole, language).split())
        asked_for = ends(question, self.prompts.vocabulary.abbreviations)
        texts = [whole, *(f"{referred} {end}" for end in asked_for)]
        words = [[word for word in text.split() if word in telling] for text in texts]
        return [
            _words(each, turn.language, named) for i, each in enumerate(words) if i == 0 or len(each) >= FEWEST_WORDS
        ]


async def _found_alone(turn: Turn) -> tuple[Hit, ...]:
    """What the question finds without the keywords."""
    if turn.search is None:
        return ()
    query = replace(turn.search, texts=turn.search.texts[:1])
    return await rank(turn.generation, await turn.generation.search(query), query)


def ends(question: str, abbreviations: Collection[str] = ()) -> list[str]:
    """Where the question proper may be: the sentence with the question mark, else the last, and its ends from each clause on.

    People greet, say who they are and what they work with, and then ask.
    """
    sentences = hurried_sentences(question.strip(), abbreviations)
    asking = [sentence for sentence in sentences if sentence.endswith("?")] or sentences[-1:]
    clauses = [_CLAUSE.split(sentence) for sentence in asking]
    found = [(each, i) for each in clauses for i in range(len(each))][-MOST_ENDS:]
    return [end for end in dict.fromkeys(" ".join(each[i:]) for each, i in found) if end != question.strip()]


def names(text: str, *, nouns: bool = False) -> frozenset[str]:
    """The words with a capital letter that isn't owed to the beginning of a sentence, to a title or to shouting.

    In a language of capital `nouns` only a capital behind the first letter makes a name.
    """
    found, inner, begins = set(), [], True
    for word in text.split():
        letters = [letter for letter in word if letter.isalpha()]
        capital = any(letter.isupper() for letter in (letters[1:] if begins or nouns else letters))
        if capital and len(letters) > 1:
            found.add(word)
        if not begins and len(letters) > 1:  # the English I is no name
            inner.append(capital)
        begins = word.endswith((".", "!", "?", ":"))
    return frozenset(found) if sum(inner) <= MOST_NAMES * len(inner) else frozenset()


def reranked(hits: Sequence[Hit]) -> float:
    """The best score of a reranker, which reads across languages where words don't agree; 0 where there was none."""
    return max((hit.rerank or 0.0 for hit in hits), default=0.0)


def aside(hits: Sequence[Hit]) -> Changes:
    """The hits as merely related; where an earlier step left none, those that it put aside stay so."""
    return {"related": tuple(hits)} if hits else {}


def without_tail(hits: Sequence[Hit], share: float) -> tuple[Hit, ...]:
    """The first of the hits, and those with at least this share of the best fused score; a reranker's stay whole.

    A boost leaves nothing out: with it or without, who holds out against the best by the same measure stays.
    """
    if any(hit.rerank is not None for hit in hits):
        return tuple(hits)
    best = max((hit.fused for hit in hits), default=0.0)
    plain = max((hit.fused / hit.boost for hit in hits), default=0.0)
    return tuple(hits[:1]) + tuple(
        hit for hit in hits[1:] if hit.fused >= share * best or hit.fused / hit.boost >= share * plain
    )


@dataclass(frozen=True, slots=True)
class Rarity:
    """How much a word tells: its inverse document frequency, as in BM25."""

    counts: Mapping[str, int]
    chunks: int

    def of(self, word: Word) -> float:
        """Above 0, most for a word that the index doesn't have, more still when it is a name."""
        count = max((self.counts.get(token, 0) for token in word.tokens if not token.endswith(PREFIX_MARK)), default=0)
        rarity = math.log(1 + (max(self.chunks, count) - count + 0.5) / (count + 0.5))
        return UNKNOWN_NAME * rarity if word.name and not count else rarity


def _words(text: Sequence[str], language: str, named: Collection[str] = ()) -> list[Word]:
    return [Word(tokens, word in named) for word in dict.fromkeys(text) if (tokens := tuple(analyse(word, language)))]


def _also_named(words: Sequence[Word], names: frozenset[str]) -> list[Word]:
    """The words, as names where the question has them as such: a list of keywords has its capitals anywhere."""
    return [Word(word.tokens, name=not names.isdisjoint(word.tokens)) for word in words]


def _tokens(hits: Sequence[Hit]) -> list[frozenset[str]]:
    return [frozenset(analyse(hit.chunk.embedded_text, hit.chunk.language)) for hit in hits]


def coverage(words: Sequence[Word], passages: Sequence[frozenset[str]], rarity: Rarity) -> float:
    """The share 0..1 of the words, by their rarity, that the tokens of the best of the passages have."""
    if not words or not passages:
        return 0.0
    weights = [rarity.of(word) for word in words]
    had = (sum(w * _share(word, tokens) for word, w in zip(words, weights, strict=True)) for tokens in passages)
    return max(had) / sum(weights)


async def best(texts: Sequence[Sequence[Word]], hits: Sequence[Hit], rarity: Rarity) -> float:
    """The largest share of a text that a passage has; 0 where there is none of either."""
    passages = await off_loop(partial(_tokens, hits), sum(len(hit.chunk.embedded_text) for hit in hits))
    return max((coverage(words, passages, rarity) for words in texts), default=0.0)


def _share(word: Word, passage: frozenset[str]) -> float:
    found = passage.intersection(word.tokens)
    if not found:
        return 0.0
    return SAME_BEGINNING if all(token.endswith(PREFIX_MARK) for token in found) else 1.0
