"""Suggests first questions from the headings of the index, and the pages that answers cite most, then those near its top. Only questions
that the index answers with their own section are kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar
from urllib.parse import urlsplit

from app.assistants.assistant import Assistant
from app.citing.headings import headings_of
from app.citing.links import page_title
from app.core.errors import AssistantError, DatabaseError, NoIndex
from app.core.gate import Shared
from app.core.language import Language
from app.core.log_message import LogMessage
from app.core.turn import Message, Question, Request
from app.core.types import Chunk, Filters, Page
from app.index.protocols import Generation
from app.pipeline.registry import upto
from app.pipeline.runner import run
from app.pipeline.steps.relevance import top_pages

log = logging.getLogger("app.assistants")

SUGGESTED = 4  # questions for each language
CENTRAL = 40  # pages near the top whose headings are tried
CHUNKS = 8  # of a page
MOST_TRIED = 16  # searches for each language

TOP = 6  # pages for each language
LOGGED = 1_000  # answers whose pages are counted
KEPT = LOGGED  # pages whose questions are kept
OFTEN = 5  # answers that cite a page, so that a single reader's questions show nowhere

Item = TypeVar("Item")

Suggestions = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Start:
    """What readers can begin with, by language: questions, and addresses of pages with their titles."""

    questions: Suggestions = field(default_factory=dict)
    pages: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def beginning(self, language: str, questions: Sequence[str]) -> Start:
        """The same with these questions before the others in this language."""
        ordered = dict.fromkeys((*questions, *self.questions.get(language, ())))
        return replace(self, questions={**self.questions, language: [*ordered][:SUGGESTED]}) if questions else self


class Suggester:
    """Suggests questions and pages of an assistant once for each generation of its index; `cited` counts pages of the last answers of an assistant."""

    def __init__(self, cited: Callable[[str, int], Awaitable[Counter[str]]] | None = None) -> None:
        self._cited = cited
        self._made: dict[tuple[str, Filters, str], tuple[tuple[int, str], Shared[Any]]] = {}
        self._making = asyncio.Lock()

    async def of(self, assistant: Assistant, patience: float | None = None) -> Start:
        """The assistant's own questions, else those of its index, and pages; empty if the index can't be searched.

        Raises `StillRunning` if they aren't made after `patience` seconds; they are made all the same.
        """
        try:
            return await self._once(assistant, "", lambda: self._make(assistant), patience)
        except NoIndex:
            return Start(assistant.table.suggestions)
        except AssistantError as error:  # the list of models matters more
            log.warning(LogMessage("no suggestions", assistant=assistant.id, error=error))
            return Start(assistant.table.suggestions)

    async def of_page(self, assistant: Assistant, page: Page, patience: float | None = None) -> Sequence[str]:
        """Questions that this page of the index answers, in its language; none for an assistant that has questions of its own.

        Raises `StillRunning` as `of` does, and `AssistantError` if the index can't be searched.
        """
        if assistant.table.suggestions:
            return ()
        return await self._once(assistant, page.url, lambda: self._make_of_page(assistant, page), patience)

    async def _once(
        self, assistant: Assistant, page: str, make: Callable[[], Coroutine[Any, Any, Item]], patience: float | None
    ) -> Item:
        info = (await assistant.store.live()).info
        generation = (info.id, info.built_at)
        asked = (assistant.id, assistant.limits, page)  # a key may be limited to some collections
        known = self._made.pop(asked, None)
        if known is None or known[0] != generation:
            known = generation, Shared[Any]()
        self._made[asked] = known
        if len(self._made) > KEPT:
            del self._made[next(iter(self._made))]  # that nobody has asked for longest
        made: Item = await known[1].get(make, patience)
        return made

    async def _make(self, assistant: Assistant) -> Start:
        async with self._making:
            try:
                cited = await self._cited(assistant.id, LOGGED) if self._cited else Counter[str]()
            except DatabaseError:
                cited = Counter()
            return await suggested(assistant, cited)

    async def _make_of_page(self, assistant: Assistant, page: Page) -> Sequence[str]:
        async with self._making:
            return await suggested_of(assistant, page)


async def suggested(assistant: Assistant, cited: Counter[str]) -> Start:
    """Up to `SUGGESTED` headings of different pages that are cited most or near the top, and the first of these pages. Calls no language model."""
    generation: Generation = await assistant.store.live()
    pages = await generation.first_chunks()
    questions: dict[str, Sequence[str]] = {}
    top: dict[str, Mapping[str, str]] = {}
    for code, language in assistant.prompts.languages.items():
        turn = replace(await assistant.begin(Request((), language=code)), asked=Question(language=code))
        central = [page for page in await top_pages(generation, pages, turn, len(pages)) if page.language == code]
        central = central[1:] or central  # headings of a home page say little
        central = _from_all_parts(central, lambda page: page.url)
        central.sort(key=lambda page: -cited[page.url] if cited[page.url] >= OFTEN else 0)
        central = central[:CENTRAL]
        whole = await generation.chunks_of([page.url for page in central]) if central else {}
        chunks = [chunk for page in central for chunk in whole.get(page.url, ())[:CHUNKS]]
        if titles := {chunk.url: page_title(chunk) for chunk in chunks}:
            top[code] = dict(list(titles.items())[:TOP])
        tried = [] if assistant.table.suggestions else _candidates(chunks, language)[:MOST_TRIED]
        if answered := await _answered(assistant, tried, code):
            questions[code] = answered
    return Start(assistant.table.suggestions or questions, top)


async def suggested_of(assistant: Assistant, page: Page) -> Sequence[str]:
    """Up to `SUGGESTED` headings of the page that it is found by, those that ask or name a task first; none in a language of no answers.
    Calls no language model.
    """
    language = assistant.prompts.languages.get(page.language)
    whole = (await (await assistant.store.live()).chunks_of([page.url])).get(page.url, ())
    chunks = [chunk for chunk in whole if chunk.language == page.language][:CENTRAL]
    tried = _candidates(chunks, language)[:MOST_TRIED] if language else []
    return await _answered(assistant, tried, page.language, reading=page.url)


def _candidates(chunks: Sequence[Chunk], language: Language) -> list[tuple[str, str]]:
    """Headings with the addresses of their pages, the best first; of equal ones, one of each part of the site before its second, and those of
    pages nearer to the top.
    """
    ranks = dict[tuple[str, str], tuple[int, int]]()
    for chunk in chunks:
        for heading in headings_of(chunk, language):
            place = chunk.url, heading.text
            ranks[place] = min(heading.rank, ranks.get(place, heading.rank))
    by_rank = sorted(ranks, key=lambda candidate: ranks[candidate])
    equal = (list(same) for _, same in groupby(by_rank, lambda candidate: ranks[candidate]))
    return [candidate for same in equal for candidate in _from_all_parts(same, itemgetter(0))]


def _from_all_parts(items: Sequence[Item], url_of: Callable[[Item], str]) -> list[Item]:
    """The items in an order in which each part of the site has its first one, then each its second; a part is a folder of the first level that
    tells pages apart.
    """
    folders = [urlsplit(url_of(item)).path.split("/")[:-1] for item in items]
    levels = enumerate(zip(*folders, strict=False))
    common = next((level for level, names in levels if len(set(names)) > 1), min(map(len, folders), default=0))
    before = Counter[str]()
    places = list[int]()
    for folder in folders:
        part = "/".join(folder[common : common + 1])
        places.append(before[part])
        before[part] += 1
    return [item for _, item in sorted(zip(places, items, strict=True), key=itemgetter(0))]


async def _answered(
    assistant: Assistant, candidates: Sequence[tuple[str, str]], language: str, reading: str = ""
) -> list[str]:
    """The headings whose own section is found first and wouldn't be refused, one for each page but that which the reader is `reading`."""
    headings: dict[str, str] = {}
    for url, heading in candidates:
        if len(headings) == SUGGESTED:
            break
        if url != reading and url in headings.values():
            continue
        request = Request((Message("user", heading),), id="suggestion", language=language, page=reading)
        turn = await run(upto(assistant.plans.lookup, "evidence"), await assistant.begin(request))
        first = turn.hits[0].chunk if turn.hits and turn.asked.language == language else None
        if (
            first
            and first.url == url
            and heading in {first.title, *(name for s in first.sections for name in s.path[-1:])}
        ):
            headings[heading] = url
    return list(headings)
