"""Pages that turned into something else since the last run: a login form, an error page, or one text in place of many different
ones; and new pages that are login forms.

A site that answers 200 for a login or for what it can't find would otherwise overwrite its pages, a few in each run.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol
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
"""Pages of one kind that wait for others like them at most. It bounds memory."""

LONGEST_HELD = 400
"""Words of a changed page that waits: what a site says in place of its pages is short. Longer ones are embedded meanwhile."""

LONGEST_OTHER = 150
"""Words of a page that only asks for a login or says that nothing is there, without what the site repeats."""

SHRUNK = 2
"""A page that became another one has lost its text when it has fewer words than one part in this many of before."""

NOWHERE = "no-page-is-here-5f0c91d7"
"""The last part of an address that no site has."""

OTHERS = (
    "has another title now, and hardly a word of its text, as other pages of the site have since this run: an error or a login page "
    "has that; if the pages are right, use --force"
)
BEGINNING = 60
_NO_WORD = re.compile(r"(?<!\S)\S*[\d/]\S*")


def fingerprint(markdown: str, url: str, *, of_error: bool = False) -> int:
    """A hash of the words, without numbers and addresses, also that of the page itself as an error page may name it."""
    return hash(tuple(_own_words(markdown, url, of_error=of_error)))


def _own_words(markdown: str, url: str, *, of_error: bool) -> list[str]:
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    # a name that is a word is what stubs by an author differ in
    text = markdown.replace(name, " ") if name and (of_error or not name.isalnum()) else markdown
    return _words(_NO_WORD.sub(" ", text))


def _is_alike(markdown: str, url: str, nothing: str) -> bool:
    """True if the page says what the site says where `nothing` is, or half of its phrases are those."""
    now, error = (_own_words(*one, of_error=True) for one in ((markdown, url), (nothing, NOWHERE)))
    phrases = _phrases(now)
    return bool(nothing) and (now == error or 0 < len(phrases) <= 2 * len(phrases & _phrases(error)))


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


class Site(Protocol):
    """The questions to a site that tell its error pages and login forms from its pages."""

    async def nowhere(self, entry: Entry) -> str:
        """The Markdown of an address beside the entry where no page is; empty if the site says that none is there."""

    async def with_form(self, url: str) -> str:
        """The Markdown of a listed page if it has a field for a password; else empty."""


@dataclass
class Turned:
    """Sifts the changes of a run; use its `reasons` by address after that. With `accepts`, every change is let through.

    `advice` says what to do when an address answers with a status.

    A changed page of few words is held back until many have its text or became other pages, too, or until `rest`. Of new pages, only
    short ones with a login form are held: they are let go where longer pages of the site have such a form, too.
    """

    baseline: Baseline
    advice: Callable[[str, int], str]
    site: Site
    accepts: bool = False
    reasons: dict[str, str] = field(default_factory=dict)
    _groups: dict[int, _Group] = field(default_factory=dict)
    _nowhere: dict[str, str] = field(default_factory=dict)
    _held: dict[str, _Group] = field(default_factory=dict)
    _others: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _forms: dict[str, PageChange] = field(default_factory=dict)
    _in_all: set[str] = field(default_factory=set)

    @property
    def of_index(self) -> bool:
        """True if one of the pages that turned is in the index."""
        return not self.reasons.keys().isdisjoint(self.baseline.states)

    async def sifted(self, change: PageChange) -> AsyncIterator[PageChange]:
        """The changes that can be decided after this one; those of `reasons` must not be written."""
        page = change.put.page if change.put and not self.accepts else None
        outcome = change.report.outcome if change.report else ""
        if page is None:
            yield change
            return
        if change.login_form and len(_words(page.markdown)) > LONGEST_OTHER:
            self._in_all.add(origin(page.fetch.fetched_url))
        known = self.baseline.states.get(page.url)
        if outcome == "new" and change.login_form and known is None:
            for one in self._with_new_form(change, page):
                yield one
        elif (
            outcome != "changed"
            or known is None
            or known.collection != page.collection
            or same_text(page.hash) == same_text(known.hash)
        ):
            yield change
        else:
            async for one in self._with_changed(change, page, known):
                yield one

    def _with_new_form(self, change: PageChange, page: Page) -> Iterator[PageChange]:
        """The changes to write now: a short page with a login form waits for `rest`."""
        if len(_words(page.markdown)) > LONGEST_OTHER:
            yield change
            return
        self._forms[page.url] = change
        if len(self._forms) > MOST_HELD:
            yield self._form_of(next(iter(self._forms)), is_login=True)

    async def _with_changed(self, change: PageChange, page: Page, known: Page) -> AsyncIterator[PageChange]:
        others: list[str] = []
        if await self._is_another(page, known):
            if reason := await self._reason(change, page):
                self.reasons[page.url] = reason
                yield change
                return
            others = await self._became_others(change, page)
        if before := self._held.get(page.url):  # listed twice
            yield self._let_go(before.waiting[page.url])
        if len(_words(page.markdown)) > LONGEST_HELD:
            yield change
            return
        for waiting in await self._held_with(change, page, known):
            yield waiting
        for url in others:
            if url in self._held:
                yield self._let_go(self._held[url].waiting[url], OTHERS)

    async def _became_others(self, change: PageChange, page: Page) -> list[str]:
        """The pages of its site that became others and lost their texts in this run, with this one, if they are many."""
        others = self._others[origin(page.fetch.fetched_url)]
        if change.entry and not change.entry.is_local and await self._lost_text(page):
            others.append(page.url)
        return others if len(others) >= MANY else []

    async def _held_with(self, change: PageChange, page: Page, known: Page) -> list[PageChange]:
        """Hold the change back. The changes that can be decided then."""
        group = self._groups.setdefault(fingerprint(page.markdown, page.url), _Group(beginning(page)))
        group.waiting[page.url], self._held[page.url] = change, group
        await group.add(page, known, self.baseline)
        decided = [self._let_go(waiting, _told(group.begin)) for waiting in group.turned()]
        if len(self._held) > MOST_HELD:
            url, oldest = next(iter(self._held.items()))
            decided.append(self._let_go(oldest.waiting[url]))
        return decided

    async def rest(self) -> AsyncIterator[PageChange]:
        """The changes that were held back, of which those of `reasons` must not be written."""
        for url, group in list(self._held.items()):
            yield self._let_go(group.waiting[url])
        for url, change in list(self._forms.items()):
            assert change.put is not None
            site = origin(change.put.page.fetch.fetched_url)
            if site not in self._in_all and await self._has_form_in_all(site):
                self._in_all.add(site)
            yield self._form_of(url, is_login=site not in self._in_all)

    def _let_go(self, change: PageChange, reason: str = "") -> PageChange:
        assert change.put is not None
        url = change.put.page.url
        del self._held.pop(url).waiting[url]
        if reason:
            self.reasons[url] = reason
        return change

    def _form_of(self, url: str, *, is_login: bool) -> PageChange:
        change = self._forms.pop(url)
        assert change.put is not None
        if is_login:
            place = change.put.page.fetch.fetched_url
            self.reasons[url] = f"is a login form{self.advice(place, 401)}; if it is a page, use --force"
        return change

    async def _has_form_in_all(self, site: str) -> bool:
        """True if the longest page that the index has of this site shows a form for a login beside its text."""
        pages = [page for page in self.baseline.states.values() if origin(page.fetch.fetched_url) == site]
        longest = max(pages, key=lambda page: len(page.derived.chunk_ids), default=None)
        return longest is not None and len(_words(await self.site.with_form(longest.url))) > LONGEST_OTHER

    async def _reason(self, change: PageChange, page: Page) -> str:
        """The reason why this short page with another title and text isn't one for the index; empty if it is."""
        if change.login_form:
            return f"shows a login form instead of its text{self.advice(page.fetch.fetched_url, 401)}"
        entry, site = change.entry, origin(page.fetch.fetched_url)
        if entry is None or entry.is_local or urlsplit(page.fetch.fetched_url).path in ("", "/"):
            return ""  # some sites answer with their home page
        if site not in self._nowhere:
            self._nowhere[site] = await self.site.nowhere(entry)
        same = _is_alike(page.markdown, page.fetch.fetched_url, self._nowhere[site])
        return "says what the site says at an address that doesn't exist" if same else ""

    async def _is_another(self, page: Page, known: Page) -> bool:
        """True for a short page whose title and text are new: a page about logins keeps some of its words."""
        words = _words(page.markdown)
        if page.title == known.title or len(words) > LONGEST_OTHER or not (old := await self.baseline.page(page.url)):
            return False
        now, before = _phrases(words), _phrases(_words(old.markdown))
        return 4 * len(now & before) <= len(now)

    async def _lost_text(self, page: Page) -> bool:
        """True where the site has a text for what it can't find, or where this page had a longer one before."""
        if self._nowhere.get(origin(page.fetch.fetched_url)):
            return True
        old = await self.baseline.page(page.url)
        return old is not None and SHRUNK * len(_words(page.markdown)) <= len(_words(old.markdown))


def _told(begin: str) -> str:
    return (
        f"the same text as others now ({begin!r}), as a login or error page has: if the site wants a login, {LOGIN}; "
        "if the pages are right, use --force"
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _phrases(words: Sequence[str]) -> set[tuple[str, ...]]:
    return set(zip(words, words[1:], words[2:], strict=False))
