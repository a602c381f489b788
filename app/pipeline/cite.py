"""Source links, by code and never by the model: the sections that the answer names by number, else all passages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from app.core.prompts import Language, Prompts
from app.core.turn import Done, Event, Events, Failure, Source, Text, Turn
from app.core.types import Hit
from app.pipeline.counterparts import Counterpart, counterparts
from app.pipeline.links import LinkFilter, markdown_link
from app.pipeline.sections import best_section, stems
from app.pipeline.step import Changes

SNIPPET = 300
_TOKEN = re.compile(r"`+|\[\s*\d{1,3}(?:\s*[,;]\s*\d{1,3})*\s*\](?!\()")
_UNFINISHED = re.compile(r"(?:\[[\s\d,;]{0,20}|\[[\s\d,;]{1,20}\]|`+)$")


@dataclass(frozen=True)
class Cite:
    """Renumbers citations in the order of their first use, drops those without a passage and addresses that no passage
    has, and appends the links.
    """

    prompts: Prompts
    name = "cite"
    reads = ("question", "language", "hits", "events")
    uses = ("referred", "refined", "keywords")
    writes = ("events",)
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The events with the source list before the end."""
        return {"events": self._cited(turn)}

    async def _cited(self, turn: Turn) -> Events:
        known = [text for hit in turn.hits for text in (hit.chunk.text, hit.chunk.url)]
        links = LinkFilter([*known, *turn.request.attached])
        assert turn.events is not None
        # looked up while the model thinks about its first word
        looked_up = asyncio.create_task(counterparts(turn))
        citations: Citations | None = None
        try:
            async with aclosing(turn.events) as events:
                async for event in events:
                    if citations is None:
                        citations = Citations(passages_of(turn, await looked_up), turn.request.first_number)
                    for cited in self._mapped(event, citations, links, turn):
                        yield cited
        finally:
            looked_up.cancel()

    def _mapped(self, event: Event, citations: Citations, links: LinkFilter, turn: Turn) -> list[Event]:
        if not isinstance(event, Text):
            return [*self._closing(event, citations, links, turn), event]
        if event.quoted:
            return [Text(citations.rewrite(links.rest()) + citations.rest() + event.text)]
        text = citations.rewrite(links.feed(event.text))
        return [Text(text)] if text else []

    def _closing(self, event: Event, citations: Citations, links: LinkFilter, turn: Turn) -> list[Event]:
        """What goes before the last event: text still held back, and where all went well the sources."""
        if not isinstance(event, Done | Failure):
            return []
        rest = citations.rewrite(links.rest()) + citations.rest()
        sources = citations.sources() if isinstance(event, Done) else ()
        if sources and turn.request.links:
            rest += source_list(sources, self.prompts.language(turn.language))
        return [*([Text(rest)] if rest else []), *sources]


@dataclass
class Citations:
    """Rewrites [n] as the text goes by; holds back only what may be the beginning of one."""

    passages: tuple[Source, ...]
    first: int = 1  # number of the first source
    _order: list[int] = field(default_factory=list)
    _held: str = ""
    _code: str = ""  # the backticks that opened the code we are in

    def rewrite(self, text: str) -> str:
        """The text that is certain by now, with the numbers that the source list will have."""
        text = self._held + text
        self._held = ""
        if "[" not in text and "`" not in text:
            return text
        if unfinished := _UNFINISHED.search(text):
            self._held = text[unfinished.start() :]
            text = text[: unfinished.start()]
        return _TOKEN.sub(self._replace, text)

    def rest(self) -> str:
        """What was still held back, at the end."""
        held, self._held = self._held, ""
        return _TOKEN.sub(self._replace, held)

    def _replace(self, match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("`"):
            if not self._code:
                self._code = token
            elif self._code == token:
                self._code = ""
            return token
        if self._code:
            return token  # array[1] in a code block is no citation
        numbers = dict.fromkeys(self._number(int(n)) for n in re.findall(r"\d+", token))
        return "".join(f"[{n}]" for n in numbers if n)

    def _number(self, passage: int) -> int:
        """The number that a reader sees for a passage: by section, in order of first use; 0 when there is no such passage."""
        if not 1 <= passage <= len(self.passages):
            return 0
        url = self.passages[passage - 1].url
        first = next(i for i, source in enumerate(self.passages) if source.url == url)
        if first not in self._order:
            self._order.append(first)
        return self._order.index(first) + self.first

    def sources(self) -> tuple[Source, ...]:
        """The cited sections as they are numbered in the text; all passages' sections when none was cited."""
        if not self._order:
            for passage in range(1, len(self.passages) + 1):
                self._number(passage)
        return tuple(
            replace(self.passages[index], number=number) for number, index in enumerate(self._order, self.first)
        )


def passages_of(turn: Turn, others: Mapping[str, Counterpart] | None = None) -> tuple[Source, ...]:
    """Each hit as a source, in the ranking's order, with the section of it that speaks most of the question.

    `others` are pages in the reader's language, by the address of the page that they stand for.
    """
    others = others or {}
    wanted = stems(f"{turn.referred} {turn.question} {turn.refined} {' '.join(turn.keywords.values())}")
    return tuple(
        _source(number, hit, wanted, others.get(hit.chunk.url)) for number, hit in enumerate(turn.hits, start=1)
    )


def _source(number: int, hit: Hit, wanted: set[str], other: Counterpart | None) -> Source:
    chunk = hit.chunk
    section = best_section(chunk, wanted)
    title, url, language = chunk.title, chunk.link_to(section), chunk.language
    snippet = _beginning(chunk.text[section.offset if section else 0 :].strip())
    if other:
        section = other.section(section)
        anchor = f"#{section.anchor}" if section and section.anchor else ""
        title, url, language = other.page.title, other.page.url + anchor, other.page.language
    name = section.path[-1] if section and section.path else ""
    return Source(
        number=number,
        title=title,
        url=url,
        section="" if name == title else name,
        language=language,
        snippet=snippet,
        score=hit.fused,
        translated_from="" if other else chunk.translated_from,
    )


def _beginning(text: str) -> str:
    """The text, cut behind a word where it is long."""
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET].rsplit(maxsplit=1)[0]} …"


def source_list(sources: tuple[Source, ...], language: Language) -> str:
    """The Markdown list of links at the end of an answer; translations and pages in another language are told."""
    lines = [f"\n\n**{language.sources}**\n"]
    lines += [f"{one.number}. {markdown_link(one.name, one.url)}{_told(one, language)}" for one in sources]
    return "\n".join(lines)


def _told(source: Source, language: Language) -> str:
    if source.translated_from:
        return f" ({language.translated_from(source.translated_from)})"
    return f" ({language.written_in(source.language)})" if source.language not in {"", language.code} else ""
