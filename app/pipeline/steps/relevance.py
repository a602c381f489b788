"""Steps that judge what was found: whether it answers the question, and an overview of the pages for a question that is too wide."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from urllib.parse import urlsplit

from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Evidence, Question, Turn
from app.core.types import Candidate, Hit
from app.index.protocols import Generation
from app.index.ranking.fuse import rank
from app.index.ranking.units import with_units
from app.index.vocabulary import tokens_of
from app.pipeline.conversation import off_loop, searched
from app.pipeline.rewriting import speak_of
from app.pipeline.runner import Changes, Step
from app.text.analysis import PREFIX_MARK, STEM_MARK, analyse
from app.text.blocks import informal_sentences
from app.text.language import PUNCTUATION, both_ends, is_overview, what_is_asked, without_stopwords
from app.text.synonyms import reworded

SAME_BEGINNING = 0.5  # the share of a word that the passage has only the first letters of
A_PART = 0.25  # the share of an identifier that the passage has only a part of
UNKNOWN_NAME = 3.0  # times the weight of another unknown word
USUAL_MEANING = 0.32  # how near the nearest stretch is between questions that pages answer and others
OF_MEANING = 0.5  # evidence for how much nearer it is
MOST_OF_MEANING = 0.1  # of evidence; the words count more, as embedders differ
WITH_KEYWORDS = 1.3  # times the needed evidence: the best of several wordings has more by chance
MOST_NAMES = 0.7  # share of the words; with more, the text is a title
FEWEST_WORDS = 2  # of a part of the question: a single word is on some page
COMMON = 0.05  # share of the chunks: a single word that is in more says something only in a heading
MOST_ENDS = 16
TAIL = 0.5  # times the evidence: the share of the best score below which hits are left out
_MARKS = PREFIX_MARK + STEM_MARK
_CLAUSE = re.compile(r"(?<=[,;:])\s+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: its tokens, of which a passage needs any one, its language, and whether it is written as a name."""

    tokens: tuple[str, ...]
    language: str
    name: bool = False
    written: str = field(default="", compare=False)

    @property
    def identifier(self) -> str:
        """The token of the whole word if it has others for its parts, as LUM-1093; else empty."""
        parts = any(token[-1] not in _MARKS for token in self.tokens[1:])
        return self.tokens[0] if parts else ""


