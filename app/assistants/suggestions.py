"""Suggests first questions from the headings of the index. Only those that the index answers with their own section are kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.assistants.assistant import Assistant
from app.citing.links import untagged
from app.core.errors import AssistantError, NoIndex
from app.core.log_message import LogMessage
from app.core.prompts import Language
from app.core.turn import Message, Request
from app.core.types import Chunk
from app.index.protocols import Generation
from app.pipeline.registry import upto
from app.pipeline.runner import run
from app.pipeline.steps.overview import top_pages
from app.text.analysis import fold

log = logging.getLogger("app.assistants")

SUGGESTED = 4  # questions for each language
CENTRAL = 12  # pages near the top whose headings are tried
CHUNKS = 8  # of a page
MOST_TRIED = 16  # searches for each language
LONGEST = 80  # characters
FEWEST_WORDS = 2

Suggestions = Mapping[str, Sequence[str]]


class Suggester:
    """Suggests questions of an assistant once for each generation of its index."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[int, Suggestions]] = {}
        self._making = asyncio.Lock()

    async def of(self, assistant: Assistant) -> Suggestions:
        """The assistant's own suggestions, else those of its index, by language; empty if the index can't be searched."""
        if assistant.suggestions:
            return assistant.suggestions
        try:
            async with self._making:
                return await self._of_index(assistant)
        except NoIndex:
            return {}
        except AssistantError as error:  # the list of models matters more
            log.warning(LogMessage("no suggestions", assistant=assistant.id, error=error))
            return {}

    async def _of_index(self, assistant: Assistant) -> Suggestions:
        generation = (await assistant.store.live()).info.id
        known = self._made.get(assistant.id)
        if known is None or known[0] != generation:
            known = self._made[assistant.id] = (generation, await suggested(assistant))
        return known[1]


async def suggested(assistant: Assistant) -> Suggestions:
    """Up to `SUGGESTED` headings of different pages near the top, by language. Calls no language model."""
    generation: Generation = await assistant.store.live()
    pages = await generation.pages()
    found: dict[str, Sequence[str]] = {}
    for code, language in assistant.languages.items():
        turn = replace(await assistant.begin(Request((), language=code)), language=code)
        central = [page for page in await top_pages(generation, pages, turn, CENTRAL) if page.language == code]
        central = central[1:] or central  # headings of a home page say little
        chunks = await generation.fetch([id_ for page in central for id_ in page.chunk_ids[:CHUNKS]])
        if questions := await _answered(assistant, _candidates(chunks, language)[:MOST_TRIED], code):
            found[code] = questions
    return found


def _candidates(chunks: Sequence[Chunk], language: Language) -> list[tuple[str, str]]:
    """Headings with the addresses of their pages: questions, then titles, then headings, those that begin with a function
    word ("What it costs") last.
    """
    found = dict[tuple[str, str], int]()
    for chunk in chunks:
        for heading in (*(section.path[-1] for section in chunk.sections if section.path), chunk.title):
            words = heading.split()
            if len(words) >= FEWEST_WORDS and len(heading) <= LONGEST and untagged(heading) == heading:
                clause = fold(words[0]) in language.stopwords
                found[chunk.url, heading] = (
                    0 if heading.endswith("?") else 3 if clause else 2 - (heading == chunk.title)
                )
    return sorted(found, key=lambda candidate: found[candidate])


async def _answered(assistant: Assistant, candidates: Sequence[tuple[str, str]], language: str) -> list[str]:
    """The headings whose own section is found first and wouldn't be refused, one for each page."""
    kept: dict[str, str] = {}
    for url, heading in candidates:
        if len(kept) == SUGGESTED:
            break
        if url in kept:
            continue
        request = Request((Message("user", heading),), id="suggestion", language=language)
        turn = await run(upto(assistant.lookup, "evidence"), await assistant.begin(request))
        first = turn.hits[0].chunk if turn.hits and turn.language == language else None
        if (
            first
            and first.url == url
            and heading in {first.title, *(name for s in first.sections for name in s.path[-1:])}
        ):
            kept[url] = heading
    return list(kept.values())
