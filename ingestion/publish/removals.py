"""What leaves the index in a run: pages that their site no longer lists, and sites that give way to those of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.generation import SourceRecord
from app.core.types import Page
from ingestion.entry import Listing
from ingestion.publish.baseline import Baseline
from ingestion.report import PageReport, Report

OTHER_SITE = "of a site that wasn't given"
OWN_DOCUMENTATION = "our own documentation, which was for a first try"


@dataclass(frozen=True, slots=True)
class Removals:
    """What a run removes that fills these `collections` and `listed` the pages of its sources.

    `before` are the sources of the index. With `only`, pages of other sites leave these collections, with `replace`
    every collection.
    """

    baseline: Baseline
    listed: Listing
    collections: frozenset[str]
    before: Sequence[SourceRecord]
    only: bool = False
    replace: bool = False

    @property
    def covered(self) -> list[Page]:
        """Pages that earlier runs read from these sources, so that this run can lose them."""
        known = self.baseline.states.values()
        return [page for page in known if page.collection in self.collections and page.source in self.listed.sources]

    def reports(self, report: Report) -> list[PageReport]:
        """The pages to remove after a run with this report, each with the reason."""
        seen = {p.url for p in report.pages if p.read or p.kept or p.outcome == "removed"}
        moved = {passed: page.url for page in report.pages for passed in page.redirects}
        gone: list[PageReport] = []
        for page in self.baseline.states.values():
            if page.url in seen or not (reason := self._reason(page.source, page.collection)):
                continue
            if page.fetched_url in moved and page.collection in self.collections:
                reason = f"moved to {moved[page.fetched_url]}"
            site = page.source if reason in (OTHER_SITE, OWN_DOCUMENTATION) else ""
            gone.append(PageReport(page.url, "removed", reason, language=page.language, site=site))
        return gone

    def records(self, now: Sequence[SourceRecord]) -> tuple[SourceRecord, ...]:
        """The sources of the index after the run, which read those of `now`."""
        read = {(one.collection, root) for one in now for root in one.roots}
        found: list[SourceRecord] = []  # in the same order, so that a run of some of them changes nothing
        for one in self.before:
            if same := [new for new in now if new.options == one.options]:
                found += same
            elif not all((one.collection, root) in read or self._gives_way(root, one.collection) for root in one.roots):
                found.append(one)
        return (*found, *(one for one in now if one not in found))

    def _reason(self, root: str, collection: str) -> str:
        """Why a page of this source that wasn't read leaves; empty if it stays."""
        if root in self.listed.sources:
            return "no longer listed" if root in self.listed.complete and collection in self.collections else ""
        return self._gives_way(root, collection)

    def _gives_way(self, root: str, collection: str) -> str:
        if root in self.listed.sources:
            return ""
        if any(one.demo and root in one.roots for one in self.before):
            return OWN_DOCUMENTATION
        return OTHER_SITE if self.replace or (self.only and collection in self.collections) else ""