@dataclass(frozen=True)
class Relevance(Step):
    """Moves all hits to `related` if even the best has too little evidence; else removes the weak ones."""

    prompts: Prompts
    settings: Settings
    name = "relevance"
    reads = ("asked", "hits", "generation")
    uses = ("hits.rerank", "refined", "dates", "keywords", "related", "rejected", "search")
    writes = ("evidence", "hits", "related", "rejected")

    async def __call__(self, turn: Turn) -> Changes:
        """The evidence and the hits: none below it, else those not far behind the best.

        Needed is `min_evidence`, or `WITH_KEYWORDS` times that if keywords were searched too. If the hits don't reach it,
        the question is searched again without the keywords, because bad keywords hide its passages. It isn't if an earlier step
        rejected all hits, and none of those that it rejected comes back.
        """
        asked = searched(turn)
        spoken_of = speak_of(turn.keywords, asked.in_context, self.prompts.language(asked.language))
        return await self.judged(turn, turn.keywords if spoken_of else {})

    async def judged(self, turn: Turn, keywords: Mapping[str, str]) -> Changes:
        """The same, with these keywords as evidence."""
        generation: Generation = turn.generation
        asked = searched(turn)
        texts = self._asked(turn)
        named = frozenset(token for words in texts for word in words if word.name for token in word.tokens)
        alone, texts, own_words = texts, list(texts), texts[0]
        for code, listed in keywords.items():  # whose capitals mean nothing: names are those of the question
            words = _words(listed.split(), code)
            texts.append([replace(word, name=not named.isdisjoint(word.tokens)) for word in words])
        tokens = list(dict.fromkeys(token for words in texts for word in words for token in word.tokens))
        counts = await generation.frequencies(tokens)
        rarity = Rarity(counts, generation.info.chunks)
        by_reranker, needed, hits = reranked(turn.hits), self.settings.min_evidence, turn.hits
        telling = without_stopwords(both_ends(asked.text), self.prompts.language(asked.language)).split()
        if len(telling) == 1 and _in_passing(alone[0], hits, rarity):
            alone, texts = [], texts[len(alone) :]
        nearness = _nearness(turn)
        evidence = max(await best_coverage(texts, hits, rarity, nearness), by_reranker)
        if turn.keywords and by_reranker < needed:
            own = await _without_keywords(turn) if hits and evidence < needed * WITH_KEYWORDS else ()
            if own and (by_question := await best_coverage(alone, own, rarity, nearness)) >= needed:
                evidence, hits = by_question, own
            else:
                needed *= WITH_KEYWORDS
        unknown = _unknown(asked.text, own_words, rarity)
        near = any(map(rarity.has, own_words)) or nearness > 0
        judged: Changes = {"evidence": Evidence(evidence, needed, unknown, near)}
        if evidence < needed:
            return {**judged, "hits": (), **({"related": tuple(hits)} if hits else {})}  # else an earlier step's stay
        remaining = without_tail(hits, TAIL * evidence)
        return {**judged, "hits": remaining} if remaining != turn.hits else judged

    def _asked(self, turn: Turn) -> list[list[Word]]:
        """The words of the question, of parts of it, and of both with synonyms of the site: a passage needs those of any."""
        asked = searched(turn)
        others = (replace(asked, text=wording, referred="") for wording in reworded(asked))
        return [words for question in (asked, *others) for words in self._asked_by(question)]

    def _asked_by(self, asked: Question) -> list[list[Word]]:
        referred, question = both_ends(asked.referred), both_ends(asked.text)
        whole = f"{referred} {question}".strip()
        language = self.prompts.language(asked.language)
        nouns = language.traits.nouns_capitalised
        named = names(referred, nouns=nouns) | names(question, nouns=nouns)
        telling, of_question = (frozenset(cut(whole, language).split()) for cut in (what_is_asked, without_stopwords))
        asked_for = ends(question, self.prompts.vocabulary.abbreviations)
        texts = [whole, *(f"{referred} {end}" for end in asked_for)]
        words = [[word for word in text.split() if word in telling] for text in texts]
        if telling != of_question:  # no page needs words that only ask, but those that it has count
            words.append([word for word in whole.split() if word in of_question])
        return [
            _words(text_words, asked.language, named)
            for i, text_words in enumerate(words)
            if i == 0 or len(text_words) >= FEWEST_WORDS
        ]


def _nearness(turn: Turn) -> float:
    """The evidence, also negative, for how near the nearest stretch is to the question in meaning."""
    if turn.search is None or turn.search.legs.meaning is None:
        return 0.0
    evidence = OF_MEANING * (turn.search.legs.meaning - USUAL_MEANING)
    return max(-MOST_OF_MEANING, min(MOST_OF_MEANING, evidence))


async def _without_keywords(turn: Turn) -> tuple[Hit, ...]:
    """The hits of the question without the keywords."""
    if turn.search is None:
        return ()
    query = replace(turn.search.query, texts=turn.search.query.texts[:1])
    legs = await with_units(turn.generation, await turn.generation.search(query), query)
    hits = await rank(turn.generation, legs, query)
    return tuple(hit for hit in hits if hit.chunk.id not in turn.rejected)


def ends(question: str, abbreviations: Collection[str] = ()) -> list[str]:
    """Parts of the text that may be the real question: the sentence with the question mark, else the last one, and the
    rest of it from each clause on. People greet, introduce themselves, and then ask.
    """
    sentences = informal_sentences(question.strip(), abbreviations)
    asking = [sentence for sentence in sentences if sentence.endswith("?")] or sentences[-1:]
    clauses = [_CLAUSE.split(sentence) for sentence in asking]
    starts = [(clause, i) for clause in clauses for i in range(len(clause))][-MOST_ENDS:]
    return [end for end in dict.fromkeys(" ".join(clause[i:]) for clause, i in starts) if end != question.strip()]


def names(text: str, *, nouns: bool = False) -> frozenset[str]:
    """The words that are written as names: with a capital that no sentence start, title or shouting explains.

    If the language writes `nouns` with a capital, only a capital after the first letter makes a name.
    """
    capitalised, inner, begins = set(), [], True
    for word in text.split():
        letters = [letter for letter in word if letter.isalpha()]
        capital = any(letter.isupper() for letter in (letters[1:] if begins or nouns else letters))
        if capital and len(letters) > 1:
            capitalised.add(word)
        if not begins and len(letters) > 1:  # the English I is no name
            inner.append(capital)
        begins = word.endswith((".", "!", "?", ":"))
    return frozenset(capitalised) if sum(inner) <= MOST_NAMES * len(inner) else frozenset()


