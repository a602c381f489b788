"""Suggests first questions from the headings of the index. Only those that the index answers with their own section are kept."""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.assistants.assistant import Assistant
from app.citing.links import untagged
from app.core.errors import AssistantError, NoIndex
from app.core.gate import Shared
from app.core.language import Language
from app.core.log_message import LogMessage
from app.core.turn import Message, Question, Request
from app.core.types import Chunk, Filters
from app.index.protocols import Generation
from app.pipeline.registry import upto
from app.pipeline.runner import run
from app.pipeline.steps.relevance import top_pages
from app.text.analysis import fold
from app.text.units import blocks_of

log = logging.getLogger("app.assistants")

SUGGESTED = 4  # questions for each language
CENTRAL = 40  # pages near the top whose headings are tried
CHUNKS = 8  # of a page
MOST_TRIED = 16  # searches for each language
LONGEST = 80  # characters
FEWEST_WORDS = 2
TELLING_WORDS = 2  # besides those of any text: with fewer, a heading says little without its page
QUESTION_MARKS = ("?", "\uff1f", "\u061f")  # also those of Chinese, Japanese and Arabic
PUNCTUATION = re.compile(r"[:;,()]")
_STEP = re.compile(r"\s*\d{1,3}[.)]\s")

Suggestions = Mapping[str, Sequence[str]]


class Suggester:
    """Suggests questions of an assistant once for each generation of its index."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Filters], tuple[tuple[int, str], Shared[Suggestions]]] = {}
        self._making = asyncio.Lock()

    async def of(self, assistant: Assistant, patience: float | None = None) -> Suggestions:
        """The assistant's own suggestions, else those of its index, by language; empty if the index can't be searched.

        Raises `TimeoutError` if they aren't made after `patience` seconds; they are made all the same.
        """
        if assistant.table.suggestions:
            return assistant.table.suggestions
        try:
            shared = await self._of_index(assistant)
            return await asyncio.wait_for(shared.get(lambda: self._make(assistant)), patience)
        except NoIndex:
            return {}
        except AssistantError as error:  # the list of models matters more
            log.warning(LogMessage("no suggestions", assistant=assistant.id, error=error))
            return {}

    async def _of_index(self, assistant: Assistant) -> Shared[Suggestions]:
        info = (await assistant.store.live()).info
        generation = (info.id, info.built_at)
        asked = (assistant.id, assistant.limits)  # a key may be limited to some collections
        known = self._made.get(asked)
        if known is None or known[0] != generation:
            known = self._made[asked] = (generation, Shared())
        return known[1]

    async def _make(self, assistant: Assistant) -> Suggestions:
        async with self._making:
            return await suggested(assistant)


async def suggested(assistant: Assistant) -> Suggestions:
    """Up to `SUGGESTED` headings of different pages near the top, by language. Calls no language model."""
    generation: Generation = await assistant.store.live()
    pages = await generation.first_chunks()
    by_language: dict[str, Sequence[str]] = {}
    for code, language in assistant.prompts.languages.items():
        turn = replace(await assistant.begin(Request((), language=code)), asked=Question(language=code))
        central = [page for page in await top_pages(generation, pages, turn, CENTRAL) if page.language == code]
        central = central[1:] or central  # headings of a home page say little
        whole = await generation.chunks_of([page.url for page in central]) if central else {}
        chunks = [chunk for page in central for chunk in whole.get(page.url, ())[:CHUNKS]]
        if questions := await _answered(assistant, _candidates(chunks, language)[:MOST_TRIED], code):
            by_language[code] = questions
    return by_language


def _candidates(chunks: Sequence[Chunk], language: Language) -> list[tuple[str, str]]:
    """Headings with the addresses of their pages, the best first; of equal ones, those of pages nearer to the top."""
    ranks = dict[tuple[str, str], tuple[int, int]]()
    for chunk in chunks:
        tasks = {block.section for block in blocks_of(chunk) if block.kind == "code" or _STEP.match(block.text)}
        headings = [
            (section.path[-1], number in tasks) for number, section in enumerate(chunk.sections) if section.path
        ]
        for heading, task in (*headings, (chunk.title, False)):
            fits = len(heading.split()) >= FEWEST_WORDS and len(heading) <= LONGEST and untagged(heading) == heading
            if (
                fits
                and heading[0].isalpha()
                and not language.questions.unsuggested & set(_words(f"{chunk.title} {heading}"))
            ):
                rank = _rank(heading, task=task, title=heading == chunk.title, language=language)
                ranks[chunk.url, heading] = min(rank, ranks.get((chunk.url, heading), rank))
    return sorted(ranks, key=lambda candidate: ranks[candidate])


def _rank(heading: str, *, task: bool, title: bool, language: Language) -> tuple[int, int]:
    """Low for what a reader would ask: questions and tasks, whose sections have steps or code; then titles, then headings,
    and those of several parts ("Models: local ones") and those that begin with a function word ("What it costs") last. Of
    questions and tasks, those that say enough come first.
    """
    words = _words(heading)
    telling = min(sum(word not in language.traits.words for word in words), TELLING_WORDS)
    asks = heading.endswith(QUESTION_MARKS) or (words[0] in language.questions.question_words and telling > 1)
    if asks or (task and words[0] not in language.traits.stopwords and not PUNCTUATION.search(heading)):
        return 0, -telling
    if PUNCTUATION.search(heading) or words[0] in language.traits.stopwords:
        return 3, 0
    return (1 if title else 2), 0


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", fold(text)) or [""]


async def _answered(assistant: Assistant, candidates: Sequence[tuple[str, str]], language: str) -> list[str]:
    """The headings whose own section is found first and wouldn't be refused, one for each page."""
    headings: dict[str, str] = {}
    for url, heading in candidates:
        if len(headings) == SUGGESTED:
            break
        if url in headings:
            continue
        request = Request((Message("user", heading),), id="suggestion", language=language)
        turn = await run(upto(assistant.plans.lookup, "evidence"), await assistant.begin(request))
        first = turn.hits[0].chunk if turn.hits and turn.asked.language == language else None
        if (
            first
            and first.url == url
            and heading in {first.title, *(name for s in first.sections for name in s.path[-1:])}
        ):
            headings[url] = heading
    return list(headings.values())
