"""A fetched page -> its document: from the page's own raw Markdown where the site gives it, else from its HTML."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urljoin, urlsplit

from app.core.language import Vocabulary
from ingestion.convert import Document, SourceText, convert
from ingestion.convert.document import MARKDOWN_TYPES, decode, source_text
from ingestion.convert.raw import with_facts
from ingestion.convert.samples import Decision, Part, Samples, decided
from ingestion.convert.tree import tree_of
from ingestion.convert.twins import broken, has_left_overs, lost, targets
from ingestion.crawl.directory import published_links
from ingestion.crawl.exchange import ACCEPT_HTML, ACCEPT_MARKDOWN, HTML_TYPES, Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.link_base import link_base
from ingestion.entry import Entry, Given
from ingestion.errors import ConversionError, PageError, PageGone, PageSkipped
from ingestion.sources import Source
from ingestion.urls import RAW_SUFFIXES, host, joined, origin, public_url
from ingestion.workers import Workers

_PLAIN = Entry("", "", Source(url="http://localhost/"))


def converted(fetched: Fetched, entry: Entry, words: Vocabulary, base: str = "") -> Document:
    """The document of a download, with its source's selectors. Links start from `base`. Raises `ConversionError`."""
    site = entry.site
    document = convert(source_of(fetched, entry, words, base))
    if entry.file and fetched.media_type not in HTML_TYPES:
        return replace(document, markdown=published_links(document.markdown, site))
    return _as_given(document, entry.given) if entry.given else document


def source_of(fetched: Fetched, entry: Entry, words: Vocabulary, base: str = "") -> SourceText:
    """The download as its source wants it to be read. Raises `ConversionError` for bytes that none reads."""
    site = entry.site
    return replace(
        source_text(fetched, words),
        content_selector=site.content_selector,
        drop_selectors=site.drop_selectors,
        keep_selectors=site.keep_selectors,
        repeated=entry.repeated,
        base=base or (entry.given.base if entry.given else ""),
        anchors=site.anchors,
        file=unquote(entry.url.removeprefix(f"{site.url.rstrip('/')}/")) if entry.file else "",
        root=tree_of(site.directory, entry.file),
        ignores_noindex=site.noindex == "ignore",
    )


def _as_given(document: Document, given: Given) -> Document:
    """The document with what its metadata says of it."""
    headed = bool(document.title) or not given.title
    return replace(
        document,
        title=given.title or document.title,
        markdown=document.markdown if headed else f"# {given.title}\n\n{document.markdown}",
        languages={**document.languages, **({"metadata": given.language} if given.language else {})},
        published=given.published or document.published,
        version=given.version or document.version,
    )


@dataclass(frozen=True, slots=True)
class Page:
    """The HTML of a page, and its address."""

    document: Document
    url: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The `better` of a page's two forms, its Markdown, and why that is worse, if it is."""

    better: Document
    raw: Document
    reason: str


def compared(page: Page, raw: Fetched, entry: Entry, words: Vocabulary) -> Compared:
    """The comparison of a page's HTML and Markdown.

    Links of the Markdown start from the page's address, unless the HTML shows that they start from that of the Markdown.
    A source that insists on Markdown gets it if it isn't broken.
    """
    html = page.document
    bases = list({urljoin(base, "x"): base for base in (raw.url, page.url)}.values())
    forms = [converted(raw, entry, words, base) for base in reversed(bases)]
    best = max(forms, key=lambda form: len(targets(form) & targets(html)))
    reason = (lost if entry.site.markdown == "auto" else broken)(html, best)
    return Compared(html if reason else with_facts(best, html), best, reason)


