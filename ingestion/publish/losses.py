"""The check before publishing: an outage, a login page or half a sitemap must not empty the index."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.settings import Settings
from app.core.types import Page
from app.index.run_history import SourceRuns
from ingestion.publish.turned import beginning
from ingestion.report import PageReport

COLLAPSED = 4
"""A page whose text is now shorter than one part in this many has lost it ..."""

LEAST_LENGTH = 400
"""... unless there were fewer characters."""

ONE_TEXT = 5
"""Number of pages with one text that, if they are most of those read, are a login or error page."""

MAX_FAILED = 50
"""Percentage of the pages that may fail in a published run."""

SHOWN = 3
_ADDRESS = re.compile(r"\bhttps?://\S+")

ReadOld = Callable[[str], Awaitable[Page | None]]


@dataclass(frozen=True, slots=True)
class _Text:
    hash: str
    length: int
    begin: str
    source: str

    @classmethod
    def of(cls, page: Page) -> _Text:
        return cls(page.hash, len(page.markdown), beginning(page), page.fetch.source)


@dataclass(frozen=True, slots=True)
class Loss:
    """A reason against publishing a run, and the sources that it would publish without."""

    reason: str
    sources: frozenset[str]


@dataclass
class LossCheck:
    """Finds what a run would lose of the pages `known` before it; `listed` has the source of each address that it reads.

    Pages that moved, by a redirect or with the same text, are not lost. Those that `turned` are, for the reasons there,
    though their old text stays. `history` has the pages of each source after earlier runs.
    """

    known: Sequence[Page]
    settings: Settings
    listed: Mapping[str, str] = field(default_factory=dict)
    turned: Mapping[str, str] = field(default_factory=dict)
    history: Mapping[str, SourceRuns] = field(default_factory=dict)
    _texts: dict[str, _Text] = field(default_factory=dict)

    def put(self, page: Page) -> None:
        """Record a page, with its Markdown, that was written to the draft."""
        self._texts[page.url] = _Text.of(page)

    async def losses(self, pages: Sequence[PageReport], read_old: ReadOld, now: Mapping[str, int]) -> list[Loss]:
        """What speaks against publishing a run with these pages; empty when it may be published.

        `read_old` gives a page as the live index has it, `now` is how many pages each source would have.
        """
        gone = self._gone(pages)
        lost = {**self.turned, **gone}
        lost |= await self._collapsed(lost, read_old)
        return [
            *(self._too_many(lost) or self._eroded(lost, gone, now)),
            *self._unreadable(pages),
            *self._one_text(pages),
        ]

    def _gone(self, pages: Sequence[PageReport]) -> dict[str, str]:
        """By address, the reasons why pages are removed whose text is not found elsewhere."""
        removed = {page.url: page.reason for page in pages if page.outcome == "removed"}
        texts = {page.hash for page in self.known if page.url not in removed and page.url not in self._texts}
        texts |= {text.hash for url, text in self._texts.items() if url not in removed}
        leads_to = {passed: page.url for page in pages if page.read for passed in page.redirects}
        followed: set[str] = set()
        lost: dict[str, str] = {}
        for page in self.known:
            if page.url not in removed or page.hash in texts:
                continue
            target = leads_to.get(page.fetch.fetched_url, "")
            if target and target not in followed:
                followed.add(target)  # once only: a site often redirects all its removed pages to one
                continue
            lost[page.url] = _ADDRESS.sub("another page", removed[page.url])
        return lost

    async def _collapsed(self, gone: Collection[str], read_old: ReadOld) -> dict[str, str]:
        """By address, how pages that still exist lost their text: it is nearly empty."""
        changed = {p.url for p in self.known if p.url in self._texts and self._texts[p.url].hash != p.hash}
        if not self._too_many(dict.fromkeys([*gone, *changed], "")):
            return {}  # read the old texts only when they can matter
        before = {page.url: _Text.of(page) for page in [await read_old(url) for url in sorted(changed)] if page}
        lost: dict[str, str] = {}
        for url, old in before.items():
            now = self._texts[url]
            if old.length >= LEAST_LENGTH and now.length * COLLAPSED < old.length:
                lost[url] = f"hardly a text left ({now.begin!r})"
        return lost

    def _too_many(self, lost: Mapping[str, str]) -> list[Loss]:
        """One for each site that loses too much, or for a collection that does with all its sites."""
        groups: dict[str, list[Page]] = defaultdict(list)
        for page in self.known:
            groups[page.fetch.source].append(page)
        found = [loss for source, pages in sorted(groups.items()) for loss in self._loss(source, pages, lost)]
        if found:
            return found
        groups.clear()
        for page in self.known:
            groups[f"the collection {page.collection}"].append(page)
        return [loss for name, pages in sorted(groups.items()) for loss in self._loss(name, pages, lost)]

    def _loss(self, name: str, pages: Sequence[Page], lost: Mapping[str, str]) -> Iterator[Loss]:
        """Nothing where the loss is within the limit; a single page may always go."""
        missing = [page for page in pages if page.url in lost]
        if len(missing) <= 1 or 100 * len(missing) <= self.settings.max_lost * len(pages):
            return
        why = "; ".join(_most_common(Counter(lost[page.url] for page in missing)))
        reason = (
            f"{len(missing)} of {len(pages)} pages of {name} would be lost: {why} "
            f"(the limit is {self.settings.max_lost} %, DOCS_MAX_LOST)"
        )
        yield Loss(reason, frozenset(page.fetch.source for page in missing))

    def _eroded(self, lost: Collection[str], gone: Collection[str], now: Mapping[str, int]) -> Iterator[Loss]:
        """One for each source that loses pages in this run, and too many in all since it had the most."""
        known = Counter(page.fetch.source for page in self.known)
        standing = Counter(page.fetch.source for page in self.known if page.url in lost and page.url not in gone)
        for source, count in sorted(Counter(page.fetch.source for page in self.known if page.url in lost).items()):
            runs = self.history.get(source, SourceRuns()).pages
            most = max(runs, default=0)
            # new pages make up for lost ones
            remaining = max(now.get(source, 0) - standing[source], known[source] - count)
            if most - remaining > 1 and 100 * (most - remaining) > self.settings.max_lost * most:
                reason = (
                    f"{source} would have {remaining} pages after this run, and had {most} in the last {len(runs)} runs: it loses "
                    f"them little by little (the limit is {self.settings.max_lost} %, DOCS_MAX_LOST)"
                )
                yield Loss(reason, frozenset({source}))

    def _unreadable(self, pages: Sequence[PageReport]) -> Iterator[Loss]:
        """One for all pages; to be left out are the sources of which most pages failed."""
        failed = [p for p in pages if (p.outcome == "failed" or p.kept) and p.url not in self.turned]
        asked = [*failed, *(page for page in pages if page.read)]
        if len(failed) <= 1 or 100 * len(failed) <= MAX_FAILED * len(asked):
            return
        why = "; ".join(_most_common(Counter(page.reason for page in failed)))
        reason = f"{len(failed)} of {len(asked)} pages could not be read: {why} (the limit is {MAX_FAILED} %)"
        sources = {page.url: page.fetch.source for page in self.known} | dict(self.listed)
        of_source, all_of_source = (Counter(sources.get(page.url, "") for page in some) for some in (failed, asked))
        most = frozenset(one for one, count in of_source.items() if 100 * count > MAX_FAILED * all_of_source[one])
        yield Loss(reason, most)

    def _one_text(self, pages: Sequence[PageReport]) -> Iterator[Loss]:
        """Include new pages: the first run may already find a login page."""
        hashes = {page.url: page.hash for page in self.known}
        new = [text for url, text in self._texts.items() if hashes.get(url) != text.hash]
        read = sum(1 for page in pages if page.read)
        for hash_, count in Counter(text.hash for text in new).most_common(1):
            if count >= ONE_TEXT and 2 * count > read:
                same = [text for text in new if text.hash == hash_]
                reason = f"{count} of {read} pages say the same ({same[0].begin!r}), as a login or error page does: if the site wants a login, set `headers` of its source"
                yield Loss(reason, frozenset(text.source for text in same))


def _most_common(reasons: Counter[str]) -> Iterator[str]:
    for reason, count in reasons.most_common(SHOWN):
        yield f"{reason} ({count})"
    if len(reasons) > SHOWN:
        yield f"{sum(count for _, count in reasons.most_common()[SHOWN:])} for other reasons"
