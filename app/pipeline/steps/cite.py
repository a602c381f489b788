"""Adds the source links. Code makes them, never the model: to the sections that the answer cites, else to all passages."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Literal

from app.citing.asked import weights_of
from app.citing.citations import Citations
from app.citing.headings import follow_ups
from app.citing.links import Addresses, Removals, markdown_link, page_title, untagged
from app.citing.placement import OwnList, Placement, Wording
from app.citing.rewrite import Rewriter, safe
from app.citing.sections import (
    Found,
    Place,
    cited_links,
    line_of_unit,
    nearest,
    nearest_list,
    offered_links,
    places,
    ranked,
)
from app.core.errors import StoreError
from app.core.language import Language
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings_types import Unproven
from app.core.turn import Done, Event, Events, Failure, Proof, Question, Reasoning, Source, Text, Turn, Unsupported
from app.core.types import Hit, Section
from app.index.ranking.units import FEWEST_CHUNKS, nearness
from app.models.guarded import Embedder, is_multilingual
from app.pipeline.bounded import with_silences
from app.pipeline.conversation import as_found, with_answer_language
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.retrieve import embed
from app.proof.check import Checker
from app.proof.evidence import Evidence
from app.proof.stream import Compare, Instructions, Prover
from app.proof.verbatim import word_for_word
from app.proof.wording import Wording as ProofWording
from app.text.answer_language import is_refusal
from app.text.blocks import cut_short, readable
from app.text.growth import chunks_in, site_of
from app.text.segments import Line, Segment, Segmenter

log = logging.getLogger("app.pipeline")

SNIPPET = 300
LONGEST_WAIT = 12.0  # seconds for which a reader waits for any text
LONGEST_SILENCE = 1.0  # seconds for which a reader waits for the end of a sentence
REFUSED = "offered: the model finds no answer in the passages"


@dataclass(frozen=True)
class Cite(Step):
    """Renumbers citations in the order of their first use, removes citations and addresses that no passage has, and
    appends the links and the questions that follow.
    """

    prompts: Prompts
    images: Literal["site", "none"] = "site"
    unproven: Unproven = "off"
    embedder: Embedder | None = None
    follow_ups: bool = True
    words: ProofWording = field(init=False, repr=False, compare=False)
    name = "cite"
    reads = ("asked", "hits", "events")
    uses = (
        "refined",
        "keywords",
        "more_keywords",
        "choices",
        "related",
        "evidence",
        "overview",
        "passages",
        "quotation",
    )
    writes = ("events",)

    def __post_init__(self) -> None:
        """Collect the words by which answers are judged, once."""
        object.__setattr__(self, "words", ProofWording(self.prompts.languages))

    async def __call__(self, turn: Turn) -> Changes:
        """The events, with the sources before the last one."""
        return {"events": self._cited(as_read(turn, self.prompts))}

    async def _cited(self, turn: Turn) -> Events:
        assert turn.events is not None
        answer = _Answer(turn, self)
        read: AsyncGenerator[Event | None, None] = (
            turn.events if turn.request.whole else with_silences(turn.events, LONGEST_SILENCE)
        )
        async with aclosing(read) as events:
            async for event in events:
                if (event is None or isinstance(event, Reasoning)) and (shown := await answer.meanwhile()):
                    yield Text(shown)
                if event is None or isinstance(event, Text):
                    if shown := await (answer.shown(event) if event else answer.hurried()):
                        yield Text(shown)
                elif not isinstance(event, Done | Failure):
                    yield event
                if isinstance(event, Done | Failure) or answer.ends:  # nothing more of the answer is shown
                    for cited in await answer.closing(event if isinstance(event, Done | Failure) else Done()):
                        yield cited
                    break

    def prover(self, turn: Turn, compare: Compare) -> Prover | None:
        """What judges the answer; None if there are no passages, or nobody wants that."""
        if self.unproven == "off" or not turn.hits:
            return None
        code = turn.asked.language
        instructions = instructions_of(self.prompts, code, turn.request.persona)
        instructions = instructions.beside({site_of(hit.chunk) for hit in turn.hits})
        sign = self.prompts.language(code).texts.unproven
        return Prover(checker_of(turn, self.words, self.embedder), self.unproven, sign, instructions, compare)


class _Answer:
    """Takes the events of one answer through the judges of its segments: proof, wording, citations, safe Markdown."""

    def __init__(self, turn: Turn, step: Cite, *, proves: bool = True) -> None:
        prompts = step.prompts
        self._turn, self._step = turn, step
        self._prover = step.prover(turn, self._nearness) if proves else None
        self._language = prompts.language(turn.asked.language)
        self._chunks: list[tuple[str, str, int]] | None = None  # of the passages; empty after a failure
        self._citations = Citations(
            tuple(hit.chunk.url for hit in turn.hits), turn.request.first_number, *words_of(prompts)
        )
        self._pages = tuple(hit.chunk.url for hit in turn.hits) if step.images == "site" else ()
        addresses = Addresses(_texts_shown(turn), self._pages)
        removals = Removals(turn.citing.removed, addresses, self._citations) if turn.citing else None
        self._segments = Segmenter()
        self._line = Line(
            Wording(self._language.replies.readers, lambda: " ".join((turn.asked.text, *_texts_shown(turn)))),
            OwnList(headings_of_lists(prompts)),
            Placement(self._citations),
            Rewriter(addresses, self._citations, removals),
        )
        self._written = list[str]()  # by the model
        self._quoted = list[Text]()
        self._waiting = list[str]()  # what can be replaced at the end
        self._began = asyncio.get_running_loop().time()
        self._quotation = None if turn.request.whole else turn.quotation  # while nothing else was shown
        self._after = ""  # what stands between it and the answer of the model, once it was shown
        self._own = False  # whether what waits in the segments is a sentence of ours, which nobody judges
        self._since = 0.0  # when the sentence that waits began, in seconds of the clock of the event loop

    @property
    def ends(self) -> bool:
        """True if nothing more of the answer is shown."""
        return bool(self._prover and self._prover.ending)

    async def meanwhile(self) -> str:
        """A quotation for readers who have waited for `LONGEST_WAIT` seconds without any text; else empty."""
        quotation, waited = self._quotation, asyncio.get_running_loop().time() - self._began
        if quotation is None or waited < LONGEST_WAIT:
            return ""
        shown = [await self.shown(event) for event in await quotation("meanwhile") if isinstance(event, Text)]
        self._after = f"\n\n{self._language.texts.written_after}\n\n" if shown else ""
        return "".join(shown)

    async def shown(self, event: Text) -> str:
        """What readers get by now."""
        self._quotation = None
        if self._after and (event.quoted or event.own):
            return ""  # the quotation that they have already
        if event.quoted:
            self._quoted.append(event)
            text = quoted(event.text, self._pages)
            return await self._rest() + (_block_quote(text) if event.block else text)
        self._own = event.own
        judged = bool(self._prover) and not event.own
        text = await self._judged(self._segments.feed(event.text), judged=judged)
        now = asyncio.get_running_loop().time()
        if text or not self._since:
            self._since = now
        elif now - self._since > LONGEST_SILENCE and not self._turn.request.whole:
            text = await self.hurried()
        if self._turn.request.whole and judged:
            self._waiting.append(text)
            return ""
        text, self._after = self._after + text, ""
        return text

    async def hurried(self) -> str:
        """What readers get of the sentence that waits, up to its last clause or word: the model is slow, or writes nothing for a while."""
        self._since = asyncio.get_running_loop().time()
        return await self._judged(self._segments.clause())

    async def _judged(self, segments: Iterable[Segment], *, judged: bool = True, ends: bool = False) -> str:
        """What readers get of the segments. Proof stands before the line, because it may have to ask what a sentence means."""
        if self._prover and judged:
            segments = [proved for segment in segments for proved in await self._prover.feed(segment)]
        segments = list(segments)
        self._written.extend([one.text for one in segments])
        return self._line.feed(segments, ends=ends) if segments or ends else ""

    async def _rest(self, doubted: Sequence[Unsupported] = ()) -> str:
        """What readers get of the end of what the model wrote, with what a step before found unproved."""
        text = "" if self.ends else await self._judged(self._segments.rest(), judged=not self._own)
        notes = [*self._prover.rest(), *self._prover.doubted(doubted)] if self._prover else []
        return text + await self._judged(notes, judged=False, ends=True)

    async def _nearness(self, statement: str) -> Mapping[int, float]:
        """How near a statement is in meaning to the passages, by number; empty once the embedder or the index has failed."""
        turn, embedder = self._turn, self._step.embedder
        if embedder is None or self._chunks == []:
            return {}
        try:
            vector = await embed(Question(statement, turn.asked.language), turn, embedder)
            if vector is not None:
                if self._chunks is None:
                    self._chunks = await _chunks_read(turn)
                languages = {id_: language for id_, language, _ in self._chunks}
                near = await nearness(turn.generation, vector, turn.asked.language, languages)
                found = sorted((near[id_], number) for id_, _, number in self._chunks if id_ in near)
                return {number: cosine for cosine, number in found}  # the highest of each passage
        except StoreError as error:
            log.warning(LogMessage("statement not compared, judging it by words", id=turn.request.id, error=error))
        self._chunks = []
        return {}

    async def closing(self, event: Done | Failure) -> list[Event]:
        """The last event, after text that was held back and, if the answer is complete, the sources."""
        rest = await self._ended(event)
        answer = "".join(self._written)
        sources: list[tuple[Source, list[Place]]] = []
        # without citations, what was found for the question says more about the section that answers it than the whole page
        turn = self._turn if self._citations.any else as_found(self._turn)
        if isinstance(event, Done):
            event = self._counted(event if event.extractive else self._stated(event, answer), answer)
        if isinstance(event, Done) and event.refused and not event.extractive:
            if event.ending and self._turn.request.whole and self._turn.quotation:
                return await self._quotation_instead(event)
            rest = await self._refusal(event, rest, answer)
        elif isinstance(event, Done) and not self._turn.choices:
            sources = self._sources(turn, "".join([answer, *(one.text for one in self._quoted)]))
            event = self._followed(event, sources)
        listed, heading = tuple(source for source, _ in sources), ""
        if self._prover and (self._prover.disproved or self._prover.empty):  # a link would lend proof to what has none
            sources, heading = [], self._language.texts.related
        if turn.citing:
            turn.citing.links += cited_links(turn, sources, cited=self._citations.any)
        if listed and (self._turn.request.links or not sources):
            rest += source_list(listed, self._language, heading)
        return [*([Text(rest)] if rest else []), *(source for source, _ in sources), event]

    async def _refusal(self, event: Done, rest: str, answer: str) -> str:
        """The end of an answer that is none, or that the pages don't support: readers of a stream have a part of it already."""
        if event.ending:
            shown = not self._turn.request.whole and answer.strip()
            rest = (f"{rest}\n\n" if shown else "") + self._language.texts.refuted
        return rest + await self._nearest()

    async def _quotation_instead(self, refuted: Done) -> list[Event]:
        """The quotation in the place of an answer that nobody has seen, with what was wrong with that."""
        assert self._turn.quotation
        answer = _Answer(self._turn.changed(quotation=None), self._step, proves=False)
        *quoted, end = await self._turn.quotation("")
        shown = [await answer.shown(event) for event in quoted if isinstance(event, Text)]
        assert isinstance(end, Done)
        end = replace(end, ending=refuted.ending, unsupported=refuted.unsupported)
        return [Text("".join(shown)), *await answer.closing(end)]

    async def _nearest(self) -> str:
        """The list of the sections that are nearest to a question without an answer."""
        found = await nearest(self._turn, self._turn.hits, self._language)
        if self._turn.citing:
            self._turn.citing.links += offered_links((one.hit for one in found), REFUSED)
        return quoted(nearest_list(found, self._language), self._pages)

    async def _ended(self, event: Done | Failure) -> str:
        """What readers get of the end, with the note of an answer that was cut."""
        doubted = event.unsupported if isinstance(event, Done) else ()
        rest = "".join(self._waiting) + await self._rest(doubted)
        return f"{rest}\n\n{self._language.texts.cut}" if isinstance(event, Done) and event.cut else rest

    def _stated(self, event: Done, answer: str) -> Done:
        """The end with what isn't proved of the answer, and whether it is a refusal."""
        faults = tuple(self._prover.faults) if self._prover else event.unsupported
        ending = self._prover.ending if self._prover else event.ending
        answer = answer.replace(self._language.texts.unproven, "")  # which says what refusals say
        announced = answer.rstrip().endswith(":") and "\n" not in answer.strip()  # and nothing comes
        silent = bool(self._prover and self._prover.empty) and not self._citations.any  # a refusal in other words
        if announced or silent or is_refusal(answer, self._language):  # then no page is a source
            return replace(event, refused=True, unsupported=faults)
        if self._prover and self._prover.refuted:
            return replace(event, refused=True, unsupported=faults, ending=ending or "unproven")
        return replace(event, unsupported=faults, ending=ending)

    def _counted(self, end: Done, answer: str) -> Done:
        """The end with the number of statements that the cited passages have word for word; of what is quoted, all are copied."""
        if end.refused or self._turn.choices:
            return end
        if end.extractive:
            return replace(end, verbatim=word_for_word("", (), "\n\n".join(one.text for one in self._quoted)))
        cited = self._citations.used or range(1, len(self._turn.hits) + 1)
        pages = [self._turn.hits[number - 1].chunk.text for number in sorted(cited)]
        sign = self._language.texts.unproven
        lines = (
            line.replace(sign, "") for line in answer.splitlines() if not line.startswith(sign)
        )  # ours, below code
        return replace(end, verbatim=word_for_word("\n".join(lines), pages))

    def _followed(self, end: Done, sources: list[tuple[Source, list[Place]]]) -> Done:
        """The end with the questions that follow, if any are wanted; none after a refusal."""
        if end.refused or not self._step.follow_ups:
            return end
        cited = [source.url for source, _ in sources]
        return replace(end, follow_ups=follow_ups(self._turn, self._step.prompts, cited))

    def _sources(self, turn: Turn, answer: str) -> list[tuple[Source, list[Place]]]:
        """Each cited page once, with the section that holds what is cited; all pages if none was cited."""
        sources, proved = [], dict[int, Proof]()
        for event in self._quoted:
            if event.proof:
                proved.setdefault(event.proof.passage, event.proof)
        for number, places_of_page in places(turn, self._citations, answer):
            passages = [place.passage for place in places_of_page]
            proofs = [proof for passage, proof in proved.items() if passage in passages]
            held = [Place(proof.passage, proof.section, sentence=proof.sentence) for proof in proofs] or places_of_page
            source = source_of(number, turn.hits[held[0].passage - 1], held[0].section)
            snippet = safe_snippet(source.snippet, source.url if self._step.images == "site" else "")
            sources.append((replace(source, sentence=held[0].sentence, snippet=snippet), held))
        return sources


