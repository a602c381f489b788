"""Pages, chunks, queries and hits: the frozen dataclasses of the index and of the search, and limits of what it may return."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from app.core.generation import plain_version


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits of what a search may return. An empty field sets no limit; the values of one field are alternatives.

    `url_prefixes` are beginnings of addresses; `sections` are paths on any site with everything below them, such as
    "/docs/platform"; `versions` are parts of the path ("1.2" matches /1.2/ and /v1.2/), or stated by the page.
    """

    collections: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def section_pattern(self) -> str:
        """A regular expression for RE2 and Python that matches addresses in the sections; empty without a limit."""
        # the path begins after the name of the site
        if not self.sections or not all(section.strip("/") for section in self.sections):
            return ""
        return _in_path("", [section.strip("/") for section in self.sections], "($|[/.?])")

    @property
    def version_pattern(self) -> str:
        """The same for versions. A page that states one of `said_versions` needn't have it in its address."""
        return _in_path("(.*/)?v?", self.versions, "($|/)") if self.versions else ""

    @property
    def said_versions(self) -> tuple[str, ...]:
        """The versions in the form in which the index has those that pages state."""
        return tuple(dict.fromkeys(map(plain_version, self.versions)))

    def admits(self, url: str, collection: str, languages: Collection[str], versions: Collection[str] = ()) -> bool:
        """True if a search could return a chunk of the page at this address, with chunks in these languages.

        `versions` are those that the page states.
        """
        return (
            (not self.collections or collection in self.collections)
            and (not self.languages or not set(self.languages).isdisjoint(languages))
            and (not self.url_prefixes or url.startswith(self.url_prefixes))
            and bool(re.search(self.section_pattern, url))
            and (bool(re.search(self.version_pattern, url)) or not set(self.said_versions).isdisjoint(versions))
        )

    def within(self, collections: tuple[str, ...]) -> Filters:
        """Returns the filters limited to the collections."""
        return self.narrowed(Filters(collections=collections))

    def narrowed(self, limits: Filters) -> Filters:
        """The intersection of these filters and `limits`. If they have nothing in common in a field, nothing is found."""
        return Filters(
            collections=_common(self.collections, limits.collections),
            languages=_common(self.languages, limits.languages),
            url_prefixes=_common(self.url_prefixes, limits.url_prefixes, _nested),
            sections=_common(_paths(self.sections), _paths(limits.sections), _nested),
            versions=_common(
                self.versions, limits.versions, lambda one, other: one.removeprefix("v") == other.removeprefix("v")
            ),
        )


NOTHING = (" ",)
"""Matches no page, because no name or address is a space; an empty tuple would match every page."""


def _in_path(before: str, values: Collection[str], after: str) -> str:
    return f"^[^/]+//[^/]+/{before}({'|'.join(map(re.escape, values))}){after}"