def reranked(hits: Sequence[Hit]) -> float:
    """The best score of the reranker, which compares meanings across languages; 0 without a reranker."""
    return max((hit.rerank or 0.0 for hit in hits), default=0.0)


def without_tail(hits: Sequence[Hit], share: float) -> tuple[Hit, ...]:
    """The first hit, and the hits with at least this share of the best fused score; reranked hits all stay.

    A hit stays if it reaches the share with boosts or without them, so that the boost of one hit removes no other.
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
    """Weights of words: their inverse document frequency, as in BM25."""

    counts: Mapping[str, int]
    chunks: int

    def of(self, word: Word) -> float:
        """The weight, above 0; largest for a word that isn't in the index, and more for such a name.

        An identifier of the index is as rare as the whole: parts of it may be everywhere.
        """
        counted = (whole,) if (whole := self.known(word)) else word.tokens
        count = max((self.counts.get(token, 0) for token in counted if not token.endswith(PREFIX_MARK)), default=0)
        rarity = math.log(1 + (max(self.chunks, count) - count + 0.5) / (count + 0.5))
        return UNKNOWN_NAME * rarity if word.name and not count else rarity

    def common(self, word: Word) -> bool:
        """True if the word is in so many texts that it tells none of them from the others."""
        return max((self.counts.get(token, 0) for token in word.tokens), default=0) > COMMON * self.chunks

    def has(self, word: Word) -> bool:
        """True if the index has the word or its stem."""
        return any(self.counts.get(token) for token in word.tokens if not token.endswith(PREFIX_MARK))

    def known(self, word: Word) -> str:
        """The token of the whole word if it is an identifier of the index, or has a number that is an identifier's; else empty."""
        return (
            whole if (whole := word.identifier) and (self.counts.get(whole) or any(map(str.isdecimal, whole))) else ""
        )


def _words(text: Sequence[str], language: str, named: Collection[str] = ()) -> list[Word]:
    return [
        Word(tokens, language, word in named, word)
        for word in dict.fromkeys(text)
        if (tokens := tuple(analyse(word, language)))
    ]


@dataclass(frozen=True, slots=True)
class PassageTokens:
    """The tokens and the language of a hit."""

    tokens: frozenset[str]
    language: str


def _passages(hits: Sequence[Hit]) -> list[PassageTokens]:
    return [PassageTokens(frozenset(tokens_of(hit.chunk)), hit.chunk.language) for hit in hits]


def coverage(words: Sequence[Word], passages: Sequence[PassageTokens], rarity: Rarity) -> float:
    """The share (0..1) of the words, weighted by rarity, that the best passage has.

    Of several words, a single one counts if it is the rarest that the index has and the passage is in its language: any word
    is on some page, and the same letters are another word elsewhere.
    """
    if not words or not passages:
        return 0.0
    weights = {word: rarity.of(word) for word in words}
    wholes = {word: rarity.known(word) for word in words}
    rarest = max((weights[word] for word in words if rarity.has(word)), default=0.0)
    most = 0.0
    for passage in passages:
        had = [word for word in words if not passage.tokens.isdisjoint(word.tokens)]
        alone = len(had) == 1 < len(words)
        if not alone or (weights[had[0]] >= rarest and passage.language == had[0].language):
            most = max(most, sum(weights[word] * _share(word, passage.tokens, wholes[word]) for word in had))
    return most / sum(weights.values())


async def best_coverage(
    texts: Sequence[Sequence[Word]], hits: Sequence[Hit], rarity: Rarity, nearness: float = 0.0
) -> float:
    """The largest coverage of any of the texts by a passage, more or less by the `nearness`; 0 without texts or passages."""
    passages = await off_loop(partial(_passages, hits), sum(len(hit.chunk.embedded_text) for hit in hits))
    covered = max((coverage(words, passages, rarity) for words in texts), default=0.0)
    return max(0.0, min(1.0, covered + nearness)) if texts and passages else 0.0


async def says(hit: Hit, text: str, language: str) -> bool:
    """True if a hit has a word of the text, or its stem."""
    (passage,) = await off_loop(partial(_passages, [hit]), len(hit.chunk.embedded_text))
    tokens = {token for word in _words(text.split(), language) for token in word.tokens}
    return any(not token.endswith(PREFIX_MARK) for token in tokens.intersection(passage.tokens))


