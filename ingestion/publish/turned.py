"""Pages that turned into something else since the last run: a login form, or one text in place of many different ones.

A site that answers 200 for a login or for what it can't find would otherwise overwrite its pages, a few in each run.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from app.core.types import Page
from ingestion.convert.prepare import same_text
from ingestion.crawl.exchange import LOGIN
from ingestion.entry import Entry
from ingestion.publish.change import PageChange
from ingestion.publish.draft import Baseline
from ingestion.urls import origin

MANY = 3
"""Pages that differed before and now say the same; two are often merged by their author."""

MOST_HELD = 1000
"""Changed pages that wait for others with their text at most. It bounds memory."""

LONGEST_HELD = 400
"""Words of a changed page that waits: what a site says in place of its pages is short. Longer ones are embedded meanwhile."""

LONGEST_OTHER = 150
"""Words of a page that only asks for a login or says that nothing is there, without what the site repeats."""

NOWHERE = "no-page-is-here-5f0c91d7"
"""The last part of an address that no site has."""

BEGINNING = 60
_NO_WORD = re.compile(r"(?<!\S)\S*[\d/]\S*")


def fingerprint(markdown: str, url: str, *, of_error: bool = False) -> int:
    """A hash of the words, without numbers and addresses, also that of the page itself as an error page may name it."""
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    # a name that is a word is what stubs by an author differ in
    text = markdown.replace(name, " ") if name and (of_error or not name.isalnum()) else markdown
    return hash(tuple(_words(_NO_WORD.sub(" ", text))))


def beginning(page: Page) -> str:
    """The first words of a page, for messages."""
    return " ".join(page.markdown[:500].split())[:BEGINNING]


@dataclass
class _Group:
    """Changed pages with one fingerprint: those that wait, and which texts they had before."""

    begin: str
    waiting: dict[str, PageChange] = field(default_factory=dict)
    hashes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unread: list[str] = field(default_factory=list)
    fingerprints: set[int] = field(default_factory=set)

    async def add(self, page: Page, known: Page, baseline: Baseline) -> None:
        """A page with this text, which the index knows as another one."""
        self.hashes[same_text(page.hash)].add(same_text(known.hash))
        self.unread.append(page.url)
        if sum(map(len, self.hashes.values())) >= MANY:
            for url in self.unread:  # old texts are read only where they can matter
                if old := await baseline.page(url):
                    self.fingerprints.add(fingerprint(old.markdown, url))
            self.unread.clear()

    def turned(self) -> list[PageChange]:
        """Returns the waiting pages that say the same as many others, and didn't before."""
        alike = len(self.fingerprints) >= MANY
        return [
            change
            for change in self.waiting.values()
            if change.put and (alike or len(self.hashes[same_text(change.put.page.hash)]) >= MANY)
        ]


@dataclass
class Turned:
    """Sifts the changes of a run; use its `reasons` by address after that. With `accepts`, every change is let through.

    `advice` says what to do when an address answers with a status, `nowhere` gives the Markdown of no page beside an entry.

    A changed page of few words is held back until many have its text, or until `rest`. New pages are never held.
    """

    baseline: Baseline
    advice: Callable[[str, int], str]
    nowhere: Callable[[Entry], Awaitable[str]]
    accepts: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    _groups: dict[int, _Group] = field(default_factory=dict)
    _nowhere: dict[str, str] = field(default_factory=dict)
    _held: dict[str, _Group] = field(default_factory=dict)

    async def sifted(self, change: PageChange) -> AsyncIterator[PageChange]:
        """The changes that can be decided after this one; those of `reasons` must not be written."""
        is_changed = change.report is not None and change.report.outcome == "changed"
        page = change.put.page if change.put and is_changed and not self.accepts else None
        known = self.baseline.states.get(page.url) if page else None
        if (
            page is None
            or known is None
            or known.collection != page.collection
            or same_text(page.hash) == same_text(known.hash)
        ):
            yield change
            return
        if await self._is_another(page, known) and (reason := await self._reason(change, page)):
            self.reasons[page.url] = reason
            yield change
            return
        if before := self._held.get(page.url):  # listed twice
            yield self._let_go(before.waiting[page.url])
        if len(_words(page.markdown)) > LONGEST_HELD:
            yield change
            return
        group = self._groups.setdefault(fingerprint(page.markdown, page.url), _Group(beginning(page)))
        group.waiting[page.url], self._held[page.url] = change, group
        await group.add(page, known, self.baseline)
        for waiting in group.turned():
            yield self._let_go(waiting, _told(group.begin))
        if len(self._held) > MOST_HELD:
            url, oldest = next(iter(self._held.items()))
            yield self._let_go(oldest.waiting[url])

    def rest(self) -> Iterator[PageChange]:
        """The changes that were held back and are those of honest pages."""
        for url, group in list(self._held.items()):
            yield self._let_go(group.waiting[url])

    def _let_go(self, change: PageChange, reason: str = "") -> PageChange:
        assert change.put is not None
        url = change.put.page.url
        del self._held.pop(url).waiting[url]
        if reason:
            self.reasons[url] = reason
        return change

    async def _reason(self, change: PageChange, page: Page) -> str:
        """The reason why this short page with another title and text isn't one for the index; empty if it is."""
        if change.login_form:
            return f"shows a login form instead of its text{self.advice(page.fetch.fetched_url, 401)}"
        entry, site = change.entry, origin(page.fetch.fetched_url)
        if entry is None or entry.is_local or urlsplit(page.fetch.fetched_url).path in ("", "/"):
            return ""  # some sites answer with their home page
        if site not in self._nowhere:
            self._nowhere[site] = await self.nowhere(entry)
        nothing = self._nowhere[site]
        same = fingerprint(nothing, NOWHERE) == fingerprint(page.markdown, page.fetch.fetched_url, of_error=True)
        return "says what the site says at an address that doesn't exist" if nothing and same else ""

    async def _is_another(self, page: Page, known: Page) -> bool:
        """True for a short page whose title and text are new: a page about logins keeps some of its words."""
        words = _words(page.markdown)
        if page.title == known.title or len(words) > LONGEST_OTHER or not (old := await self.baseline.page(page.url)):
            return False
        now, before = _phrases(words), _phrases(_words(old.markdown))
        return 4 * len(now & before) <= len(now)


def _told(begin: str) -> str:
    return (
        f"the same text as others now ({begin!r}), as a login or error page has: if the site wants a login, {LOGIN}; "
        "if the pages are right, use --force"
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _phrases(words: Sequence[str]) -> set[tuple[str, ...]]:
    return set(zip(words, words[1:], words[2:], strict=False))
