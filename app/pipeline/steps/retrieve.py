"""Steps that read the question (its language, its form for synthesis, its keywords) and retrieve the passages: both legs in the pinned
generation, fused into one ranking.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from app.citing.asked import CARRIED
from app.citing.sections import headed_first
from app.core.errors import ModelError, RequestError
from app.core.generation import Recipe, named_versions
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.tables import WatchedFile
from app.core.turn import Message, OwnReply, Question, Search, Text, Turn
from app.core.types import Candidate, Chunk, Filters, Hit, Legs, LexicalText, Query, Vector
from app.index.protocols import Generation
from app.index.ranking.fuse import near_page, rank, with_indirect
from app.index.ranking.legs import offsets
from app.index.retriever import GenerationRetriever, SearchBundle
from app.index.vocabulary import tokens_of
from app.models import Embedder
from app.models.guarded import is_multilingual
from app.models.nodes import hits_of
from app.pipeline.calls import unquoted
from app.pipeline.conversation import Asking, Searching, ask_about, is_brief, off_loop, referred, searched
from app.pipeline.rewriting import (
    TOKENS_OF_KEYWORDS,
    fault_of_rewrite,
    keywords_in,
    needs_rewriting,
    tokens_of_rewrite,
)
from app.pipeline.runner import Changes, Step
from app.text.analysis import analyse, fold, runs
from app.text.language import (
    LanguageDetector,
    form_of,
    is_smalltalk,
    names_of,
    own_words,
    subjects,
    what_is_asked,
    without_stopwords,
    words_outside_code,
)
from app.text.synonyms import Synonyms, reworded, said_in

log = logging.getLogger("app.pipeline")


@dataclass(frozen=True)
class Detect(Step):
    """Takes the last question. Its words decide the language, else the conversation, else the client, else a guess."""

    detector: LanguageDetector
    prompts: Prompts
    synonyms: WatchedFile[Synonyms] | None = None
    name = "detect"
    reads = ("request",)
    writes = ("asked", "reply")

    async def __call__(self, turn: Turn) -> Changes:
        """The question, and the reply to small talk."""
        question = turn.request.question
        if not question:
            raise RequestError("The conversation has no question of the user.", param="messages")
        known = self._shown(question, turn.request.messages) or turn.request.language
        language = known or self.detector.guessed(question)
        words = self.prompts.language(language)
        asked = Question(question, language, not known, referred(turn.request.messages, words))
        synonyms = said_in(asked.in_context, language, self.synonyms.current()) if self.synonyms else ()
        return {
            "asked": replace(asked, synonyms=synonyms) if synonyms else asked,
            "reply": self._greeting(language) if is_smalltalk(question, words) else None,
        }

    def _greeting(self, language: str) -> OwnReply:
        return OwnReply("smalltalk", (Text(self.prompts.render(language, "smalltalk")),))

    def _shown(self, question: str, messages: Sequence[Message]) -> str:
        """The language that the question shows, else the newest question before it, else the newest answer; may be empty."""
        asked, answered = ([m.content for m in reversed(messages) if m.role == role] for role in ("user", "assistant"))
        return next(filter(None, map(self.detector.shown, (question, *asked, *answered[:1]))), "")


@dataclass(frozen=True)
class Refine(Asking):
    """Asks the language model to rewrite a question that is brief or refers to an earlier one, so that it stands on its own."""

    detector: LanguageDetector
    name = "refine"
    reads = ("asked",)
    uses = ("sure",)
    writes = ("refined",)

    async def __call__(self, turn: Turn) -> Changes:
        """The refined question and its language; no changes if none is needed, or the reply is none. Raises `ModelError` for an empty reply."""
        if turn.sure or not needs_rewriting(turn, self.prompts):
            return {}
        reply = unquoted(await ask_about(self, turn, "refine_question", max_tokens=tokens_of_rewrite(turn)))
        if not reply:
            raise ModelError("The refined question is empty: the original is used.")
        if fault := fault_of_rewrite(reply, turn, self.prompts):
            log.info(LogMessage("refined question not used", id=turn.request.id, it=fault))
            return {}
        return {"refined": Question(reply, self.detector.shown(reply))}


@dataclass(frozen=True)
class Keywords(Asking):
    """Gets keywords from the language model, one line per language."""

    name = "keywords"
    reads = ("asked",)
    uses = ("sure",)
    writes = ("keywords",)

    async def __call__(self, turn: Turn) -> Changes:
        """Keywords by language code. Raises `ModelError` if the reply has none."""
        if turn.sure:
            return {}
        return {"keywords": await keywords_for(self, turn, "refine_keywords")}


async def keywords_for(step: Asking, turn: Turn, prompt: str, **values: str) -> dict[str, str]:
    """The keywords by language that the model replies to this prompt of a step. Raises `ModelError` if there are none."""
    codes = codes_of(turn, step.prompts)
    languages, form = names_of(codes, step.prompts), form_of(codes)
    most = TOKENS_OF_KEYWORDS * len(codes)
    reply = await ask_about(step, turn, prompt, max_tokens=most, languages=languages, form=form, **values)
    if not (keywords := keywords_in(reply, codes)):
        raise ModelError(f"The reply has no keywords: {reply[:200]!r}. Searching without them.")
    return keywords


def codes_of(turn: Turn, prompts: Prompts) -> list[str]:
    """The languages of the keywords, the question's first."""
    return [turn.asked.language, *(code for code in prompts.languages if code != turn.asked.language)]


