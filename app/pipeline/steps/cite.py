"""Adds the source links. Code makes them, never the model: to the sections that the answer cites, else to all passages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from app.citing.citations import Citations, Wording, is_refusal
from app.citing.links import Addresses, Removals, markdown_link, page_title, untagged
from app.citing.rewrite import Rewriter
from app.citing.sections import Place, cited_links, offered_links, places, related_list, related_pages
from app.core.language import Language
from app.core.prompts import Prompts
from app.core.turn import Done, Event, Events, Failure, Source, Text, Turn
from app.core.types import Hit, Section
from app.pipeline.conversation import as_found, with_answer_language
from app.pipeline.runner import Changes

SNIPPET = 300
REFUSED = "offered: the model finds no answer in the passages"


@dataclass(frozen=True)
class Cite:
    """Renumbers citations in the order of their first use, removes citations and addresses that no passage has, and
    appends the links.
    """

    prompts: Prompts
    images: Literal["site", "none"] = "site"
    name = "cite"
    reads = ("question", "language", "hits", "events")
    uses = (
        "unsure", "referred", "refined", "refined_language", "keywords", "more_keywords", "choices", "evidence", "evidence_needed",
        "passages",
    )  # fmt: skip
    writes = ("events",)
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The events, with the sources before the last one."""
        return {"events": self._cited(_as_read(with_answer_language(turn, self.prompts.languages)))}

    async def _cited(self, turn: Turn) -> Events:
        assert turn.events is not None
        answer = _Answer(turn, self.prompts, self.images)
        async with aclosing(turn.events) as events:
            async for event in events:
                for cited in answer.mapped(event):
                    yield cited


class _Answer:
    """Rewrites the events of one answer."""

    def __init__(self, turn: Turn, prompts: Prompts, images: str) -> None:
        self._turn, self._language = turn, prompts.language(turn.language)
        languages = prompts.languages.values()
        words = frozenset(word for language in languages for word in language.passage)
        headings = frozenset(
            name.casefold() for language in languages for name in (language.sources, *language.source_headings)
        )
        pages = tuple(hit.chunk.url for hit in turn.hits)
        self._citations = Citations(pages, turn.request.first_number, words, prompts.vocabulary.and_or)
        self._images = images == "site"
        self._pages = tuple(hit.chunk.url for hit in turn.hits) if self._images else ()
        addresses = Addresses(_texts_shown(turn), self._pages)
        removals = Removals(turn.citing.removed, addresses, self._citations) if turn.citing else None
        self._text = Rewriter(addresses, self._citations, headings, removals)
        self._wording = Wording(self._language.readers, lambda: " ".join((turn.question, *_texts_shown(turn))))
        self._written: list[str] = []  # by the model
        self._said: list[str] = []  # with what is quoted

    def mapped(self, event: Event) -> list[Event]:
        """The event as readers get it; before the last event, the rest of the text and the sources."""
        if isinstance(event, Done | Failure):
            return self._closing(event)
        if not isinstance(event, Text):
            return [event]
        self._said.append(event.text)
        if event.quoted:
            return [Text(self._rest() + quoted(event.text, self._pages))]
        self._written.append(event.text)
        text = self._text.feed(self._wording.feed(event.text))
        return [Text(text)] if text else []

    def _rest(self) -> str:
        return self._text.feed(self._wording.rest()) + self._text.rest()

    def _closing(self, event: Done | Failure) -> list[Event]:
        """The last event, after text that was held back and, if the answer is complete, the sources."""
        rest, answer = self._rest(), "".join(self._written)
        sources: list[tuple[Source, list[Place]]] = []
        # without citations, what was found for the question says more about the section that answers it than the whole page
        turn = self._turn if self._citations.any else as_found(self._turn)
        if isinstance(event, Done) and not event.extractive and self._refuses(answer):
            event = replace(event, refused=True)
            pages = related_pages(self._turn, self._turn.hits, self._language)
            rest += related_list(pages, self._language)
            if self._turn.citing:
                self._turn.citing.links += offered_links(pages, REFUSED)
        elif isinstance(event, Done) and not self._turn.choices:
            sources = self._sources(turn, "".join(self._said))
        if turn.citing:
            turn.citing.links += cited_links(turn, sources, cited=self._citations.any)
        if sources and self._turn.request.links:
            rest += source_list(tuple(source for source, _ in sources), self._language)
        shown = [
            replace(source, snippet=safe_snippet(source.snippet, source.url if self._images else ""))
            for source, _ in sources
        ]
        return [*([Text(rest)] if rest else []), *shown, event]

    def _sources(self, turn: Turn, answer: str) -> list[tuple[Source, list[Place]]]:
        """Each cited page once, with the section that holds what is cited; all pages if none was cited."""
        return [
            (source_of(number, turn.hits[held[0].passage - 1], held[0].section), held)
            for number, held in places(turn, self._citations, answer)
        ]

    def _refuses(self, answer: str) -> bool:
        """True if the model only says that the documentation has no answer; then no page is a source."""
        return is_refusal(answer, self._language, self._citations)


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


def _as_read(turn: Turn) -> Turn:
    """The turn with what the model read in the place of the hits: citations have the numbers of passages."""
    if not turn.passages:
        return turn
    return replace(turn, hits=tuple(replace(passage.hits[0], chunk=passage.chunk) for passage in turn.passages))


def _texts_shown(turn: Turn) -> Iterator[str]:
    """All texts of pages and attachments that the model was given."""
    for hit in turn.hits:
        chunk = hit.chunk
        yield from (chunk.url, chunk.title, *chunk.heading_path, chunk.text)
    yield from turn.request.attached
    for passage in turn.passages:  # which has links without their addresses
        yield from (hit.chunk.text for hit in passage.hits)


def source_of(number: int, hit: Hit, section: Section | None) -> Source:
    """The section of the hit as a source."""
    chunk = hit.chunk
    snippet = _shortened(chunk.text[section.offset if section else 0 :].strip())
    title = page_title(chunk)
    name = untagged(section.path[-1]) if section and section.path else ""
    return Source(
        number=number,
        title=title,
        url=chunk.link_to(section),
        section="" if name == title else name,
        language=chunk.language,
        snippet=snippet,
        score=hit.score,
        translated_from=chunk.translated_from,
        chunk=chunk.id,
    )


def _shortened(text: str) -> str:
    """The text; a long one is cut after a word."""
    return text if len(text) <= SNIPPET else f"{text[:SNIPPET].rsplit(maxsplit=1)[0]} …"


def source_list(sources: tuple[Source, ...], language: Language) -> str:
    """The Markdown list of links at the end of an answer; it marks translations and pages in another language."""
    lines = [f"\n\n**{language.sources}**\n"]
    lines += [
        f"{source.number}. {markdown_link(source.name, source.url)}{_language_note(source, language)}"
        for source in sources
    ]
    return "\n".join(lines)


def _language_note(source: Source, language: Language) -> str:
    if source.translated_from:
        return f" ({language.translated_from(source.translated_from)})"
    return f" ({language.written_in(source.language)})" if source.language not in {"", language.code} else ""