@lru_cache(maxsize=8)
def words_of(prompts: Prompts) -> tuple[frozenset[str], frozenset[str]]:
    """What models call a passage in any language, and what they write between numbers."""
    words = (language.replies.passage for language in prompts.languages.values())
    return frozenset[str]().union(*words), prompts.vocabulary.and_or


@lru_cache(maxsize=8)
def headings_of_lists(prompts: Prompts) -> frozenset[str]:
    """What lists of sources are called in any language, in small letters."""
    names = [(language.texts.sources, *language.replies.source_headings) for language in prompts.languages.values()]
    return frozenset(map(str.casefold, chain(*names)))


def rules_of(prompts: Prompts, language: str, persona: str = "") -> str:
    """The instructions that models get, strong and weak ones, without the passages."""
    rules = [prompts.render(language, name, passages="") for name in ("synthesize", "synthesize_short")]
    return "\n".join((*rules, prompts.persona(language, persona)))


@lru_cache(maxsize=32)
def instructions_of(prompts: Prompts, language: str, persona: str = "") -> Instructions:
    """The words of these instructions, read once."""
    return Instructions(rules_of(prompts, language, persona))


def _evidence_of(hit: Hit) -> str:
    """What the model reads of a passage, with its title, headings, date and address."""
    chunk = hit.chunk
    headings = [name for section in chunk.sections for name in section.path]
    return "\n".join((chunk.title, *dict.fromkeys(headings), chunk.modified, chunk.url, chunk.text))


