"""Searches otherwise: what one call makes of the question, a made-up answer, other wordings, picked sections, in clusters, or again."""

import ast
import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

from app.core.errors import ModelError, SettingsError
from app.core.gate import Shared
from app.core.settings import Settings
from app.core.turn import Question, Turn
from app.core.types import Boost, Filters, Legs, Page, Vector
from app.index.protocols import Generation
from app.index.ranking.fuse import joined
from app.models import Embedder
from app.pipeline.calls import braced, picked_numbers, unquoted
from app.pipeline.conversation import Asking, ask_about
from app.pipeline.rewriting import fault_of_rewrite, keywords_in, listed, needs_rewriting
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import (
    Retrieve,
    codes_of,
    keywords_for,
    query_for,
)
from app.text.language import LanguageDetector, names_of

_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_QUESTION_LINE = re.compile(r"^[^\w\n]*+question[^\w\n]*?[:=]\s*(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Analyze(Asking):
    """Asks the language model for a JSON object with the question and keywords per language."""

    detector: LanguageDetector
    name = "analyze"
    reads = ("asked",)
    uses = ("sure",)
    writes = ("refined", "keywords")

    async def __call__(self, turn: Turn) -> Changes:
        """Returns what can be read of the two; raises `ModelError` when it is nothing."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        lines = ['  "question": "…"', *(f'  "{code}": ["…", "…", "…"]' for code in codes)]
        form = "{\n" + ",\n".join(lines) + "\n}"
        answer = await ask_about(self, turn, "analyze", languages=names_of(codes, self.prompts), form=form)
        question, keywords = parse_analysis(answer, codes)
        if not needs_rewriting(turn, self.prompts) or fault_of_rewrite(question, turn, self.prompts):
            question = ""
        if not question and not keywords:
            raise ModelError(f"The reply has neither question nor keywords: {answer[:200]!r}; the original is used.")
        refined = Question(question, self.detector.shown(question)) if question else None
        return {"refined": refined, "keywords": keywords}


def parse_analysis(answer: str, codes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The question and the keywords by language of an answer as models give it.

    JSON in a fence or among words, with Python's quotes, trailing commas or keywords one level deeper; where it
    is broken, its lines. What can't be read is empty.
    """
    values = _object(answer)
    if values is None:
        match = _QUESTION_LINE.search(answer)
        return (_question_in(match[1]) if match else ""), keywords_in(answer, codes)
    if isinstance(deeper := values.get("keywords"), Mapping):
        values = {**deeper, **values}
    asked = values.get("question")
    keywords = {code: text for code in codes if (text := _keywords(values.get(code)))}
    return (_question_in(asked) if isinstance(asked, str) else ""), keywords


def _object(answer: str) -> Mapping[str, Any] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            values = read(_TRAILING_COMMA.sub("", braced(answer)))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(values, dict):
            return values
    return None


def _question_in(text: str) -> str:
    question = " ".join(unquoted(text.strip(" \t\n,")).split())
    return question if re.search(r"\w", question) else ""


def _keywords(value: object) -> str:
    words = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return listed(" ".join(word.split()) for word in words if isinstance(word, str))


LONGEST_DRAFT = 2000


@dataclass(frozen=True)
class HypotheticalAnswer(Asking):
    """Asks the model for a passage that could be the answer, and searches for its nearest neighbours."""

    embedder: Embedder
    name = "hyde"
    reads = ("asked", "generation")
    writes = ("hypothetical",)

    async def __call__(self, turn: Turn) -> Changes:
        """The vector leg of the hypothetical answer. Raises `ModelError` if the reply is empty."""
        text = (await ask_about(self, turn, "hyde")).strip()
        if not text:
            raise ModelError("The model returned no hypothetical answer. Searching for the question alone.")
        generation: Generation = turn.generation
        embedder = self.embedder.of(generation.info.recipe.embedder)
        (vector,) = await embedder.embed_passages([text[:LONGEST_DRAFT]])
        results = await generation.search(replace(query_for(turn.asked, turn, self, vector), texts=()))
        return {"hypothetical": Legs(vector=results.vector)}


VARIANTS = 5
DEPTH = 20
LONGEST_WORDING = 300
_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):])\s*")


