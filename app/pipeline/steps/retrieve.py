"""Steps that read the question (its language, its form for synthesis, its keywords) and retrieve the passages: both legs in the pinned
generation, fused into one ranking.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from app.citing.sections import headed_first
from app.core.errors import IndexMismatch, ModelError, RequestError
from app.core.generation import named_versions
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Legs, LexicalText, Query, Vector
from app.index.protocols import Generation
from app.index.ranking.fuse import joined, near_page, rank
from app.index.ranking.legs import offsets
from app.models.protocols import Embedder, Model, for_index, is_multilingual
from app.pipeline.calls import ask_helper, unquoted
from app.pipeline.conversation import helper_messages, referred, searched
from app.pipeline.runner import Changes
from app.text.language import LanguageDetector, form_of, is_smalltalk, names_of, parse, without_stopwords


@dataclass(frozen=True)
class Detect:
    """Takes the last question. Its words decide the language, else the conversation, else the client, else a guess."""

    detector: LanguageDetector
    prompts: Prompts
    name = "detect"
    reads = ("request",)
    uses = ()
    writes = ("question", "language", "unsure", "referred", "smalltalk")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The question, its language and whether that is a guess, the question it refers to, and the reply to small talk."""
        question = turn.request.question
        if not question:
            raise RequestError("The conversation has no question of the user.", param="messages")
        known = self._shown(question, turn.request.messages) or turn.request.language
        language = known or self.detector.guessed(question)
        words = self.prompts.language(language)
        return {
            "question": question,
            "language": language,
            "unsure": not known,
            "referred": referred(turn.request.messages, words),
            "smalltalk": self.prompts.render(language, "smalltalk") if is_smalltalk(question, words) else "",
        }

    def _shown(self, question: str, messages: Sequence[Message]) -> str:
        """The language that the question shows, else the newest question before it, else the newest answer; may be empty."""
        asked, answered = ([m.content for m in reversed(messages) if m.role == role] for role in ("user", "assistant"))
        return next(filter(None, map(self.detector.shown, (question, *asked, *answered[:1]))), "")


LONGEST_QUESTION = 600


@dataclass(frozen=True)
class Refine:
    """Asks the language model to rewrite the question so that it stands on its own."""

    model: Model
    prompts: Prompts
    settings: Settings
    detector: LanguageDetector
    name = "refine"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("refined", "refined_language")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The refined question and its language. Raises `ModelError` for a reply that is empty or too long."""
        if turn.sure:
            return {}
        messages = helper_messages(self.prompts.render(turn.language, "refine_question"), turn, self.prompts)
        answer = unquoted(await ask_helper(self.name, self.model, messages, turn, self.settings))
        if not answer or len(answer) > max(LONGEST_QUESTION, 2 * len(turn.question)):
            raise ModelError(f"The refined question is {'empty' if not answer else 'too long'}: the original is used.")
        return {"refined": answer, "refined_language": self.detector.shown(answer)}


LONGEST_KEYWORDS = 400


@dataclass(frozen=True)
class Keywords:
    """Gets keywords from the language model, one line per language."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "keywords"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("keywords",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """Keywords by language code. Raises `ModelError` if the reply has none."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        system = self.prompts.render(
            turn.language,
            "refine_keywords",
            languages=names_of(codes, self.prompts),
            form=form_of(codes),
        )
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        keywords = parse(answer, codes, LONGEST_KEYWORDS)
        if not keywords:
            raise ModelError(f"The reply has no keywords: {answer[:200]!r}. Searching for the question alone.")
        return {"keywords": keywords}


def codes_of(turn: Turn, prompts: Prompts) -> list[str]:
    """The languages of the keywords, the question's first."""
    return [turn.language, *(code for code in prompts.languages if code != turn.language)]


log = logging.getLogger("app.pipeline")

GUESSED = 0.25  # share of the preference for a language if that is a guess: it only decides between equals
OTHER_LANGUAGE_WITH_KEYWORDS = 0.85  # at least: keywords are in both languages, so a hit in either says as much
REFERRED_WEIGHT = 0.6  # weight of the earlier question's words, relative to the new one's


