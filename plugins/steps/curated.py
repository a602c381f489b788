"""Curated answers and pinned pages: for questions like these, an editor wrote what to say, or which page is read first.

A question is like those of an entry if it has only words of theirs, all words that they share, in their order, and if its vector is near
to that of one of them. So a question about something else never gets the entry, as long as a word tells the difference.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from app.core.errors import AssistantError, IndexDamaged
from app.core.language import Language
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.turn import OwnReply, Text, Turn
from app.core.types import Hit, Vector
from app.index.protocols import Generation, Store
from app.models import Embedder
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.cite import quoted, source_list, source_of
from app.text.analysis import analyse, fold, runs

log = logging.getLogger("app.pipeline")

NEAR = 0.8
"""The least cosine of the question and one of the entry's. To many embedders, "delete a volume" is nearer than that to "create a
volume", so the words decide, and the cosine keeps out what has the same words in another sense."""
FRESH = 1.0
"""Seconds for which the list is used without being read again. A save takes as long, so that what is saved is in use everywhere."""
KEPT_VERSIONS = 50
_SIGN = re.compile(r"[+#/\\$%&*=<>@|~^]")


@dataclass(frozen=True, slots=True)
class Entry:
    """For `questions` like these in this language: the `answer` to give, or without one, the `page` that is read first.

    The answer cites the page, whose address may have a fragment.
    """

    questions: tuple[str, ...]
    language: str
    page: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """The entries from a time on, and who saved them."""

    version: int
    at: str
    by: str
    entries: tuple[Entry, ...]


async def versions_of(store: Store) -> tuple[Version, ...]:
    """The kept versions, the newest first. Raises `IndexDamaged` if they can't be read."""
    try:
        return _VERSIONS.validate_python((await store.kept("curated")).get("versions", ()))
    except ValidationError as error:
        raise IndexDamaged(f"The curated answers that are kept with the index are damaged ({error!r}).") from error


_VERSIONS = TypeAdapter(tuple[Version, ...])


def telling(question: str, language: Language) -> tuple[str, ...]:
    """The words that tell what is asked, in their order: all but function words, but with those that ask or deny, and signs."""
    small = language.traits.stopwords - language.questions.question_words - language.replies.negations
    told = [run for run in runs(question) if fold(run) not in small]
    words = [_word(run, language) for run in told]
    signs = [word for word in question.split() if _SIGN.search(word) or word.startswith("-")]
    return (*words, *(sign.strip(".,?!").casefold() for sign in signs))


def _word(run: str, language: Language) -> str:
    """The token that words of the same beginning or stem share; the whole of what has digits or signs, or is too long for one."""
    whole = fold(run)  # capitals inside don't part it
    tokens = analyse(whole, language.code) if run.isalpha() else ()
    return tokens[-1] if tokens else whole


def other_words(said: Sequence[str], phrasings: Iterable[Sequence[str]]) -> frozenset[str]:
    """The words by which a question differs from such ones; none if it is worded like them."""
    sets = [frozenset(one) for one in phrasings]
    words = frozenset(said)
    if not words or words in sets:
        return frozenset() if words else frozenset().union(*sets)
    shared, every = frozenset.intersection(*sets), frozenset().union(*sets)
    if not shared or len(words) < min(map(len, sets)):
        return min((words ^ one for one in sets), key=len)
    return (words - every) | (shared - words)


def in_order(said: Sequence[str], phrasing: Sequence[str]) -> bool:
    """True if the words that both have come in the same order: "from A to B" isn't "from B to A"."""
    return [word for word in said if word in phrasing] == [word for word in phrasing if word in said]


@dataclass(frozen=True, slots=True)
class Match:
    """How near a question is to an entry: the cosine to the nearest of its questions, and the words by which it differs."""

    cosine: float
    words: frozenset[str]
    ordered: bool

    @property
    def like(self) -> bool:
        """True if the question gets the entry."""
        return self.cosine >= NEAR and not self.words and self.ordered


@dataclass(frozen=True, slots=True)
class Known:
    """Entries with the words and vectors of their questions."""

    entries: tuple[Entry, ...]
    words: tuple[tuple[tuple[str, ...], ...], ...]
    vectors: tuple[Any, ...]

    @classmethod
    async def of(cls, entries: Sequence[Entry], prompts: Prompts, embedder: Embedder) -> Known:
        """Reads and embeds the questions."""
        words = tuple(
            tuple(telling(one, prompts.language(entry.language)) for one in entry.questions) for entry in entries
        )
        vectors = [unit(await embedder.embed_queries(list(entry.questions))) for entry in entries]
        return cls(tuple(entries), words, tuple(vectors))

    def match(self, at: int, said: Sequence[str], vector: Vector) -> Match:
        """How near the question with these words and this vector is to the entry at this place."""
        cosine = float(np.max(self.vectors[at] @ unit([vector])[0]))
        ordered = any(in_order(said, one) for one in self.words[at])
        return Match(round(cosine, 4), other_words(said, self.words[at]), ordered)