@dataclass
class RawMarkdown:
    """Fetches pages and prefers their raw Markdown where it isn't worse, as each source's `markdown` says.

    A site that names none is probed once per form of address for Markdown next to its pages. Where the site answers with
    Markdown at once, a sample of its pages decides. `notes` counts the pages that were taken as HTML, by source. `learn` gets
    both forms of the pages of samples, with their site.
    """

    fetcher: Fetcher
    workers: Workers
    words: Vocabulary
    notes: Counter[str]
    samples: Samples = field(default_factory=Samples)
    learn: Callable[[Entry, Document, Document], Awaitable[None]] | None = None
    _decisions: dict[Part, Decision] = field(default_factory=dict)
    _deciding: dict[Part, asyncio.Lock] = field(default_factory=dict)
    _worse: dict[str, str] = field(default_factory=dict)
    _found: dict[tuple[str, bool], int | None] = field(default_factory=dict)
    _locks: dict[tuple[str, bool], asyncio.Lock] = field(default_factory=dict)

    async def fetch(self, entry: Entry, etag: str, last_modified: str) -> Fetched:
        """The page itself, conditionally where validators are given. Raises `PageError`."""
        mode, suffix = entry.site.markdown, entry.site.suffix
        accept = ACCEPT_HTML if mode == "off" else ACCEPT_MARKDOWN
        wanted = PageRequest(entry.url, etag=etag, last_modified=last_modified, accept=accept)
        if self._is_html(entry):
            try:
                return await self.fetcher.get(replace(wanted, url=public_url(entry.url), accept=ACCEPT_HTML))
            except (PageGone, PageSkipped):  # another address, or no HTML
                pass
        if suffix and not _is_raw(entry.url):
            try:
                return await self.fetcher.get(replace(wanted, url=_with_suffix(entry.url, suffix)))
            except (PageGone, PageSkipped):  # without Markdown, read the HTML
                pass
        return await self.fetcher.get(wanted)

    async def document(self, fetched: Fetched, entry: Entry) -> Document:
        """The document of the page. Raises `ConversionError`."""
        base = "" if entry.is_local or fetched.media_type in HTML_TYPES else self._link_base(fetched, entry)
        read = await self.workers.run(converted, fetched, entry.without_text(), self.words, base)
        if entry.is_local or entry.site.markdown == "off":
            return read
        if read.raw:
            return await self._checked(read, fetched, entry)
        if entry.site.markdown != "auto" or fetched.media_type not in HTML_TYPES or self._is_html(entry):
            return read
        named = read.markdown_url or (joined(fetched.url, fetched.markdown_url) if fetched.markdown_url else "")
        if named and host(named) == host(fetched.url):
            return await self._better(read, named, fetched.url, entry) or read
        return await self._beside(read, fetched.url, entry)

    async def _better(self, read: Document, url: str, page: str, entry: Entry) -> Document | None:
        """The better of the page and the Markdown at this address; None when there is none."""
        try:
            raw = await self.fetcher.get(PageRequest(url))
            if raw.media_type in HTML_TYPES:  # the site returns HTML for every address
                return None
            found = await self.workers.run(compared, Page(read, page), raw, entry, self.words)
        except (PageError, ConversionError):  # the HTML is there
            return None
        return self._noted(found, page, entry)

    def _noted(self, found: Compared, page: str, entry: Entry) -> Document:
        if found.reason and not self._is_html(entry):  # the decision has counted its pages
            self._note(found, page, entry, 1)
        return found.better

    def _note(self, found: Compared, page: str, entry: Entry, count: int) -> None:
        example = self._worse.setdefault(entry.site.url, f"the Markdown of {page} {found.reason}")
        self.notes[f"{entry.site.url}: HTML was read because the Markdown is worse ({example})"] += count

    async def is_worse(self, fetched: Fetched, entry: Entry) -> bool:
        """True for Markdown of a part of the site whose pages are read as HTML, which `fetch` gives from now on."""
        kind = fetched.media_type
        if entry.is_local or entry.site.markdown != "auto" or fetched.status != 200:
            return False
        if kind not in MARKDOWN_TYPES and not (kind == "text/plain" and _is_raw(fetched.url)):
            return False
        return (await self._decision(fetched, entry)).form == "html"

    def _is_html(self, entry: Entry) -> bool:
        known = self._decisions.get(self.samples.part(entry))
        return known is not None and known.form == "html" and entry.site.markdown == "auto"

    async def _checked(self, read: Document, fetched: Fetched, entry: Entry) -> Document:
        """The document of a page that came as Markdown, or of its HTML if that is better."""
        decision = await self._decision(fetched, entry) if entry.site.markdown == "auto" else Decision()
        if decision.form != "markdown" or await self.workers.run(has_left_overs, read):
            page = await self.html(public_url(fetched.url), entry)
            if page is not None:
                return self._noted(await self.workers.run(compared, page, fetched, entry, self.words), page.url, entry)
        if decision.ending and _is_raw(entry.url):
            return replace(read, canonical=entry.address + decision.ending)
        return read

    def _link_base(self, fetched: Fetched, entry: Entry) -> str:
        markdown = decode(fetched.body, fetched.charset, self.words.encoding)
        page = public_url(fetched.url)
        return link_base(markdown, (fetched.url, entry.address, page, f"{page.rstrip('/')}/"), self.samples.stems)

    async def html(self, url: str, entry: Entry | None = None) -> Page | None:
        """The HTML of the page at this address, or of its file; None if it has none."""
        for address in (url,) if url.endswith("/") else (url, f"{url}.html"):
            try:
                fetched = await self.fetcher.get(PageRequest(address, accept=ACCEPT_HTML))
                read = await self.workers.run(converted, fetched, entry or _PLAIN, self.words)
            except PageGone:
                continue
            except (PageError, ConversionError):
                return None
            return None if read.raw else Page(read, fetched.url)
        return None

    async def _decision(self, fetched: Fetched, entry: Entry) -> Decision:
        """How the pages of this page's part are read, decided once in a run."""
        part = self.samples.part(entry)
        async with self._deciding.setdefault(part, asyncio.Lock()):
            if part not in self._decisions:
                self._decisions[part] = await self._decide(fetched, entry)
        return self._decisions[part]

    async def _decide(self, fetched: Fetched, entry: Entry) -> Decision:
        found: list[tuple[Compared, Page, Fetched]] = []
        for one in self.samples.of_part(entry):
            raw = fetched if one.url == entry.url else await self._raw(one)
            page = await self.html(public_url(raw.url), one) if raw else None
            if raw is None or page is None:
                continue
            try:
                pair = await self.workers.run(compared, page, raw, one, self.words)
            except ConversionError:
                continue
            found.append((pair, page, raw))
            if self.learn is not None:
                await self.learn(one, pair.raw, page.document)
        endings = {page.url.removeprefix(public_url(raw.url)) for _, page, raw in found if _is_raw(raw.url)}
        ending = endings.pop() if len(endings) == 1 else ""
        form = decided(pair.reason for pair, _, _ in found)
        if form == "html":
            part = self.samples.part(entry)
            count = sum(1 for one in self.samples.parts.values() if one == part)
            self._note(found[0][0], found[0][1].url, entry, count)
        return Decision(form, ending if ending in (".html", "/") else "")

    async def _raw(self, entry: Entry) -> Fetched | None:
        """A page of the sample, if it comes as Markdown."""
        try:
            fetched = await self.fetcher.get(PageRequest(entry.url))
        except PageError:
            return None
        return None if fetched.media_type in HTML_TYPES else fetched

    async def _beside(self, read: Document, url: str, entry: Entry) -> Document:
        candidates = _candidates(url)
        key = (origin(url), urlsplit(url).path.endswith("/"))
        async with self._locks.setdefault(key, asyncio.Lock()):
            if candidates and key not in self._found:
                self._found[key] = None
                for number, candidate in enumerate(candidates):
                    if better := await self._better(read, candidate, url, entry):
                        self._found[key] = number
                        return better
        known = self._found.get(key)
        if known is None or known >= len(candidates):
            return read
        return await self._better(read, candidates[known], url, entry) or read


def _candidates(url: str) -> tuple[str, ...]:
    """Where the usual generators put the Markdown of a page."""
    if urlsplit(url).query or _is_raw(url):
        return ()
    if url.endswith("/"):
        return (f"{url}index.md", f"{url.rstrip('/')}.md") if urlsplit(url).path != "/" else (f"{url}index.md",)
    return tuple(_with_suffix(url, suffix) for suffix in RAW_SUFFIXES)


def _with_suffix(url: str, suffix: str) -> str:
    parts = urlsplit(url)
    path = parts.path.removesuffix(".html")
    return parts._replace(path=f"{path}index{suffix}" if path.endswith("/") else path + suffix).geturl()


def _is_raw(url: str) -> bool:
    return urlsplit(url).path.endswith(RAW_SUFFIXES)