@dataclass(frozen=True)
class MultiQuery(Asking):
    """Asks the model for other wordings and searches for all of them in parallel."""

    embedder: Embedder
    wordings: int = VARIANTS
    depth: int = DEPTH
    name = "multi_query"
    reads = ("asked", "generation")
    writes = ("variants",)

    async def __call__(self, turn: Turn) -> Changes:
        """The merged legs of all wordings. Raises `ModelError` if the reply has no wordings."""
        answer = await ask_about(self, turn, "multi_query", count=str(self.wordings))
        if not (wordings := parse_questions(answer, self.wordings)):
            raise ModelError(f"The reply has no other wordings: {answer[:200]!r}. Searching for the question alone.")
        generation: Generation = turn.generation
        vectors: list[Vector | None]
        try:
            vectors = list(await self.embedder.of(generation.info.recipe.embedder).embed_queries(wordings))
        except ModelError:  # the words are searched; the probe reports the failing embedder
            vectors = [None] * len(wordings)
        queries = [
            replace(query_for(replace(turn.asked, text=text, referred=""), turn, self, vector), depth=self.depth)
            for text, vector in zip(wordings, vectors, strict=True)
        ]
        return {"variants": joined(*await asyncio.gather(*(generation.search(query) for query in queries)))}


def parse_questions(answer: str, most: int = VARIANTS) -> list[str]:
    """The wordings, one per line, without list marks, quotes and repetitions; at most so many."""
    lines = (unquoted(_MARK.sub("", line)) for line in answer.splitlines())
    usable = dict.fromkeys(line for line in lines if re.search(r"\w", line) and not line.endswith(":"))
    return [line[:LONGEST_WORDING] for line in usable][:most]


