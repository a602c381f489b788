"""Finds pages that needn't be requested because their lastmod is unchanged: those of sites that have kept it truthfully so far."""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from app.core.generation import SourceRecord
from app.core.types import Page
from app.index.run_history import SourceRuns
from ingestion.crawl.exchange import parse_date
from ingestion.entry import Entry
from ingestion.report import PageReport

SETTLED = dt.timedelta(days=2)
"""The least age of a lastmod when a page is read: until then, the page may change on the same day, or be older than its sitemap."""

PROOFS = 5
"""Pages that must have changed together with their lastmod in earlier runs; ten times as many after each lie."""

CYCLE = 30
"""Each page is requested at least once in this many days ..."""

LEAST = 10
PER_CENT = 2
"""... and in each run at least so many."""

_DAY = 24 * 3600


def settled(lastmod: str) -> str:
    """The lastmod as it is stored with a page that was just read; empty if the page may still change without a new one."""
    date = parse_date(lastmod)
    return lastmod.strip() if date is not None and date <= dt.datetime.now(dt.UTC) - SETTLED else ""


@dataclass
class _Found:
    """Findings of a run about one source: requested pages of which lastmod says something, and how many of them failed."""

    held: frozenset[str] = frozenset()
    checked: frozenset[str] = frozenset()
    failed: int = 0
    moved: int = 0
    proofs: int = 0
    lie: str = ""

    @property
    def is_believed(self) -> bool:
        return not self.lie and 2 * self.failed <= len(self.checked)


@dataclass
class Lastmods:
    """Decides by the `known` history of each source which pages to request, and learns from those that were."""

    known: Mapping[str, SourceRuns] = field(default_factory=dict)
    _found: dict[str, _Found] = field(default_factory=lambda: defaultdict(_Found))

    def divided(self, entries: Sequence[Entry], is_current: Callable[[Entry], bool]) -> tuple[list[Entry], list[Entry]]:
        """The entries to request, and those to hold back until `holds` is asked about each, when all the others were read.

        `is_current` says of an entry whether the index has its page as it was at the same lastmod.
        """
        self._found.clear()
        current: dict[str, list[str]] = defaultdict(list)
        for entry in entries:
            known = self.known.get(entry.source, SourceRuns())
            if entry.lastmod and known.proofs >= PROOFS * 10**known.lies and is_current(entry):
                current[entry.source].append(entry.url)
        for source, urls in current.items():
            checked = _sample(urls, self.known[source].read)
            self._found[source] = _Found(frozenset(urls) - checked, checked)
        held = [entry for entry in entries if entry.url in self._found[entry.source].held]
        return [entry for entry in entries if entry.url not in self._found[entry.source].held], held

    def holds(self, entry: Entry) -> bool:
        """True if the page needn't be requested."""
        findings = self._found[entry.source]
        return entry.url in findings.held and findings.is_believed

    def learn(self, entry: Entry, known: Page, report: PageReport) -> None:
        """Compare a page that was requested, as the report says, with its known state of the same settings."""
        findings = self._found[entry.source]
        if entry.url in findings.checked and report.kept and not known.fetch.stale_since:
            findings.failed += 1
        if not (known.fetch.lastmod and entry.lastmod) or self.holds(entry):
            return
        moved = known.fetch.lastmod != entry.lastmod.strip()
        changed = report.outcome == "changed" or (report.outcome == "removed" and not report.other_language)
        findings.moved += moved
        findings.proofs += moved and changed
        if changed and not moved:
            findings.lie = findings.lie or entry.url

    def learned(self, complete: Iterable[str], kept: Iterable[SourceRecord]) -> Mapping[str, SourceRuns]:
        """The history of each of the `kept` sources after this run, which has read all of the `complete` ones."""
        told = dict(self.known)
        for source in {*complete, *self._found}:
            before, findings = told.get(source, SourceRuns()), self._found[source]
            # a site that renews the lastmod of many pages without a change proves nothing
            proofs = before.proofs + (findings.proofs if 2 * findings.proofs >= findings.moved else 0)
            told[source] = (
                replace(before, proofs=0, lies=before.lies + 1) if findings.lie else replace(before, proofs=proofs)
            )
        told |= {source: replace(told[source], read=round(time.time(), 3)) for source in complete}
        return {root: told[root] for record in kept for root in record.roots if root in told}

    def notes(self) -> list[str]:
        """Returns the lines of the report about each source."""
        return [
            f"{source}: {_told(findings)}"
            for source, findings in sorted(self._found.items())
            if findings.held or findings.checked
        ]


def _told(found: _Found) -> str:
    if found.lie:
        return f"all pages were requested, because {found.lie} changed and its lastmod didn't; lastmod isn't believed any more"
    if not found.is_believed:
        failed = f"{found.failed} of {len(found.checked)} with an unchanged lastmod failed"
        return f"all pages were requested, because {failed}"
    checked = f"{len(found.checked)} others were checked"
    return f"{len(found.held)} pages were not requested, because their lastmod is unchanged; {checked}"


def _sample(urls: Sequence[str], read: float) -> frozenset[str]:
    """The pages whose turn has come since the last run that has read the source, and as many of the next as are missing."""
    last = int(read // _DAY)
    days = int(time.time() // _DAY) - last
    turns = sorted(((_hash(url) - last - 1) % CYCLE, _hash(url), url) for url in urls)
    due = sum(1 for turn, _, _ in turns if turn < days)
    return frozenset(url for *_, url in turns[: max(due, LEAST, len(urls) * PER_CENT // 100)])


def _hash(url: str) -> int:
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest())
