"""Search as you type: the last word may be incomplete, and the answer must be there before the next letter."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter

from app.citing.sections import section_text
from app.core.generation import named_versions
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Question, Search, Turn
from app.core.types import Chunk, Legs, LexicalText, Query, Section
from app.index.protocols import Generation
from app.index.ranking.fuse import near_page, rank
from app.index.vocabulary import Vocabulary
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.retrieve import GUESSED
from app.text.analysis import fold, runs
from app.text.language import LanguageDetector, without_stopwords
from app.text.query_highlight import QueryWords, folded_words

DEPTH = 60  # candidates: what is on the screen comes from the first of them
COMPLETIONS = 12
CORRECTED = 120  # letters, the last ones: more is a text that was pasted
COMPLETION_WEIGHT = 0.5  # relative to a word that is written out
OF_BM25 = 0.3  # share of the score: it decides between sections that have the same words
OF_LENGTH = 0.25  # share of the score that a heading loses for words that aren't in the query
OF_TITLE = 0.5  # added where the title is what is typed: a page named so comes before sections of other pages
FIELDS = (3.0, 2.0, 1.5, 1.0)  # the weight of a word in the heading, the title, the headings above, the text
KEPT = 500  # results of a generation, 3 KB each beside their chunks
READ = 3000  # chunks whose words are kept, 2 to 4 KB each

Fields = tuple[str, str, str, str]
"""The `folded_words` of a section, as in `FIELDS`."""


@dataclass(frozen=True)
class TypeAhead(Step):
    """Searches for the words with their completions; of the chunks found, those with the words in their headings come first."""

    prompts: Prompts
    settings: Settings
    detector: LanguageDetector
    _kept: OrderedDict[tuple[Hashable, ...], Changes] = field(default_factory=OrderedDict)
    name = "type_ahead"
    reads = ("request", "generation")
    writes = ("asked", "refined", "search", "hits")

    async def __call__(self, turn: Turn) -> Changes:
        """What was typed, that as it was searched (`refined`), the search, and the hits, best first.

        They are kept for the next reader who types the same, as most queries begin with the same few letters; without the
        legs, which nobody reads afterwards.
        """
        info = turn.generation.info
        key = (info.id, info.built_at, replace(turn.request, id=""))
        if changes := self._kept.get(key):
            self._kept.move_to_end(key)
            return changes
        changes = await self._found(turn)
        if self._kept and next(iter(self._kept))[:2] != key[:2]:
            self._kept.clear()
            _read.clear()  # the chunks of an earlier generation
        self._kept[key] = {**changes, "search": Search(changes["search"].query, Legs())}
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return changes

    async def _found(self, turn: Turn) -> Changes:
        typed = turn.request.question
        vocabulary = await turn.generation.vocabulary()
        telling = self._telling(typed, vocabulary)
        known = self.detector.shown(telling) or turn.request.language
        asked = Question(typed, known or self.detector.guessed(telling), unsure=not known)
        corrected = replace(asked, text=_corrected(typed, vocabulary))
        query = self._query(corrected, turn, vocabulary)
        legs = await self._rescored(turn.generation, query, vocabulary)
        hits = await rank(turn.generation, legs, query)
        return {"asked": asked, "refined": corrected, "search": Search(query, legs), "hits": hits}

    def _telling(self, typed: str, vocabulary: Vocabulary) -> str:
        """What shows the language, or else that of the reader counts: not the letters of a half-typed word, unless they have accents."""
        *before, last = typed.split() or [""]
        whole = vocabulary.count(fold(last)) and fold(last) not in self._stopwords
        return typed if whole or not last.isascii() else " ".join(before)

    @cached_property
    def _stopwords(self) -> frozenset[str]:
        return frozenset().union(*(language.traits.stopwords for language in self.prompts.languages.values()))

    def _query(self, corrected: Question, turn: Turn, vocabulary: Vocabulary) -> Query:
        *finished, last = corrected.text.split() or [""]
        language = corrected.language
        telling = without_stopwords(" ".join(finished), self.prompts.language(language)) if finished else ""
        near = vocabulary.neighbour(fold(last))
        settings = self.settings
        return Query(
            texts=(
                LexicalText(language, f"{telling} {last}".strip()),
                LexicalText("", " ".join(self._completions(fold(last), vocabulary)), COMPLETION_WEIGHT),
                *([LexicalText("", near, COMPLETION_WEIGHT)] if near else []),
            ),
            vector=None,  # words alone find as much, and an embedder takes longer than the next letter
            language=language,
            filters=turn.request.filters,
            lexical_weight=1.0,
            vector_weight=0.0,
            other_language=settings.tuning.other_language,
            sureness=GUESSED if corrected.unsure else 1.0,
            boosts=near_page(turn.request.page),
            depth=DEPTH,
            limit=turn.request.limit or settings.top_k,
            per_page=settings.tuning.per_page,
            versions=named_versions(corrected.text),
        )

    def _completions(self, last: str, vocabulary: Vocabulary) -> tuple[str, ...]:
        """Returns completions of the last word, without stopwords, which begin most sentences and say nothing."""
        if not last:
            return ()
        words = vocabulary.completions(last, 2 * COMPLETIONS)
        return tuple(word for word in words if word not in self._stopwords and word != last)[:COMPLETIONS]

    async def _rescored(self, generation: Generation, query: Query, vocabulary: Vocabulary) -> Legs:
        legs = await generation.search(query)
        chunks = {chunk.id: chunk for chunk in await generation.fetch([candidate.id for candidate in legs.lexical])}
        most = max((candidate.score for candidate in legs.lexical), default=1.0)
        words = Weighted.of(_words(query, query.language), vocabulary, generation.info.chunks)
        scored = [
            candidate._replace(score=words.best(chunks[candidate.id])[0] + OF_BM25 * candidate.score / most)
            for candidate in legs.lexical
            if candidate.id in chunks
        ]
        return Legs(tuple(sorted(scored, key=lambda candidate: (-candidate.score, candidate.id))))


def query_words(turn: Turn) -> QueryWords:
    """The words that were searched for, without stopwords."""
    open_end, language = turn.request.as_you_type, turn.asked.language
    if turn.search and open_end:
        return _words(turn.search.query, language)
    return QueryWords.of(turn.search.query.texts[0].text if turn.search else turn.asked.text, language)


def _words(query: Query, language: str) -> QueryWords:
    """The words of what is typed; its texts are the query, the completions of the last word, and the word that was perhaps meant by it."""
    typed, _, *near = query.texts
    return QueryWords.of(typed.text, language, open_end=True, near=near[0].text if near else "")


def sections_of(turn: Turn) -> list[Section | None]:
    """Of each hit the section that has the words of the query best."""
    words = query_words(turn)
    weighted = Weighted(words, tuple(1 / len(words.words) for _ in words.words))
    return [weighted.best(hit.chunk)[1] for hit in turn.hits]


def _corrected(typed: str, vocabulary: Vocabulary) -> str:
    """The query with mistyped words replaced by words of the index."""
    words = typed.split()
    last, letters = len(words) - 1, 0
    for i in range(last, -1, -1):
        letters += len(words[i])
        if letters > CORRECTED:
            break
        if len(runs(words[i])) == 1:
            folded = fold(words[i])
            corrected = vocabulary.corrected(folded, whole=i < last)
            words[i] = words[i] if corrected == folded else corrected
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class Weighted:
    """The words of a query with the weights of their rarity, which add up to 1."""

    words: QueryWords
    weights: tuple[float, ...]

    @classmethod
    def of(cls, words: QueryWords, vocabulary: Vocabulary, chunks: int) -> Weighted:
        """The words of a query that is being typed."""
        completed = ((word.text, *(vocabulary.completions(word.text, 1) if word.open else ())) for word in words.words)
        rare = [math.log1p(chunks / (1 + max(map(vocabulary.count, texts)))) for texts in completed]
        whole = sum(rare) or 1.0
        return cls(words, tuple(weight / whole for weight in rare))

    def best(self, chunk: Chunk) -> tuple[float, Section | None]:
        """Returns how well the chunk's best section has the words, 0..1 and up to `OF_TITLE` for its page's title, and that section,
        the first of equal ones.
        """
        return max(((self._score(fields), section) for section, fields in read(chunk)), key=itemgetter(0))

    def _score(self, fields: Fields) -> float:
        heading, title = fields[:2]
        score = named = 0.0
        for word, weight in zip(self.words.words, self.weights, strict=True):
            score += weight * word.best_in(fields, FIELDS) / FIELDS[0]
            named += weight * word.best_in((title,), (1.0,))
        return score - self._surplus(heading) + OF_TITLE * max(0.0, named - self._surplus(title))

    def _surplus(self, heading: str) -> float:
        length = heading.count(" ")
        return OF_LENGTH * max(0, length - 1 - len(self.weights)) / length


_read: OrderedDict[str, tuple[Chunk, tuple[tuple[Section | None, Fields], ...]]] = OrderedDict()


def read(chunk: Chunk) -> tuple[tuple[Section | None, Fields], ...]:
    """The sections of the chunk, each with its fields. Kept, because each letter finds the same chunks again."""
    cached = _read.get(chunk.id)
    if cached is None or cached[0] is not chunk:  # the same text may have got other headings
        above, title = folded_words(chunk.context), folded_words(chunk.title)
        sections = chunk.sections or (None,)
        headings = [folded_words(section.path[-1]) if section and section.path else " " for section in sections]
        texts = [folded_words(section_text(chunk, section)) for section in sections]
        fields = ((heading, title, above, text) for heading, text in zip(headings, texts, strict=True))
        cached = _read[chunk.id] = (chunk, tuple(zip(sections, fields, strict=True)))
    _read.move_to_end(chunk.id)
    if len(_read) > READ:
        _read.popitem(last=False)
    return cached[1]