SECTION_BOOST = 1.2
"""Factor for pages of the picked sections: a wrong section costs as much as a right one gains (docs/en/step-associate.md)."""
FEWEST_PAGES = 2
MOST_SECTIONS = 40
MOST_PICKED = 5
MOST_TITLES = 8
LONGEST_TITLE = 40
KEPT_LISTS = 32  # for different limits of requests


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the site, titles of its pages, and whether it is a collection.

    `name` is the common beginning of its addresses, or the name of the collection.
    """

    name: str
    titles: tuple[str, ...] = ()
    collection: bool = False


@dataclass(frozen=True)
class Associate(Asking):
    """Shows the model the sections of the site and boosts those that it picks."""

    boost: float = SECTION_BOOST
    _known: dict[tuple[int, Filters], tuple[Part, ...]] = field(default_factory=dict, init=False, compare=False)
    name = "associate"
    reads = ("asked", "generation")
    writes = ("sections",)

    async def __call__(self, turn: Turn) -> Changes:
        """A boost of the picked sections; no changes if none fits or the site has fewer than two."""
        generation: Generation = turn.generation
        listed = await self._sections(generation, turn.request.filters)
        if len(listed) < 2:
            return {}
        lines = "\n".join(f"{number}. {_line(part)}" for number, part in enumerate(listed, start=1))
        answer = await ask_about(self, turn, "associate", sections=lines)
        numbers = picked_numbers(answer, len(listed), self.prompts.vocabulary)
        picked = [listed[number - 1] for number in numbers[:MOST_PICKED]]
        if not picked:
            return {}
        prefixes, collections = (
            tuple(part.name for part in picked if part.collection is named) for named in (False, True)
        )
        return {"sections": Boost(self.boost, url_prefixes=prefixes, collections=collections)}

    async def _sections(self, generation: Generation, filters: Filters) -> tuple[Part, ...]:
        """The sections of the pages that the filters admit."""
        key = generation.info.id, filters
        if key not in self._known:
            pages = [page for page in await generation.pages() if _admitted(page, filters)]
            if len(self._known) >= KEPT_LISTS or any(id_ != key[0] for id_, _ in self._known):
                self._known.clear()  # nobody asks for an older generation again
            self._known[key] = sections(pages)
        return self._known[key]


def _admitted(page: Page, filters: Filters) -> bool:
    # only chunks have the languages of translations, and reading all chunks takes too long
    languages = {page.language, *(filters.languages if page.derived.translations else ())}
    return filters.admits(page.url, page.collection, languages, page.versions)


def sections(pages: Sequence[Page]) -> tuple[Part, ...]:
    """The largest collections, sites and directories that have several pages but not all: collections first, then by address.

    Of those with the same pages, the collection counts, else the innermost directory.
    """
    inside: dict[str, list[Page]] = defaultdict(list)
    named: dict[str, list[Page]] = defaultdict(list)
    for page in pages:
        named[page.collection].append(page)
        for folder in _folders(page.url):
            inside[folder].append(page)
    # outer directories come first, so an inner one with the same pages replaces them, and a collection replaces both
    parts = {_same(pages_inside): Part(url, _titles(pages_inside)) for url, pages_inside in sorted(inside.items())}
    parts |= {
        _same(pages_inside): Part(name, _titles(pages_inside), collection=True)
        for name, pages_inside in sorted(named.items())
        if name
    }
    several = [(count, part) for (_, count), part in parts.items() if FEWEST_PAGES <= count < len(pages)]
    largest = sorted(several, key=lambda found: (-found[0], found[1].name))[:MOST_SECTIONS]
    return tuple(sorted((part for _, part in largest), key=lambda part: (not part.collection, part.name)))


def _same(found: Sequence[Page]) -> tuple[str, int]:
    return min(page.url for page in found), len(found)


def _folders(url: str) -> list[str]:
    start = url.index("//") + 2
    return [url[: match.end()] for match in re.finditer("/", url) if match.start() >= start]


def _titles(pages: Sequence[Page]) -> tuple[str, ...]:
    """Titles of the topmost pages, each once, on one line and without quotation marks."""
    nearest = sorted(pages, key=lambda page: (page.url.rstrip("/").count("/"), page.url))
    titles = (" ".join(page.title.replace('"', "'").split())[:LONGEST_TITLE].strip() for page in nearest)
    return tuple(dict.fromkeys(title for title in titles if title))[:MOST_TITLES]


def _line(part: Part) -> str:
    titles = ", ".join(f'"{title}"' for title in part.titles)
    return f"{unquote(part.name)}: {titles}" if titles else unquote(part.name)


@dataclass(frozen=True)
class Clustered(Step):
    """Makes all searches for vectors of the turn two-stage ones: the nearest clusters first, then the chunks in them."""

    settings: Settings
    _made: dict[tuple[int, str], Shared[Any]] = field(default_factory=dict, compare=False)
    name = "clusters"
    reads = ("generation",)
    writes = ("generation",)
    optional = True

    def __post_init__(self) -> None:
        if not find_spec("sklearn"):
            raise SettingsError(
                "The step clusters needs scikit-learn: pip install 'docs-assistant[clusters]', or leave the step out."
            )

    async def __call__(self, turn: Turn) -> Changes:
        """The generation, searched by clusters. The first question after a run waits for these, which are made once."""
        from app.index.ranking.clusters import ClusteredGeneration, clusters_of  # only for who names the step

        generation, tuning = turn.generation, self.settings.tuning
        key = generation.info.id, generation.info.built_at
        if key not in self._made:
            self._made.clear()  # nobody asks for an older generation again
            self._made[key] = Shared()
        clusters = await self._made[key].get(lambda: clusters_of(generation, tuning.clusters))
        return {"generation": ClusteredGeneration(generation, clusters, tuning.cluster_chunks)}


@dataclass(frozen=True)
class SecondSearch(Asking):
    """Asks the model for other keywords if no passage was good enough, then searches and checks the evidence again."""

    embedder: Embedder
    name = "second_search"
    reads = ("asked", "generation", "hits", "evidence")
    uses = tuple(dict.fromkeys((*Retrieve.uses, *Relevance.uses)))
    writes = ("more_keywords", *Relevance.writes)

    async def __call__(self, turn: Turn) -> Changes:
        """The hits of the second search if they have more evidence; no changes if the first search was good enough."""
        if turn.hits:
            return {}
        tried = "; ".join(turn.keywords.values()) or turn.asked.text
        more = await keywords_for(self, turn, "second_keywords", tried=tried)
        # the vector leg of the first search stays
        again = turn.changed(keywords=more, probe=turn.search)
        retrieve = Retrieve(self.embedder, self.prompts, self.settings)
        hits = (await retrieve(again))["hits"]
        again = replace(again, hits=tuple(hit for hit in hits if hit.chunk.id not in turn.rejected))
        judged = await Relevance(self.prompts, self.settings).judged(
            again, more
        )  # other words than the question's are asked for
        if turn.evidence and judged["evidence"].share <= turn.evidence.share:
            return {"more_keywords": more}
        return {"more_keywords": more, "hits": again.hits, "related": (), **judged}
