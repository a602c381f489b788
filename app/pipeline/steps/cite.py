"""Adds the source links. Code makes them, never the model: to the sections that the answer cites, else to all passages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from app.citing.citations import Citations
from app.citing.link_reasons import cited_links, offered_links
from app.citing.links import Addresses, markdown_link, related_list, related_pages, untagged
from app.citing.removals import Removals
from app.citing.rewrite import Rewriter
from app.citing.sections import asked_stems, best_section
from app.citing.translations import Counterpart, counterparts
from app.core.prompts import Language, Prompts
from app.core.turn import Done, Event, Events, Failure, Source, Text, Turn
from app.core.types import Hit
from app.pipeline.conversation import with_answer_language
from app.pipeline.runner import Changes
from app.text.analysis import fold
from app.text.sentences import informal_sentences

SNIPPET = 300
REFUSED = "offered: the model finds no answer in the passages"
LONGEST_REFUSAL = 300  # characters; a longer text is an answer


@dataclass(frozen=True)
class Cite:
    """Renumbers citations in the order of their first use, removes citations and addresses that no passage has, and
    appends the links.
    """

    prompts: Prompts
    images: Literal["site", "none"] = "site"
    name = "cite"
    reads = ("question", "language", "hits", "events")
    uses = ("unsure", "referred", "refined", "refined_language", "keywords", "more_keywords", "choices")
    writes = ("events",)
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The events, with the sources before the last one."""
        return {"events": self._cited(with_answer_language(turn, self.prompts.languages))}

    async def _cited(self, turn: Turn) -> Events:
        assert turn.events is not None
        # runs while the model prepares its first word
        lookup = asyncio.create_task(counterparts(turn))
        answer: _Answer | None = None
        try:
            async with aclosing(turn.events) as events:
                async for event in events:
                    if answer is None:
                        answer = _Answer(turn, self.prompts, await lookup, self.images)
                    for cited in answer.mapped(event):
                        yield cited
        finally:
            lookup.cancel()


class _Answer:
    """Rewrites the events of one answer."""

    def __init__(self, turn: Turn, prompts: Prompts, translations: Mapping[str, Counterpart], images: str) -> None:
        self._turn, self._language, self._others = turn, prompts.language(turn.language), translations
        self._abbreviations = prompts.vocabulary.abbreviations
        languages = prompts.languages.values()
        words = frozenset(word for language in languages for word in language.passage)
        headings = frozenset(name.casefold() for one in languages for name in (one.sources, *one.source_headings))
        passages, and_or = passages_of(turn, translations), prompts.vocabulary.and_or
        self._citations = Citations(passages, turn.request.first_number, words, and_or)
        self._images = images == "site"
        self._pages = tuple(hit.chunk.url for hit in turn.hits) if self._images else ()
        addresses = Addresses(_texts_shown(turn), self._pages)
        removals = Removals(turn.citing.removed, addresses, self._citations) if turn.citing else None
        self._text = Rewriter(addresses, self._citations, headings, removals)
        self._beginning = ""  # as much as shows whether it is a refusal

    def mapped(self, event: Event) -> list[Event]:
        """The event as readers get it; before the last event, the rest of the text and the sources."""
        if not isinstance(event, Text):
            return [*self._closing(event), event]
        if len(self._beginning) <= LONGEST_REFUSAL:
            self._beginning += event.text
        if event.quoted:
            return [Text(self._text.rest() + quoted(event.text, self._pages))]
        text = self._text.feed(event.text)
        return [Text(text)] if text else []

    def _closing(self, event: Event) -> list[Event]:
        """The events before the last one: text that was held back and, after a complete answer, the sources."""
        if not isinstance(event, Done | Failure):
            return []
        rest = self._text.rest()
        sources: tuple[Source, ...] = ()
        if isinstance(event, Done) and not event.extractive and self._refuses():
            rest += related_list(self._turn.hits, self._language)
            if self._turn.citing:
                self._turn.citing.links += offered_links(related_pages(self._turn.hits), REFUSED)
        elif isinstance(event, Done) and not self._turn.choices:
            sources = self._citations.sources()
        if self._turn.citing:
            self._turn.citing.links += cited_links(self._turn, self._citations, sources, self._others)
        if sources and self._turn.request.links:
            rest += source_list(sources, self._language)
        shown = [
            replace(source, snippet=safe_snippet(source.snippet, source.url if self._images else ""))
            for source in sources
        ]
        return [*([Text(rest)] if rest else []), *shown]

    def _refuses(self) -> bool:
        """Whether the model only says that the passages don't answer the question; then none of them is a source."""
        text = self._beginning.strip()
        if self._citations.any or len(text) > LONGEST_REFUSAL or "```" in text or not self._language.no_answer:
            return False
        first = informal_sentences(text.partition("\n")[0], self._abbreviations)[0]
        return bool(re.search(self._language.no_answer, fold(first)))