def unit(vectors: Sequence[Vector]) -> Any:
    """The vectors with a length of 1."""
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Curated(Step):
    """Gives the curated answer of a question, or puts its pinned page before the other hits."""

    embedder: Embedder
    prompts: Prompts
    store: Store | None = None
    name = "curated"
    reads = ("asked", "generation", "hits")
    uses = ("search",)
    writes = ("hits", "reply")
    optional = True
    _embedded: dict[str, tuple[Version | None, Known | None]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _read: dict[str, tuple[float, Version | None]] = field(default_factory=dict, init=False, repr=False, compare=False)

    async def __call__(self, turn: Turn) -> Changes:
        """The answer, which ends the run, or the hits; nothing for other questions, or ones that need what was said before."""
        asked, vector = turn.asked, turn.search.query.vector if turn.search else None
        if self.store is None or vector is None or asked.referred or turn.request.attached:
            return {}
        if not (known := await self._known(self.store, self.embedder.of(turn.generation.info.recipe.embedder))):
            return {}
        said = telling(asked.text, self.prompts.language(asked.language))
        for at, entry in enumerate(known.entries):
            if entry.language == asked.language and (match := known.match(at, said, vector)).like:
                hit = await self._hit(turn, entry, match)
                if hit and entry.answer:
                    return {"reply": self._answer(turn, entry, hit)}
                if hit:
                    return {"hits": (hit, *(one for one in turn.hits if one.chunk.id != hit.chunk.id))}
        return {}

    async def _known(self, store: Store, embedder: Embedder) -> Known | None:
        """The entries of the list, embedded again for a new version or another embedder."""
        newest = await self._newest(store)
        version, known = self._embedded.get(embedder.name, (None, None))
        if newest != version:
            known = await Known.of(newest.entries, self.prompts, embedder) if newest else None
            self._embedded[embedder.name] = newest, known
        return known if known and known.entries else None

    async def _newest(self, store: Store) -> Version | None:
        """The newest version of the list, read again after `FRESH`."""
        read, newest = self._read.get("newest", (-math.inf, None))
        if time.monotonic() - read >= FRESH:
            begun = time.monotonic()
            newest = next(iter(await versions_of(store)), None)
            self._read["newest"] = begun, newest
        return newest

    async def edition(self) -> int:
        """The number of the newest version, 0 before the first; also while the list can't be read, of which the step tells."""
        try:
            newest = await self._newest(self.store) if self.store else None
        except AssistantError:
            return 0
        return newest.version if newest else 0

    async def _hit(self, turn: Turn, entry: Entry, match: Match) -> Hit | None:
        """The best passage of the page; None if the index or the limits of the key don't have it."""
        assert turn.search is not None
        generation: Generation = turn.generation
        url, query = entry.page.partition("#")[0], turn.search.query
        page = await generation.page(url)
        if page is None or not query.filters.admits(url, page.collection, (page.language,)):
            log.warning(LogMessage("page of a curated answer isn't there", url=url))
            return None
        if found := next((hit for hit in turn.hits if hit.chunk.url == url), None):
            return found
        chunks = (await generation.chunks_of([url])).get(url, ())
        vectors = await generation.vectors([chunk.id for chunk in chunks])
        near = {id_: float((unit([one]) @ unit([query.vector or ()]).T)[0, 0]) for id_, one in vectors.items()}
        if not chunks:
            return None
        best = max(chunks, key=lambda chunk: near.get(chunk.id, -1.0))
        return Hit(best, cosine=near.get(best.id), fused=max([match.cosine, *(hit.fused for hit in turn.hits)]))

    def _answer(self, turn: Turn, entry: Entry, hit: Hit) -> OwnReply:
        language = self.prompts.language(turn.asked.language)
        number = turn.request.first_number
        source = replace(source_of(number, hit, None), url=entry.page)
        text = f"{quoted(entry.answer, (entry.page,))} [{number}]\n\n*{language.texts.curated}*"
        links = source_list((source,), language) if turn.request.links else ""
        return OwnReply("curated", (Text(text + links, own=True), source))
