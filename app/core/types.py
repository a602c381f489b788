"""The nouns of the index and of searching it, shared by every part: frozen dataclasses, no library imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from app.core.filters import Filters

Vector = Sequence[float]
Fusion = Literal["weighted", "rrf"]


# ---- what is indexed -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Section:
    """A section that (partly) lies in a chunk.

    `offset` counts characters from the start of the chunk's text; `path` holds the headings from the
    page's top down to this section's own; `anchor` is empty where it isn't known for certain.
    """

    offset: int
    path: tuple[str, ...]
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one page, as it is searched and shown.

    `id` is a hash of collection, url, embedded text and occurrence, so that a paragraph inserted
    elsewhere in the page changes no other chunk. `published` and `modified` are ISO 8601 or empty.
    `position` is the chunk's rank in its page when it was first written; `Page.chunk_ids` has the
    order that holds now. `before` and `after` are what the neighbouring chunks say next to it: not
    searched, but shown to the model with it. `translated_from` is the language that its page is written
    in, where the text is a translation; empty elsewhere. `versions` are those that its page says.
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
    before: str = ""
    after: str = ""
    translated_from: str = ""
    versions: tuple[str, ...] = ()

    @property
    def dated(self) -> str:
        """When its page last changed, or came out where nobody says that it changed since; empty where neither is known."""
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
        """The section's address, or the page's where its anchor isn't known."""
        return f"{self.url}#{section.anchor}" if section and section.anchor else self.url

    @property
    def context(self) -> str:
        """Page title, words of the path, heading path: one line each, what the text alone doesn't say."""
        path_words = " ".join(
            part.replace("-", " ").replace("_", " ") for part in unquote(urlsplit(self.url).path).split("/") if part
        )
        headings = self.heading_path[1:] if self.heading_path[:1] == (self.title,) else self.heading_path
        return "\n".join(line for line in (self.title, path_words, " > ".join(headings)) if line)

    @property
    def embedded_text(self) -> str:
        """What is embedded and searched: the context, then the text."""
        return f"{self.context}\n\n{self.text}"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a site with what is known of its last fetch.

    `url` is the public address that readers are sent to; `fetched_url` is what was downloaded (may end
    in .mdx), `source` the sitemap that lists it. `hash` is of the cleaned Markdown. Times are ISO 8601 in
    UTC, or empty. `markdown` is empty where pages are only listed. `same_as` is the address of a page with the same
    text, which is searched instead: this one has no chunks. `reading` tells the settings of its source.
    `translations` names the translations that its chunks hold or can't hold, so that a run knows which are to be
    made anew; `translated_from` is set on such a translation while it is cut into chunks. `summary` is searched as one
    more vector of the page and never shown; `summary_of` names what it was made of, for the same reason. `versions` are
    those of the documentation that the page says it is of, where its address doesn't tell.
    """

    url: str
    collection: str
    title: str
    language: str
    markdown: str
    hash: str
    fetched_url: str = ""
    source: str = ""
    canonical: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    published: str = ""
    modified: str = ""
    etag: str = ""
    last_modified: str = ""
    fetched_at: str = ""
    last_ok: str = ""
    status: int = 200
    stale_since: str = ""
    same_as: str = ""
    reading: str = ""
    chunk_ids: tuple[str, ...] = ()
    translations: tuple[str, ...] = ()
    translated_from: str = ""
    summary: str = ""
    summary_of: str = ""
    versions: tuple[str, ...] = ()

    @property
    def summary_text(self) -> str:
        """What is embedded of the summary; empty where the page has none, or another page is searched instead."""
        return f"{self.title}\n\n{self.summary}" if self.summary and not self.same_as else ""


# ---- the index -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an index was made. Two indices can only share chunks when all of these are equal.

    `summaries` names the prompts that pages are summarised with; empty where they aren't.
    """

    embedder: str
    dimension: int
    splitter: str
    analyzer: str
    summaries: str = ""


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """What an index remembers of one published state; `built_at` is ISO 8601 in UTC."""

    id: int
    recipe: Recipe
    built_at: str
    languages: tuple[str, ...]
    pages: int
    chunks: int


@dataclass(frozen=True, slots=True)
class LexicalText:
    """A text for the lexical leg, in the language whose analysis fits it; scores are multiplied by `weight`."""

    language: str
    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Boost:
    """Multiplies the fused score of hits by `factor` where all that is set here fits them.

    `first` and `last` are the days (ISO 8601) that the page may be of, both included; `url_prefixes` where it lies.
    """

    factor: float
    first: str = ""
    last: str = ""
    url_prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recency:
    """Makes hits count less with their age: divides by 1 + `loss` a year, up to `years`, as seen on the day `today`."""

    today: str
    loss: float = 0.5
    years: float = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    """One search: texts for the lexical leg, a vector for the other, and how the two become one ranking.

    `language` is the reader's; hits in another language are multiplied by `other_language`, after scores were
    measured by the best of the reader's own, so that the preference softens where it has little. `sureness` (0..1)
    weakens it where the language is a guess. `depth`
    is how many candidates each leg brings, `limit` how many hits remain, `per_page` how many of them
    one page may have. `lexical_weight` and `vector_weight` apply to the weighted fusion only.
    `exact` asks for exhaustive instead of approximate nearest neighbours. `boosts` and `recency` change the fused
    scores; pages without a date are neither preferred nor put back by them. Of a page in several versions only one is
    returned: of those in `versions`, else the newest; all that the filters let through where they name versions.
    """

    texts: tuple[LexicalText, ...]
    vector: Vector | None = None
    language: str = ""
    filters: Filters = field(default_factory=Filters)
    lexical_weight: float = 0.7
    vector_weight: float = 0.3
    other_language: float = 0.8
    sureness: float = 1.0
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
        """The factor on what isn't in the question's language."""
        return self.other_language**self.sureness if self.language else 1.0


class Candidate(NamedTuple):
    """What one leg says of one chunk: just enough to rank it. `score` is raw: BM25, or cosine in -1..1.

    A tuple, because a search makes hundreds, and a frozen dataclass takes three times as long to make.

    `dated` and `versions` are those of the chunk.
    Where the summary of a page is nearer than all of its chunks, their cosines are raised, the best one to its.
    """

    id: str
    url: str
    language: str
    score: float
    dated: str = ""
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Legs:
    """The two searches apart, best first, with raw scores."""

    lexical: tuple[Candidate, ...] = ()
    vector: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A found chunk with its raw score in each leg (None: that leg didn't bring it) and the fused one.

    `boost` is what the time and the place of its page multiplied the fused score with.
    """

    chunk: Chunk
    lexical: float | None = None
    cosine: float | None = None
    fused: float = 0.0
    boost: float = 1.0
    rerank: float | None = None

    @property
    def score(self) -> float:
        """What it was ordered by: the reranker's score, else the fused one."""
        return self.fused if self.rerank is None else self.rerank