@lru_cache(maxsize=1000)
def safe_snippet(snippet: str, page: str) -> str:
    """The snippet with images from the host of `page` alone; without any image if `page` is empty.

    Cached, because answers cite the same sections again and again.
    """
    return quoted(snippet, (page,))


def quoted(text: str, pages: tuple[str, ...]) -> str:
    """Text of a page, safe for clients: its links stay; images stay only if they come from the hosts of `pages`."""
    rewriter = Rewriter(Addresses([text], pages))
    return rewriter.feed(text) + rewriter.rest()


def _texts_shown(turn: Turn) -> Iterator[str]:
    """All texts of pages and attachments that the model was given."""
    for hit in turn.hits:
        chunk = hit.chunk
        yield from (chunk.url, chunk.title, *chunk.heading_path, chunk.before, chunk.text, chunk.after)
    yield from turn.request.attached


def passages_of(turn: Turn, translations: Mapping[str, Counterpart] | None = None) -> tuple[Source, ...]:
    """Each hit as a source, in the order of the ranking, with its section that has most words of the question.

    `translations` are pages in the reader's language, by the address of the page that they translate.
    """
    translations = translations or {}
    wanted = asked_stems(turn)
    return tuple(
        _source(number, hit, wanted, translations.get(hit.chunk.url)) for number, hit in enumerate(turn.hits, start=1)
    )


def _source(number: int, hit: Hit, wanted: set[str], translation: Counterpart | None) -> Source:
    chunk = hit.chunk
    section = best_section(chunk, wanted)
    title, url, language = chunk.title, chunk.link_to(section), chunk.language
    snippet = _shortened(chunk.text[section.offset if section else 0 :].strip())
    if translation:
        section = translation.section(section)
        anchor = f"#{section.anchor}" if section and section.anchor else ""
        title, url, language = translation.page.title, translation.page.url + anchor, translation.page.language
    name = section.path[-1] if section and section.path else ""
    return Source(
        number=number,
        title=untagged(title),
        url=url,
        section="" if name == title else untagged(name),
        language=language,
        snippet=snippet,
        score=hit.score,
        translated_from="" if translation else chunk.translated_from,
    )


def _shortened(text: str) -> str:
    """The text; a long one is cut after a word."""
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET].rsplit(maxsplit=1)[0]} …"


def source_list(sources: tuple[Source, ...], language: Language) -> str:
    """The Markdown list of links at the end of an answer; it marks translations and pages in another language."""
    lines = [f"\n\n**{language.sources}**\n"]
    lines += [f"{one.number}. {markdown_link(one.name, one.url)}{_language_note(one, language)}" for one in sources]
    return "\n".join(lines)


def _language_note(source: Source, language: Language) -> str:
    if source.translated_from:
        return f" ({language.translated_from(source.translated_from)})"
    return f" ({language.written_in(source.language)})" if source.language not in {"", language.code} else ""
