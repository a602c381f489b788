"""Contestants: an assistant of ours in this process, or any service with the OpenAI chat API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any, TypeAlias

import orjson
from pydantic import TypeAdapter

from app.assistants.assistant import Assistant
from app.core.errors import AssistantError, ModelError
from app.core.turn import AnswerRecord, Done, Message, Request, Turn, Usage
from app.core.types import Filters, Passage
from app.index.protocols import Generation
from app.models.openai import Endpoint
from app.pipeline.conversation import CHARACTERS_PER_TOKEN
from app.pipeline.runner import answer, run
from app.text.growth import grown, heading_line
from app.text.literals import addresses
from eval.answers.score import Answer
from eval.files import Cache, Progress, fingerprint, in_parallel
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule


@dataclass(frozen=True)
class OwnAssistant:
    """One of our assistants in this process; its passages are known exactly."""

    assistant: Assistant
    name: str
    fingerprint: str = ""

    async def answer(self, case: Case) -> Answer:
        """The answer without its list of links."""
        start = perf_counter()
        try:
            return replace(await self._answer(case), ms=_since(start))
        except AssistantError as error:
            return Answer(self.name, case.id, ms=_since(start), error=f"{type(error).__name__}: {error}")

    async def _answer(self, case: Case) -> Answer:
        assistant = self.assistant
        turn = await run(assistant.plans.answer, await assistant.begin(Request(case.messages, assistant.id, "eval")))
        record = AnswerRecord(assistant.id, turn=turn)
        async with aclosing(answer(turn)) as events:
            async for event in events:
                record.add(event)
        done, error = record.done or Done(), record.error
        usage = sum((call.usage for call in turn.calls.ended), Usage())
        return Answer(
            self.name,
            case.id,
            without_links("".join(record.texts)),
            shown(turn.passages or [Passage(hit.chunk, (hit,)) for hit in turn.hits]),
            tuple(source.url for source in record.sources),
            extractive=done.extractive,
            error=f"{type(error).__name__}: {error}" if error else "",
            pages=tuple(dict.fromkeys(hit.chunk.url for hit in turn.hits or turn.related)),
            calls=sum(turn.calls.begun.values()),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            refused=not turn.hits,
            failed_steps=tuple(step.step for step in turn.trace if step.error),
            outcome=record.outcome,
            statements=done.verbatim.statements if done.verbatim else 0,
            unproved=len(done.unsupported),
        )


@dataclass(frozen=True)
class RemoteService:
    """A service with the OpenAI chat API: the old bot, another product, a bare model. Its passages aren't known, only what it
    cites.
    """

    name: str
    endpoint: Endpoint
    model: str

    @property
    def fingerprint(self) -> str:
        """The address and the name of the model."""
        return f"{self.endpoint.url}\0{self.model}"

    async def answer(self, case: Case) -> Answer:
        """The answer that the API sends; its links are all addresses in the response and in the text."""
        start = perf_counter()
        body = {"model": self.model, "messages": [asdict(message) for message in case.messages], "stream": False}
        total = self.endpoint.timeout
        try:
            async with self.endpoint.post("chat/completions", body, total=total, wait=total) as response:
                text, links, usage = _read(await response.read(), self.endpoint.url)
        except AssistantError as error:
            return Answer(self.name, case.id, ms=_since(start), error=f"{type(error).__name__}: {error}")
        return Answer(
            self.name,
            case.id,
            without_links(text),
            links=links,
            ms=_since(start),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )


Contestant: TypeAlias = OwnAssistant | RemoteService
"""With another `fingerprint`, of everything that its answers depend on as far as known, saved answers aren't used."""


def without_links(text: str) -> str:
    """The answer without the list of sources at its end: our program writes that list, so the model isn't judged by it."""
    body, mark, rest = text.rpartition("\n\n**")
    heading, end, items = rest.partition("**\n")
    lines = [line for line in items.splitlines() if line.strip()]
    is_list = bool(mark and end and lines) and all("](" in line for line in lines) and len(heading) < 40
    return (body if is_list else text).strip()


def _read(answer: bytes, url: str) -> tuple[str, tuple[str, ...], Usage]:
    try:
        parsed: Mapping[str, Any] = orjson.loads(answer)
        text = parsed["choices"][0]["message"]["content"] or ""
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise ModelError(f"{url} sent no chat completion: {answer[:200]!r}") from error
    links = dict.fromkeys((*_addresses(parsed), *addresses(str(text))))
    usage = parsed.get("usage")
    numbers = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
    return str(text), tuple(links), Usage(*(number if isinstance(number, int) else 0 for number in numbers))


