"""Anchors of raw Markdown. The rule of a site is found once, by comparing a page's HTML with the rules of generators."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ingestion.convert import Document
from ingestion.convert.raw import with_anchors
from ingestion.convert.slugs import RULES
from ingestion.convert.structure import Heading, headings_in
from ingestion.workers import Workers

AnchorMode = Literal["auto", "github", "mkdocs", "none"]
FEWEST = 2
"""Headings that an HTML page and its Markdown must share for a comparison."""

PROBES = 3
"""HTML pages fetched per site at most: on the first one, all rules may agree."""


@dataclass(frozen=True, slots=True)
class SiteRules:
    """The rules that fit all ids seen so far, and the levels of headings with and without ids."""

    rules: tuple[str, ...]
    levels: frozenset[int] = frozenset()
    without_ids: frozenset[int] = frozenset()

    def anchors(self, headings: Sequence[Heading]) -> list[str]:
        """An anchor for each heading, empty if it isn't certain."""
        made = self.slugs(headings)
        first = made[self.rules[0]] if self.rules else [""] * len(headings)
        agreed = [len({slugs[at] for slugs in made.values()}) == 1 for at in range(len(headings))]
        return [
            heading.anchor or (slug if sure and self._has_ids(heading.level) else "")
            for heading, slug, sure in zip(headings, first, agreed, strict=True)
        ]

    def unsure(self, headings: Sequence[Heading]) -> bool:
        """True when the rules differ on these headings, so that another HTML page could decide."""
        return len({tuple(made) for made in self.slugs(headings).values()}) > 1

    def slugs(self, headings: Sequence[Heading]) -> Mapping[str, list[str]]:
        """The slugs of the headings by rule."""
        return _by_rule(self.rules, headings, titled=1 in self.levels)

    def _has_ids(self, level: int) -> bool:
        if level == 1:  # many themes put the title elsewhere
            return level in self.levels
        return level not in self.without_ids


def learn(known: SiteRules, raw: Sequence[Heading], html: Sequence[Heading]) -> SiteRules | None:
    """The rules after comparing both forms of a page; None when they share too few headings."""
    pairs = _paired(raw, html)
    seen = [at for at, other in pairs.items() if other.anchor]
    if len(seen) < FEWEST:
        return None
    made = _by_rule(known.rules, raw, titled=any(raw[at].level == 1 for at in seen))
    rules = tuple(rule for rule in known.rules if all(made[rule][at] == pairs[at].anchor for at in seen))
    levels = frozenset(raw[at].level for at in seen)
    without_ids = frozenset(raw[at].level for at, other in pairs.items() if not other.anchor)
    return SiteRules(rules, (known.levels | levels) - without_ids, known.without_ids | without_ids)


def _by_rule(rules: Sequence[str], headings: Sequence[Heading], *, titled: bool) -> Mapping[str, list[str]]:
    """Slugs of the headings, except of those with ids of their own and, unless `titled`, of the title."""
    open_ = [at for at, heading in enumerate(headings) if not heading.anchor and (titled or heading.level > 1)]
    made: dict[str, list[str]] = {}
    for rule in rules:
        slugs = [heading.anchor for heading in headings]
        for at, slug in zip(open_, RULES[rule]([headings[at].text for at in open_]), strict=True):
            slugs[at] = slug
        made[rule] = slugs
    return made


def _paired(raw: Sequence[Heading], html: Sequence[Heading]) -> dict[int, Heading]:
    """The HTML's heading of each raw one that has no id of its own, where level and words leave no doubt."""
    same, others = _alike(raw), _alike(html)
    return {
        at: html[other]
        for key, found in same.items()
        if len(found) == len(others[key])
        for at, other in zip(found, others[key], strict=True)
        if not raw[at].anchor
    }


def _alike(headings: Sequence[Heading]) -> defaultdict[tuple[int, str], list[int]]:
    """Where headings of each level and words are."""
    found: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for at, heading in enumerate(headings):
        found[heading.level, heading.text].append(at)
    return found


@dataclass
class Anchors:
    """Adds anchors to raw Markdown, site by site. `html` fetches the HTML form of an address, or None."""

    mode: AnchorMode
    html: Callable[[str], Awaitable[Document | None]]
    workers: Workers
    _rules: dict[str, SiteRules] = field(default_factory=dict)
    _probed: dict[str, int] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def learn(self, site: str, raw: Document, page: Document) -> None:
        """Learn the rules of the site from both forms of a page."""
        if self.mode != "auto":
            return
        async with self._locks.setdefault(site, asyncio.Lock()):
            headings = await self.workers.run(headings_in, raw.markdown)
            known = self._rules.get(site)
            if known := await self.workers.run(_learn, known, headings, page.markdown) or known:
                self._rules[site] = known

    async def anchored(self, read: Document, site: str, url: str) -> Document:
        """The raw document with ` {#id}` on the headings whose anchor is certain; `url` is the page for readers."""
        if self.mode == "none":
            return read
        headings = await self.workers.run(headings_in, read.markdown)
        if all(heading.anchor for heading in headings):
            return read
        if self.mode == "auto":
            async with self._locks.setdefault(site, asyncio.Lock()):
                rules = await self._ask(headings, site, url)
        else:
            rules = SiteRules((self.mode,), levels=frozenset({1}))
        if not rules.rules:
            return read
        return await self.workers.run(_marked, read, headings, rules)

    async def _ask(self, headings: Sequence[Heading], site: str, url: str) -> SiteRules:
        """The rules of the site, after reading this page's HTML where that can decide between them."""
        known = self._rules.get(site)
        probed = self._probed.get(site, 0)
        teachable = len([heading for heading in headings if not heading.anchor]) >= FEWEST
        if teachable and probed < PROBES and (known is None or await self.workers.run(known.unsure, headings)):
            self._probed[site] = probed + 1
            document = await self.html(url)
            if document is not None:
                known = await self.workers.run(_learn, known, headings, document.markdown) or known
            if known is not None:
                self._rules[site] = known
        return known or SiteRules(())


def _learn(known: SiteRules | None, headings: Sequence[Heading], html: str) -> SiteRules | None:
    return learn(known or SiteRules(tuple(RULES)), headings, headings_in(html))


def _marked(read: Document, headings: Sequence[Heading], rules: SiteRules) -> Document:
    lines = [
        f"{'#' * heading.level} {heading.text} {{#{anchor}}}" if anchor else f"{'#' * heading.level} {heading.text}"
        for heading, anchor in zip(headings, rules.anchors(headings), strict=True)
    ]
    return replace(read, markdown=with_anchors(read.markdown, "\n\n".join(lines)))