@lru_cache(maxsize=4000)
def safe_snippet(snippet: str, page: str) -> str:
    """The snippet with images from the host of `page` alone; without any image if `page` is empty.

    Cached, because answers cite the same sections again and again.
    """
    return quoted(snippet, (page,))


def quoted(text: str, pages: tuple[str, ...]) -> str:
    """Text of a page, safe for clients: its links stay; images stay only if they come from the hosts of `pages`."""
    return safe(text, Addresses([text], pages))


def _block_quote(text: str) -> str:
    """The Markdown as a block quote: every line has the sign, also those of code and tables, which stay what they are."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


async def _chunks_read(turn: Turn) -> list[tuple[str, str, int]]:
    """The chunks that the model has read any section of: their ids and languages, with the number of the passage."""
    pages = await turn.generation.plain_texts([*{hit.chunk.url for hit in turn.hits}])
    read = list[tuple[str, str, int]]()
    for number, hit in enumerate(turn.hits, start=1):
        own = {hit.chunk.id} | (chunks_in(pages[hit.chunk.url], hit.chunk) if hit.chunk.url in pages else set())
        read += [(id_, hit.chunk.language, number) for id_ in own]
    return read


def checker_of(turn: Turn, words: ProofWording, embedder: Embedder | None = None) -> Checker:
    """What judges the answer by the passages of a turn `as_read`, and by what the user said.

    With an embedder, the meaning of statements can be compared, in a large enough index.
    """
    said = [message.content for message in turn.request.messages if message.role == "user"]
    evidence = Evidence(
        [_evidence_of(hit) for hit in turn.hits],
        [hit.chunk.language for hit in turn.hits],
        "\n".join((*said, *turn.request.attached)),
    )
    compares = bool(embedder and turn.generation and turn.generation.info.chunks >= FEWEST_CHUNKS)
    across = bool(compares and embedder and is_multilingual(turn.generation.info.recipe.embedder))
    return Checker(evidence, turn.asked.language, words, compares=compares, across=across)


def as_read(turn: Turn, prompts: Prompts) -> Turn:
    """The turn with what the model read in the place of the hits: citations have the numbers of passages."""
    turn = with_answer_language(turn, prompts.languages)
    if not turn.passages:
        return turn
    return turn.changed(hits=tuple(replace(passage.hits[0], chunk=passage.chunk) for passage in turn.passages))


def _texts_shown(turn: Turn) -> Iterator[str]:
    """All texts of pages and attachments that the model was given, with the addresses of the sections."""
    for hit in turn.hits:
        chunk = hit.chunk
        yield from (chunk.url, chunk.title, *chunk.heading_path, chunk.text, *map(chunk.link_to, chunk.sections))
    yield from turn.request.attached
    for passage in turn.passages:  # which has links without their addresses
        yield from (hit.chunk.text for hit in passage.hits)


def source_of(number: int, hit: Hit, section: Section | None) -> Source:
    """The section of the hit as a source."""
    chunk = hit.chunk
    snippet = cut_short(chunk.text[section.offset if section else 0 :].strip(), SNIPPET)
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


async def found_sections(turn: Turn, hits: Sequence[Hit], prompts: Prompts) -> tuple[Source, ...]:
    """The best section of each page among the hits, with its best sentence as plain text: what a reader sees while the model is working."""
    language, pages = prompts.language(turn.asked.language), dict[str, Found]()
    for found in ranked(hits, await weights_of(turn, language), language):
        pages.setdefault(found.hit.chunk.url, found)
    return tuple(
        replace(source_of(number, found.hit, found.section), sentence=readable(line_of_unit(found)))
        for number, found in enumerate(pages.values(), start=1)
    )


def source_list(sources: tuple[Source, ...], language: Language, heading: str = "") -> str:
    """The Markdown list of links at the end of an answer; it marks translations and pages in another language."""
    lines = [f"\n\n{heading or f'**{language.texts.sources}**'}\n"]
    lines += [
        f"{source.number}. {markdown_link(source.name, source.url)}{_language_note(source, language)}"
        for source in sources
    ]
    return "\n".join(lines)


def _language_note(source: Source, language: Language) -> str:
    if source.translated_from:
        return f" ({language.texts.translated_from(source.translated_from)})"
    return f" ({language.texts.written_in(source.language)})" if source.language not in {"", language.code} else ""