def _paths(sections: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/{section.strip('/')}/" if section.strip("/") else "/" for section in sections)


def _common(
    asked: tuple[str, ...], allowed: tuple[str, ...], fits: Callable[[str, str], bool] = operator.eq
) -> tuple[str, ...]:
    """The narrower value of each pair that fits."""
    if not allowed or not asked:
        return asked or allowed
    both = [max(one, other, key=len) for other in allowed for one in asked if fits(one, other)]
    return tuple(dict.fromkeys(both)) or NOTHING


def _nested(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


Vector = Sequence[float]
Fusion = Literal["weighted", "fixed", "rrf"]


# ---- what is indexed -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Section:
    """A section that is at least partly in a chunk.

    `offset` is in characters from the start of the chunk's text; `path` has the headings from the top of the page down to
    the section's own; `anchor` is empty if it isn't certain.
    """

    offset: int
    path: tuple[str, ...]
    anchor: str = ""


@lru_cache(maxsize=1000)
def _path_words(url: str) -> str:
    parts = unquote(urlsplit(url).path).split("/")
    return " ".join(part.replace("-", " ").replace("_", " ") for part in parts if part)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one page, as it is searched and shown.

    `id` is a hash of collection, url, embedded text and occurrence, so that a paragraph inserted elsewhere in the page
    changes no other chunk. `published` and `modified` are ISO 8601 or empty. `position` is the place of the chunk in its
    page when it was first written; `Derived.chunk_ids` has the current order. `translated_from` is the language of the page
    if the text is a translation; otherwise empty. `versions` are those that the page states. `questions` are those that
    it answers, with keywords, as a language model wrote them: pairs of a language and a text, searched but never shown.
    `before` and `after` are what it has of the chunks beside it (DOCS_TUNING__CHUNK_NEIGHBOURS): searched, but never shown.
    `start` and `end` are the lines of the page's Markdown with its blocks; the index has `PlainText.places`. These four are known
    while the page is indexed.
    """

    id: str
    collection: str
    url: str
    position: int
    text: str
    language: str
    title: str
    sections: tuple[Section, ...] = ()
    file: str = ""
    published: str = ""
    modified: str = ""
    translated_from: str = ""
    versions: tuple[str, ...] = ()
    questions: tuple[tuple[str, str], ...] = ()
    before: str = ""
    after: str = ""
    start: int = 0
    end: int = 0

    def __hash__(self) -> int:
        """The hash of the id, which Python keeps: chunks are keys of what is computed of them once."""
        return hash(self.id)

    @property
    def dated(self) -> str:
        """The day on which the page was last modified, else published; empty if neither is known."""
        return self.modified or self.published

    @property
    def heading_path(self) -> tuple[str, ...]:
        """The headings of the chunk's first section, outermost first."""
        return self.sections[0].path if self.sections else ()

    @property
    def link(self) -> str:
        """The address of the chunk's first section."""
        return self.link_to(self.sections[0] if self.sections else None)

    def link_to(self, section: Section | None) -> str:
        """The address of the section, or of the page if the anchor isn't known."""
        return f"{self.url}#{section.anchor}" if section and section.anchor else self.url

    @property
    def context(self) -> str:
        """Page title, words of the path, heading path: one line each."""
        return self.context_of(0)

    def context_of(self, section: int) -> str:
        """The context with the heading path of the section with this index."""
        path = self.sections[section].path if self.sections else ()
        headings = path[1:] if path[:1] == (self.title,) else path
        return "\n".join(line for line in (self.title, _path_words(self.url), " > ".join(headings)) if line)

    @property
    def embedded_text(self) -> str:
        """The context and the text: words are searched in it, and its stretches are embedded."""
        return "\n\n".join(filter(None, (self.context, self.before, self.text, self.after)))

    def kept(self, position: int) -> Chunk:
        """The chunk as an index keeps it, at this place of its page: without what is known only while the page is indexed."""
        return replace(self, position=position, before="", after="", start=0, end=0)

    @property
    def questions_id(self) -> str:
        """The id of the vector of its questions."""
        return f"{self.id}?"

    @property
    def questions_text(self) -> str:
        """The questions in all languages, as they are embedded."""
        return "\n".join(text for _, text in self.questions)


@dataclass(frozen=True, slots=True)
class PlainText:
    """A page as a language model reads it (see `app.text.blocks`), and where that may be cut.

    All offsets count characters of `text`. `borders` are the starts of blocks and of the items of lists, then the end; a
    heading stands with the block below it, what announces something with that, and an admonition is one block.
    `sections` are in order. `places` says by chunk id from where to where the chunk's blocks lie: whole blocks, also
    where the chunk has a part of one.
    """

    text: str = ""
    borders: tuple[int, ...] = ()
    sections: tuple[Section, ...] = ()
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __hash__(self) -> int:
        """The hash of the text, which Python keeps: pages are keys of what is computed of them once."""
        return hash(self.text)

    @classmethod
    def of_json(cls, values: Mapping[str, Any]) -> PlainText:
        """The plain text with these values of JSON."""
        places = {id_: (start, end) for id_, (start, end) in values["places"].items()}
        return cls(values["text"], tuple(values["borders"]), sections_of(values["sections"]), places)


def sections_of(values: Iterable[Mapping[str, Any]]) -> tuple[Section, ...]:
    """The sections with these values of JSON."""
    return tuple(Section(section["offset"], tuple(section["path"]), section["anchor"]) for section in values)


@dataclass(frozen=True, slots=True)
class PageFetch:
    """Facts about how a page was read, and when last. Times are ISO 8601 in UTC, or empty.

    - `fetched_url`: the downloaded address, which may end in .mdx
    - `source`: the sitemap that lists the page; `reading`: a fingerprint of the settings of its source
    - `lastmod`: what the sitemap said when the page was last requested; empty while the page may still change without a new one
    - `links`: addresses that a run that follows links found by this page first
    - `last_ok`: when its text was last stored; `app.index.run_history` knows when a run last found it unchanged
    """

    fetched_url: str = ""
    source: str = ""
    reading: str = ""
    etag: str = ""
    last_modified: str = ""
    lastmod: str = ""
    links: tuple[str, ...] = ()
    fetched_at: str = ""
    last_ok: str = ""
    status: int = 200
    stale_since: str = ""


@dataclass(frozen=True, slots=True)
class Derived:
    """What a run makes of the text of a page.

    - `plain`: its plain text, which belongs to the Markdown; the index returns it by `Generation.plain_texts`
    - `same_as`: the address of a page with the same text, which is searched instead; this page has no chunks
    - `translations`: fingerprints of the translations in its chunks, so that a run knows which to renew
    - `summary`: searched as one more vector of the page, never shown; `summary_of`: a fingerprint of what it summarises
    - `questions_of`: a fingerprint of the text and the prompt that all its chunks have questions of, or how many have, as 3/8
    - `translation_set`: the id that it shares with its translations on the site
    - `counterparts`: which of its chunks say what those of its translations say, as `app.index.ranking.counterparts` stores it
    """

    chunk_ids: tuple[str, ...] = ()
    plain: PlainText = field(default_factory=PlainText)
    same_as: str = ""
    translations: tuple[str, ...] = ()
    summary: str = ""
    summary_of: str = ""
    questions_of: str = ""
    translation_set: str = ""
    counterparts: tuple[str, ...] = ()

    @classmethod
    def compared(cls, facts: Mapping[str, Any]) -> Derived:
        """The part of a page's `facts` that its counterparts are read from."""
        return cls(tuple(facts.get("chunk_ids", ())), counterparts=tuple(facts.get("counterparts", ())))


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a site: its text, what the page says of itself, how it was read, and what was made of it.

    - `url`: the public address for readers
    - `hash`: of the cleaned Markdown without the addresses of links, then of all; `markdown` is empty if pages are only listed
    - `fingerprint`: marks of the text by which its translations are recognised
    - `versions`: those that the page states, if its address has none
    - `translated_from`: set on a translation while it is split into chunks
    """

    url: str
    collection: str
    title: str
    language: str
    markdown: str
    hash: str
    fingerprint: str = ""
    canonical: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    published: str = ""
    modified: str = ""
    versions: tuple[str, ...] = ()
    translated_from: str = ""
    fetch: PageFetch = field(default_factory=PageFetch)
    derived: Derived = field(default_factory=Derived)

    @property
    def summary_text(self) -> str:
        """The text of the summary that is embedded; empty if the page has no summary, or another page is searched instead."""
        made = self.derived
        return f"{self.title}\n\n{made.summary}" if made.summary and not made.same_as else ""

    @property
    def shared_set(self) -> str:
        """The translation set in which the page is searched; empty if it has none, or another page is searched instead."""
        return "" if self.derived.same_as else self.derived.translation_set

    def without_texts(self, chunk_ids: tuple[str, ...]) -> Page:
        """The page as a draft lists it, with these chunks."""
        derived = replace(self.derived, plain=PlainText(), chunk_ids=chunk_ids)
        return replace(self, markdown="", derived=derived)

    def copy_of(self, url: str) -> Page:
        """The page as one with the text of the page at this address; empty for one with its own text."""
        return replace(self, derived=replace(self.derived, same_as=url))

    @property
    def facts(self) -> dict[str, Any]:
        """All but the plain text by name, in one level, as stores keep them and commands show them."""
        return {name: getattr(part, name) for part in (self, self.fetch, self.derived) for name in _FACTS[type(part)]}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Page:
        """The page with these `facts`, which may have lists for tuples, and lack some if an earlier release kept them."""
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
        fetch, derived, page = (
            part(**{name: values[name] for name in names if name in values}) for part, names in _FACTS.items()
        )
        return replace(cast("Page", page), fetch=fetch, derived=derived)


_FACTS: Mapping[type, Sequence[str]] = {
    part: [item.name for item in fields(part) if item.name not in ("fetch", "derived", "plain")]
    for part in (PageFetch, Derived, Page)
}


@dataclass(frozen=True, slots=True)
class LexicalText:
    """A text for the lexical leg and the language of its analysis; its scores are multiplied by `weight`."""

    language: str
    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Boost:
    """Multiplies the fused score of a hit by `factor` if its page matches.

    The date of the page is in the days `first` to `last` (ISO 8601, both included), and its address is one of `urls` or
    begins with one of `url_prefixes`, or its collection is one of `collections`; empty fields match every page.
    """

    factor: float
    first: str = ""
    last: str = ""
    url_prefixes: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recency:
    """Divides the score of a hit by 1 + `loss` for each year of its age on the day `today`, up to `years`."""

    today: str
    loss: float = 0.5
    years: float = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    """One search: texts for the lexical leg, a vector for the vector leg, and how both are merged into one ranking.

    `language` is the language of the question. Scores of hits in another language are multiplied by `other_language`,
    after scores were normalised by the best hit in the language of the question, so that the preference is weaker if that
    language has few hits. `sureness` (0..1) weakens it if the language is a guess. It has `own_words` if
    its pages have all words that are asked for: then the score of no other page exceeds the best of its. `depth` is the number of candidates of
    each leg, `limit` the number of hits, `per_page` the maximum number of hits from one page. `lexical_weight` and
    `vector_weight` apply to the weighted fusion, which moves them by question, and exactly to the fixed one. `exact` requests exhaustive instead of approximate nearest
    neighbours. `language_offsets` are subtracted from the cosines of candidates in these languages before they are scaled.
    `boosts` and `recency` change the fused scores, but not those of pages without a date. Of a page in several
    versions, only one is returned: one of `versions`, else the newest; if the filters name versions, all that they admit.
    """

    texts: tuple[LexicalText, ...]
    vector: Vector | None = None
    language: str = ""
    filters: Filters = field(default_factory=Filters)
    lexical_weight: float = 0.7
    vector_weight: float = 0.3
    other_language: float = 0.8
    sureness: float = 1.0
    own_words: bool = False
    language_offsets: tuple[tuple[str, float], ...] = ()
    fusion: Fusion = "weighted"
    exact: bool = False
    boosts: tuple[Boost, ...] = ()
    recency: Recency | None = None
    depth: int = 100
    limit: int = 5
    per_page: int = 2
    versions: tuple[str, ...] = ()

    @property
    def of_another_language(self) -> float:
        """The factor for hits in another language than the question."""
        return self.other_language**self.sureness if self.language else 1.0


class Candidate(NamedTuple):
    """A chunk in one leg, with what the ranking needs. `score` is raw: BM25, or cosine in -1..1.

    It is a tuple, because a search creates hundreds, and creating a frozen dataclass takes three times as long.
    `dated` and `versions` are those of the chunk.
    """

    id: str
    url: str
    language: str
    score: float
    dated: str = ""
    versions: tuple[str, ...] = ()
    collection: str = ""


Indirect = Literal["summaries", "questions", "variants", "hypothetical"]
"""What a language model wrote and vectors found a chunk by: the summary of its page, its questions, other wordings of the question, an
answer that the model made up.
"""


@dataclass(frozen=True, slots=True)
class Legs:
    """The results of both searches, best first, with raw scores.

    `units` are the best of these candidates with the cosine of their nearest stretch, whose number (of `app.text.units`) is
    in `nearest` by chunk id; empty where the index has no stretches. `meaning` is how near the nearest one is when what all
    texts of its language share is left out, 0 to 1; None if that isn't known. `indirect` has further vector legs, of what a language
    model wrote; that of the summaries has one chunk of each page.
    """

    lexical: tuple[Candidate, ...] = ()
    vector: tuple[Candidate, ...] = ()
    units: tuple[Candidate, ...] = ()
    nearest: Mapping[str, int] = field(default_factory=dict)
    meaning: float | None = None
    indirect: Mapping[Indirect, tuple[Candidate, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A found chunk with its raw score in each leg (None: not found by it) and the fused score.

    `boost` is the factor in the fused score that comes from the date and the address of the page. `found_in` is the
    language of another version of the page, if that has the scores: this chunk says the same in the reader's language.
    `stretch` is the number of its nearest stretch (of `app.text.units`), if the index has them.
    """

    chunk: Chunk
    lexical: float | None = None
    cosine: float | None = None
    fused: float = 0.0
    boost: float = 1.0
    rerank: float | None = None
    found_in: str = ""
    stretch: int | None = None

    @property
    def score(self) -> float:
        """The score that orders the hits: the reranker's, else the fused one."""
        return self.fused if self.rerank is None else self.rerank


@dataclass(frozen=True, slots=True)
class Passage:
    """Text of one page that a language model reads under one number, and the hits that it was read for, best first.

    `chunk` is that of the best hit with the text of the passage, which is plain, and the sections in it. The model reads
    `condensed` in the place of that text, if there is one.
    """

    chunk: Chunk
    hits: tuple[Hit, ...]
    condensed: str = ""