def _in_passing(words: Sequence[Word], hits: Sequence[Hit], rarity: Rarity) -> bool:
    """True if the question has a single word besides function words, one that many texts have and no heading found, and no name. A heading
    has it also with another ending, as the stems of "klíč" and "klíče" differ.

    What "how much does it cost" asks is not said by sentences in which something costs time.
    """
    if len(words) != 1 or words[0].name or rarity.known(words[0]) or not rarity.common(words[0]):
        return False
    for hit in hits:
        headings = [hit.chunk.title, *(name for section in hit.chunk.sections for name in section.path)]
        headed, forms = analyse(" ".join(headings), hit.chunk.language), words[0].tokens
        if any(token in forms or token.startswith(forms[0]) for token in headed):
            return False
    return True


def _unknown(question: str, words: Sequence[Word], rarity: Rarity) -> tuple[str, ...]:
    """The words of the question that say something and are in no text of the index, as they are written."""
    asked = question.split()
    return tuple(
        plain
        for word in words
        if word.written in asked and not rarity.has(word) and (plain := word.written.strip(PUNCTUATION))
    )


def _share(word: Word, passage: frozenset[str], whole: str) -> float:
    tokens = passage.intersection(word.tokens)
    if not tokens:
        return 0.0
    if whole and whole not in tokens:
        return A_PART
    return SAME_BEGINNING if all(token.endswith(PREFIX_MARK) for token in tokens) else 1.0


MOST_PAGES = 10


@dataclass(frozen=True)
class Overview(Step):
    """Replaces the hits of "What does this documentation cover?", which no single passage answers."""

    prompts: Prompts
    name = "overview"
    reads = ("asked", "hits", "generation")
    uses = ("related",)
    writes = ("hits", "related", "overview")
    optional = True
    _listed: dict[int, tuple[Candidate, ...]] = field(default_factory=dict, init=False)

    async def __call__(self, turn: Turn) -> Changes:
        """The first chunk of each home page and of the pages next to it; nothing for any other question."""
        if not is_overview(turn.asked.text, self.prompts.language(turn.asked.language)):
            return {}
        pages = await top_pages(turn.generation, await self._pages(turn.generation), turn)
        chunks = await turn.generation.fetch([page.id for page in pages])
        hits = tuple(Hit(chunk, fused=1.0) for chunk in chunks)
        return {"hits": hits, "related": (), "overview": True} if hits else {}

    async def _pages(self, generation: Generation) -> tuple[Candidate, ...]:
        """The first chunks of all pages. They are kept until the next generation, because reading them takes long on large sites."""
        if (id_ := generation.info.id) not in self._listed:
            pages = await generation.first_chunks()
            self._listed.clear()
            self._listed[id_] = pages
        return self._listed[id_]


async def top_pages(
    generation: Generation, pages: Sequence[Candidate], turn: Turn, most: int = MOST_PAGES
) -> list[Candidate]:
    """The home page of each collection in the reader's language, if there is one; then the pages nearest to the top, by their
    first chunks.

    Among pages of one depth, those that a home page links to come first, in its order.
    """
    filters = turn.request.filters
    admitted = [page for page in pages if filters.admits(page.url, page.collection, {page.language}, page.versions)]
    own = [page for page in admitted if page.language == turn.asked.language] or admitted
    depths = {page.url: len(list(filter(None, urlsplit(page.url).path.split("/")))) for page in own}
    homes = list(_homes(own, depths))
    whole = [await generation.page(home.url) for home in homes[:most]]
    linked = "\n".join(page.markdown for page in whole if page)

    def rank(page: Candidate) -> tuple[int, int, str]:
        place = linked.find(f"({page.url}")
        return depths[page.url], place if place >= 0 else len(linked), page.url

    others = sorted((page for page in own if page not in homes), key=rank)
    return [*homes, *others][:most]


def _homes(pages: Sequence[Candidate], depths: Mapping[str, int]) -> Iterator[Candidate]:
    """Of each collection, the page with the shortest path."""
    for collection in dict.fromkeys(page.collection for page in pages):
        of_it = (page for page in pages if page.collection == collection)
        yield min(of_it, key=lambda page: (depths[page.url], len(page.url), page.url))