def _addresses(value: Any) -> Iterator[str]:
    """The texts of a response that are web addresses: each product has its sources in fields of other names."""
    if isinstance(value, str):
        if re.fullmatch(r"https?://\S+", value):
            yield value
    elif isinstance(value, Mapping | list):
        for inside in value.values() if isinstance(value, Mapping) else value:
            yield from _addresses(inside)


def _since(start: float) -> float:
    return round((perf_counter() - start) * 1000, 1)


ANSWER = TypeAdapter(Answer)


async def collect(
    contestants: Sequence[Contestant],
    cases: Sequence[Case],
    cache: Cache,
    *,
    parallel: int = 4,
    progress: Progress | None = None,
) -> tuple[Answer, ...]:
    """The answers by contestant, in the order of the cases; a later run asks failed ones again."""
    work = [(contestant, case) for contestant in contestants for case in cases]
    return await in_parallel(work, lambda _, one: _answer(*one, cache), parallel, progress)


async def _answer(contestant: Contestant, case: Case, cache: Cache) -> Answer:
    # without its name, which is only what tables call it
    key = fingerprint(contestant.fingerprint, case.id, *(message.content for message in case.messages))
    if saved := cache.get(key):
        return replace(ANSWER.validate_python(saved), contestant=contestant.name)
    answer = await contestant.answer(case)
    if not answer.error:
        cache.put(key, asdict(answer))
    return answer


FOUND = 10  # chunks of the cited pages, and as many of all pages
LONGEST = 4000  # characters of question and answer that are searched


@dataclass(frozen=True)
class Corpus:
    """The indexed pages, searched as this assistant searches them, without a language model. `documents` finds the page of
    an address; the passages of an answer have at most `tokens`.
    """

    assistant: Assistant
    documents: Documents
    tokens: int

    @classmethod
    async def of(cls, assistant: Assistant, tokens: int, rules: Sequence[Rule] = ()) -> Corpus:
        """The live index of the assistant; `rules` rewrite cited addresses to those of the index."""
        pages = await (await assistant.store.live()).pages()
        return cls(assistant, Documents([page.url for page in pages], rules), tokens)

    async def sourced(self, answer: Answer, case: Case) -> Answer:
        """The answer with the cited pages that are indexed, and with passages: of these pages, then of all pages, those
        that the question and the answer find, grown to sections as for our own answers. One that has passages stays.
        """
        if answer.error or answer.passages:
            return answer
        cited = tuple(dict.fromkeys(url for link in answer.links for url in self.documents.pages(link)))
        everywhere = await self._search(answer, case)
        hits = everywhere.hits
        if cited:
            own = await self._search(answer, case, cited)
            hits = (*(hit for hit in own.hits if hit.chunk.url in cited), *hits)
        first = tuple({hit.chunk.id: hit for hit in reversed(hits)}.values())[::-1]
        generation: Generation = everywhere.generation
        pages = await generation.plain_texts(list(dict.fromkeys(hit.chunk.url for hit in first)))
        passages = grown(first, pages, self.tokens * CHARACTERS_PER_TOKEN)
        return replace(answer, pages=cited or answer.pages, passages=shown(passages))

    async def _search(self, answer: Answer, case: Case, cited: tuple[str, ...] = ()) -> Turn:
        text = f"{case.question}\n{answer.text}"[:LONGEST]
        request = Request((Message("user", text),), self.assistant.id, "eval", limit=FOUND, language=case.language)
        return await self.assistant.search(replace(request, filters=Filters(url_prefixes=cited)))


def shown(passages: Sequence[Passage]) -> tuple[str, ...]:
    """The passages as a model reads them, each below its page and headings."""
    return tuple(f"{heading_line(passage.chunk)}\n{passage.chunk.text}" for passage in passages)


def citing(answers: Sequence[Answer]) -> dict[str, str]:
    """Counts the answers of each contestant that cite an indexed page: with none, the addresses probably differ."""
    names = dict.fromkeys(answer.contestant for answer in answers)
    own = {name: [answer for answer in answers if answer.contestant == name and not answer.error] for name in names}
    return {name: f"{sum(bool(a.pages) for a in had)} of {len(had)} answers" for name, had in own.items()}