@dataclass(frozen=True)
class Probe:
    """Embeds the question and searches for it while the helper calls are running."""

    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "probe"
    reads = ("question", "language", "generation")
    uses = ("unsure", "referred")
    writes = ("vector", "legs")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The vector of the question (None if the embedder failed) and both legs with raw scores."""
        vector = await embed(turn, self.embedder)
        query = query_for(turn, self, vector)
        return {"vector": vector, "legs": await turn.generation.search(query)}


@dataclass(frozen=True)
class Retrieve:
    """Fuses the legs into the best passages; searches for the question and its keywords, if there are any."""

    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "retrieve"
    reads = ("question", "language", "generation")
    uses = (
        "unsure", "referred", "refined", "refined_language", "topic", "period", "recency", "sections", "vector", "legs", "keywords", "variants", "hypothetical",
    )  # fmt: skip
    writes = ("search", "legs", "hits")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The query, its legs, and the hits, best first."""
        generation: Generation = turn.generation
        legs, vector = turn.legs, turn.vector
        if turn.topic and turn.search is None:
            legs = None  # the probe may have searched for the question with its time
        if legs is None:
            vector = await embed(replace(turn, question=turn.topic or turn.question), self.embedder)
        asked = searched(turn)
        query = replace(query_for(asked, self, vector, turn.keywords), language=turn.language)
        if legs is None:
            legs = await generation.search(query)
        elif turn.keywords or asked is not turn:
            lexical = (await generation.search(replace(query, vector=None))).lexical
            legs = Legs(lexical, legs.vector)
        legs = joined(legs, turn.variants, turn.hypothetical)
        if vector is not None and is_multilingual(generation.info.recipe.embedder):
            centres = await generation.language_centres()
            query = replace(query, language_offsets=offsets(centres, vector, query.language))
        hits = headed_first(await rank(generation, legs, query), asked.question, self.prompts.language(asked.language))
        return {"search": query, "legs": legs, "hits": hits}


async def embed(turn: Turn, embedder: Embedder) -> Vector | None:
    """The vector of the question, with the earlier one that it refers to; None if the embedder fails.

    Raises `IndexMismatch` if the index was built with another embedder.
    """
    generation: Generation = turn.generation
    recipe = generation.info.recipe
    embedder = for_index(embedder, recipe.embedder)
    if recipe.embedder != embedder.name:
        raise IndexMismatch(
            f"The index was built with the embedder {recipe.embedder}, but {embedder.name} is configured: "
            "configure the old one, or build the index again with docs-assistant ingest."
        )
    try:
        text = f"{turn.referred} {turn.question}" if turn.referred else turn.question
        vector = (await embedder.embed_queries([text]))[0]
    except ModelError as error:  # the words find most pages
        log.warning(LogMessage("question not embedded, searching by words only", id=turn.request.id, error=error))
        return None
    if len(vector) != recipe.dimension:
        raise IndexMismatch(
            f"{embedder.name} now returns vectors of {len(vector)} numbers, but the index has {recipe.dimension}: build it again."
        )
    return vector


class Searching(Protocol):
    """A step that searches."""

    @property
    def prompts(self) -> Prompts:
        """For the stopwords."""
        ...

    @property
    def settings(self) -> Settings:
        """For weights and limits."""
        ...


def query_for(turn: Turn, step: Searching, vector: Vector | None, keywords: Mapping[str, str] | None = None) -> Query:
    """The query for the question of the turn and for keywords, if there are any."""
    settings = step.settings
    question = without_stopwords(turn.question, step.prompts.language(turn.language))
    texts = [LexicalText(turn.language, question)]
    if keywords:
        texts += [LexicalText(code, text, settings.tuning.keyword_weight) for code, text in keywords.items()]
    elif turn.referred:  # keywords already include what the conversation is about
        earlier = without_stopwords(turn.referred, step.prompts.language(turn.language))
        texts.append(LexicalText(turn.language, earlier, REFERRED_WEIGHT))
    share = settings.vector_share(turn.language, turn.generation.info.recipe.embedder, keywords=bool(keywords))
    return Query(
        texts=tuple(texts),
        vector=vector,
        language=turn.language,
        filters=turn.request.filters,
        lexical_weight=1 - share,
        vector_weight=share,
        other_language=max(settings.tuning.other_language, OTHER_LANGUAGE_WITH_KEYWORDS * bool(keywords)),
        sureness=GUESSED if turn.unsure else 1.0,
        fusion=settings.tuning.fusion,
        exact=settings.tuning.exact,
        boosts=(*(boost for boost in (turn.period, turn.sections) if boost), *near_page(turn.request.page)),
        recency=turn.recency,
        limit=turn.request.limit or settings.top_k,
        per_page=settings.tuning.per_page,
        versions=named_versions(turn.question),
    )