GUESSED = 0.25  # share of the preference for a language if that is a guess: it only decides between equals
OTHER_LANGUAGE_WITH_KEYWORDS = 0.85  # at least: keywords are in both languages, so a hit in either says as much
COMPARED = 10  # of the chunks of a language, in which the words of a question are looked for


@dataclass(frozen=True)
class Probe(Searching):
    """Embeds the question and searches for it while the helper calls are running."""

    name = "probe"
    reads = ("asked", "generation")
    writes = ("probe",)

    async def __call__(self, turn: Turn) -> Changes:
        """The query, without a vector if the embedder failed, and both legs with raw scores."""
        query = query_for(turn.asked, turn, self, await embed(turn.asked, turn, self.embedder))
        return {"probe": Search(query, await turn.generation.search(query))}


@dataclass(frozen=True)
class Retrieve(Searching):
    """Fuses the legs into the best passages; searches for the question and its keywords, if there are any."""

    name = "retrieve"
    reads = ("asked", "generation")
    uses = ("refined", "dates", "sections", "probe", "keywords", "variants", "hypothetical")
    writes = ("search", "hits")

    async def __call__(self, turn: Turn) -> Changes:
        """The query with its legs, and the hits, best first. If the language was a guess, the query has that of the pages."""
        generation: Generation = turn.generation
        question, query, legs = await self._searched(turn)
        language, own_words = await self._language_of_pages(turn, legs.lexical)
        if turn.asked.unsure and language:
            asked = replace(turn.asked, language=language, unsure=False)
            query = query_for(asked, turn, self, query.vector)
            if language != turn.asked.language:
                words = await generation.search(replace(query, vector=None))
                legs = replace(legs, lexical=words.lexical)
            question, query, legs = await self._searched(turn.changed(asked=asked, probe=Search(query, legs)))
        query = replace(query, own_words=own_words)
        if turn.variants or turn.hypothetical:
            legs = with_indirect(legs, turn.variants, turn.hypothetical)
        if query.vector is not None and is_multilingual(generation.info.recipe.embedder):
            centres = await generation.language_centres()
            query = replace(query, language_offsets=offsets(centres, query.vector, query.language))
        bundle = SearchBundle(question.text, query=query, legs=legs)
        hits = await self._with_subjects(turn, question, query, await self._ranked(generation, bundle))
        headed = headed_first(hits, question.text, self.prompts.language(question.language))
        return {"search": Search(query, bundle.legs or legs), "hits": headed}

    async def _with_subjects(self, turn: Turn, question: Question, query: Query, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits; in place of the last ones, the best hit of each subject of a brief question that has no hit of its page yet."""
        language = self.prompts.language(question.language)
        asked = subjects(question.text, language) if is_brief(question.text, language) else []
        own = list[Hit]()
        for subject in asked:
            alone = replace(query, texts=(LexicalText(query.language, subject),), vector=None, limit=1)
            own += await rank(turn.generation, await turn.generation.search(alone), alone)
        known = {hit.chunk.url for hit in hits}
        new = [hit for hit in own if hit.chunk.url not in known][: max(0, len(hits) - 1)]
        if not new:
            return hits
        kept = hits[: query.limit - len(new)]
        score = max(kept[-1].fused, kept[0].fused / len(asked))  # enough to stay
        return (*kept, *(replace(hit, fused=score, boost=1.0) for hit in new))

    async def _ranked(self, generation: Generation, bundle: SearchBundle) -> Sequence[Hit]:
        """The best hits of the legs; the bundle gets the legs as they were ranked."""
        return hits_of(await GenerationRetriever(generation).aretrieve(bundle))

    async def _searched(self, turn: Turn) -> tuple[Question, Query, Legs]:
        """What is searched, and its legs: those of `probe` as far as it searched for the same."""
        generation: Generation = turn.generation
        probe = turn.probe
        if turn.dates.topic and turn.search is None:
            probe = None  # it may have searched for the question with its time
        if probe is None:
            without_time = replace(turn.asked, text=turn.dates.topic) if turn.dates.topic else turn.asked
            vector = await embed(without_time, turn, self.embedder)
        else:
            vector = probe.query.vector
        question = searched(turn)
        query = query_for(question, turn, self, vector, turn.keywords)
        if query.language != turn.asked.language:
            filters = _filters(turn.asked, turn, self.settings)
            query = replace(query, language=turn.asked.language, filters=filters)
        if probe is None:
            return question, query, await generation.search(query)
        if turn.keywords or question is not turn.asked:
            words = await generation.search(replace(query, vector=None))
            return question, query, replace(probe.legs, lexical=words.lexical)
        return question, query, probe.legs

    async def _language_of_pages(self, turn: Turn, leg: Sequence[Candidate]) -> tuple[str, bool]:
        """The language of a guess: that whose pages have most of the question's words; empty if they say nothing. And whether the pages of the
        question's language have all its words, which is asked of a guess and of a single word.

        Code is in no language, so it says less than prose. If the pages of several languages have all the words as well, these are names, whose
        letters say nothing of a language: it is the default one then.
        """
        asked, languages = turn.asked, self.prompts.languages
        text = asked.text if asked.unsure else what_is_asked(asked.text, self.prompts.language(asked.language))
        count = len(runs(text))
        if not asked.unsure and count != 1:
            return "", False
        of = {code: [one.id for one in leg if one.language == code][:COMPARED] for code in languages}
        chunks = await turn.generation.fetch([id_ for ids in of.values() for id_ in ids])
        had = dict.fromkeys((asked.language, *languages), (0.0, 0.0))
        had |= await off_loop(partial(_had, text, chunks), sum(len(chunk.text) for chunk in chunks))
        whole = [code for code in had if had[code][1] == count]
        if not asked.unsure:
            return "", asked.language in whole
        default = self.settings.default_language
        best = max(had, key=lambda code: (had[code], code == default, code == asked.language))
        names = len([code for code in whole if had[code] == had[best]]) > 1
        decided = names or had[best] > had[asked.language]
        return best if decided else "", (best if decided else asked.language) in whole


def _had(text: str, chunks: Sequence[Chunk]) -> dict[str, tuple[float, float]]:
    """The number of words of the text that the chunks of each language have between them: in prose, and anywhere. In prose, a stem or a beginning
    counts half, as mistyped words have these, and so does a word that is only in code.
    """
    prose, anywhere = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for chunk in chunks:
        prose[chunk.language].update(analyse(" ".join(words_outside_code(chunk.text)), chunk.language))
        anywhere[chunk.language].update(tokens_of(chunk))
    words = [(run, fold(run)) for run in runs(text)]
    had = dict[str, tuple[float, float]]()
    for code, said in prose.items():
        known = 0.0
        for run, word in words:
            if word in said:
                known += 1.0
            elif word in anywhere[code] or not said.isdisjoint(analyse(run, code)):
                known += 0.5
        had[code] = (known, sum(word in anywhere[code] for _, word in words))
    return had


async def embed(question: Question, turn: Turn, embedder: Embedder) -> Vector | None:
    """The vector of the question by the embedder of the index; None if that fails. Beside an earlier question that it refers to, it counts
    a little more than its length says.
    """
    try:
        texts = (question.in_context, question.text) if question.referred else (question.text,)
        return await _embedded(texts, turn.generation.info.recipe, embedder)
    except ModelError as error:  # the words find most pages
        log.warning(LogMessage("text not embedded, words alone decide", id=turn.request.id, error=error))
        return None


async def _embedded(texts: Sequence[str], recipe: Recipe, embedder: Embedder) -> Vector:
    of_index = embedder.of(recipe.embedder)
    vector, *own = await of_index.embed_queries(texts)
    if len(vector) != recipe.dimension:
        raise ModelError(
            f"{of_index.name} now returns vectors of {len(vector)} numbers, but the index has {recipe.dimension}:"
            " index the sites again with `docs-assistant ingest --force`."
        )
    if not own:
        return vector
    both = [one + CARRIED * other for one, other in zip(vector, own[0], strict=True)]
    length = math.hypot(*both) or 1.0
    return [number / length for number in both]


def query_for(
    question: Question,
    turn: Turn,
    step: Searching | Asking,
    vector: Vector | None,
    keywords: Mapping[str, str] | None = None,
) -> Query:
    """The query for a question, and for keywords, if there are any, with the limits and boosts of the turn."""
    settings, language = step.settings, question.language
    other = settings.tuning.other_language
    words = step.prompts.language(language)
    asked = [what_is_asked(text, words) for text in (question.text, *reworded(question))]
    texts = [LexicalText(language, " ".join(dict.fromkeys(" ".join(asked).split())) if len(asked) > 1 else asked[0])]
    if keywords:
        texts += [LexicalText(code, text, settings.tuning.keyword_weight) for code, text in keywords.items()]
    elif question.referred:  # keywords already include what the conversation is about
        weight = CARRIED if own_words(question.text, words) else 1.0
        texts.append(LexicalText(language, without_stopwords(question.referred, words), weight))
    share = settings.vector_share(language, keywords=bool(keywords))
    return Query(
        texts=tuple(texts),
        vector=vector,
        language=language,
        filters=_filters(question, turn, settings),
        lexical_weight=1 - share,
        vector_weight=share,
        other_language=other and max(other, OTHER_LANGUAGE_WITH_KEYWORDS * bool(keywords)),
        sureness=GUESSED if question.unsure else 1.0,
        fusion=settings.tuning.fusion,
        exact=settings.tuning.exact,
        boosts=(*(boost for boost in (turn.dates.boost, turn.sections) if boost), *near_page(turn.request.page)),
        recency=turn.dates.recency,
        limit=turn.request.limit or settings.top_k,
        per_page=settings.tuning.per_page,
        versions=named_versions(question.text),
    )


def _filters(question: Question, turn: Turn, settings: Settings) -> Filters:
    """The filters of the turn; for pages in the language of the question alone if others count nothing and it is no guess."""
    if settings.tuning.other_language or question.unsure:
        return turn.request.filters
    return turn.request.filters.narrowed(Filters(languages=(question.language,)))
