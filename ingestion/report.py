"""The result of a run: every page as text and JSON, and the exit code."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from app.core.generation import GenerationInfo, RepeatedBlock
from app.core.log_message import masked
from app.index.run_history import RunResult, SourceRuns

Outcome = Literal["new", "changed", "unchanged", "removed", "skipped", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("new", "changed", "unchanged", "removed", "skipped", "failed")
READ: frozenset[Outcome] = frozenset({"new", "changed", "unchanged"})

EXIT_OK = 0
EXIT_NOT_PUBLISHED = 1
EXIT_WITH_FAILURES = 2
EXIT_REFUSED = 3

LONGEST_LIST = 20
EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class PageReport:
    """The result for one address.

    `reason` says why it was skipped, removed or failed; `note` what is odd about its language; `kept` that an
    older state of it stays in the index, unread since `stale_since`; `same_as` which page with the same text is searched instead of it;
    `translated` the languages that it was translated into; `site` the sitemap that left the index with all its pages;
    `other_language` that it isn't indexed because its language isn't configured.
    """

    url: str
    outcome: Outcome
    reason: str = ""
    language: str = ""
    note: str = ""
    kept: bool = False
    stale_since: str = ""
    same_as: str = ""
    site: str = ""
    other_language: bool = False
    chunks: int = 0
    translated: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def read(self) -> bool:
        """True when the site returned the page in this run, also as a copy of another one."""
        return self.outcome in READ or bool(self.same_as)


@dataclass(frozen=True, slots=True)
class TranslationPairs:
    """Pairs of pages that are translations of each other: how they were found, how many, and the first of them.

    `origin` is hreflang, address or content, `form` what tells the language in addresses, as "/{lang}/".
    """

    origin: str
    form: str
    pairs: int
    sample: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of these pairs for people."""
        return f"{self.origin} {self.form}".strip()


@dataclass(frozen=True, slots=True)
class TranslationReport:
    """Numbers of translation sets and their pages in the index, and how they were found."""

    sets: int = 0
    pages: int = 0
    pairs: tuple[TranslationPairs, ...] = ()

    @property
    def text(self) -> str:
        """A sentence; empty without any."""
        pairs = ", ".join(f"{of_origin.pairs} by {of_origin.name}" for of_origin in self.pairs)
        return f"Pages in several languages: {self.sets} ({self.pages} addresses; pairs: {pairs})." if pairs else ""


@dataclass(frozen=True, slots=True)
class WrittenTexts:
    """Calls of the language model for texts of one kind, and how many of them failed."""

    calls: int = 0
    failures: int = 0

    @property
    def text(self) -> str:
        """Both, in a few words."""
        return f"{self.calls}, of which {self.failures} failed" if self.failures else str(self.calls)


@dataclass
class Report:
    """The result of a run; `published` is the live generation after it, `seconds` the total time.

    `configured` are the languages of DOCS_LANGUAGES, `written` the texts that a language model wrote, by kind. `warnings` are about whole sites, `failed_sources` says of
    each source that failed why, `refused` has the reasons for not publishing. `changed` is False
    when the live generation stayed the same. A `dry_run` wrote nothing; the other fields say what a real run would do. `learned` is what is kept of each source for later runs.
    """

    sites: tuple[str, ...]
    pages: list[PageReport] = field(default_factory=list)
    published: GenerationInfo | None = None
    embedding_calls: int = 0
    embedded_texts: int = 0
    written: Mapping[str, WrittenTexts] = field(default_factory=dict)
    memory_mb: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    failed_sources: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    changed: bool = False
    dry_run: bool = False
    translations: TranslationReport = TranslationReport()
    configured: tuple[str, ...] = ()
    learned: Mapping[str, SourceRuns] | None = None
    repeated: Mapping[str, Sequence[RepeatedBlock]] = field(default_factory=dict)

    @property
    def languages(self) -> Mapping[str, int]:
        """The number of read pages in each language, the most frequent first."""
        return dict(Counter(page.language for page in self.pages if page.read and page.language).most_common())

    @property
    def other_languages(self) -> Mapping[str, int]:
        """The number of pages that aren't indexed because of their language, by language."""
        return dict(Counter(page.language for page in self.pages if page.other_language).most_common())

    @property
    def other_languages_text(self) -> str:
        """A text about pages left out because of their language, and how to index them; empty if there are none."""
        if not (left_out := self.other_languages):
            return ""
        counts = ", ".join(f"{count} {code}" for code, count in left_out.items())
        wanted = " ".join(dict.fromkeys((*self.configured, *left_out)))
        return (
            f"Pages in languages that aren't configured: {counts}. They aren't indexed. To index them, set "
            f'DOCS_LANGUAGES="{wanted}", or `languages` of a source for a language without prompts.'
        )

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """Pages by outcome; every outcome is there."""
        counted = Counter(page.outcome for page in self.pages)
        return {outcome: counted[outcome] for outcome in OUTCOMES}

    @property
    def failures(self) -> list[str]:
        """What couldn't be read, and why."""
        return [
            *self.failed_sources,
            *(f"{page.url}: {page.reason}" for page in self.pages if page.outcome == "failed"),
        ]

    @property
    def flagged(self) -> tuple[PageReport, ...]:
        """Pages with a note about their language."""
        return tuple(page for page in self.pages if page.note and not page.other_language)

    @property
    def exit_code(self) -> int:
        """0: all went well; 1: nothing was published; 2: published, but pages or sources failed; 3: refused, see `refused`.

        Skipped pages are no failure. A dry run ends as the real one would.
        """
        if self.refused:
            return EXIT_REFUSED
        if self.published is None and not (self.dry_run and self.read):
            return EXIT_NOT_PUBLISHED
        return EXIT_WITH_FAILURES if self.counts["failed"] or self.failed_sources else EXIT_OK

    @property
    def result(self) -> RunResult:
        """The result as it is kept with the index."""
        results: Mapping[int, RunResult] = {EXIT_OK: "published", EXIT_WITH_FAILURES: "partial"}
        return results.get(self.exit_code, "unpublished")

    @property
    def read(self) -> int:
        """The number of pages that the site gave."""
        return sum(1 for page in self.pages if page.read)

    @property
    def state(self) -> str:
        """The state of the index, in a sentence."""
        if self.refused:
            return (
                f"{'Dry run: a real one would not be' if self.dry_run else 'Not'} published: {'; '.join(self.refused)}."
            )
        if self.dry_run:
            return f"Dry run, nothing was written. A real one would {self._would()}."
        if self.published is None:
            return "Nothing was published; the index is as it was."
        info = self.published
        held = f"{info.pages} pages, {info.chunks} chunks ({', '.join(info.languages)})"
        if not self.changed:
            return f"Nothing changed: the index still holds {held}, generation {info.id}."
        return f"The index holds {held}."

    @property
    def text(self) -> str:
        """A short summary, then the problems."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count) or "no pages"
        embedded = "to embed" if self.dry_run else "embedded"
        languages = ", ".join(f"{count} {code}" for code, count in self.languages.items())
        lines = [
            f"{counts}; {self.seconds:.1f} s, {self.embedded_texts} texts {embedded} in {self.embedding_calls} calls",
            self.state,
            f"Languages: {languages}." if languages else "",
            self.other_languages_text,
            self._translated(),
            self.translations.text,
            *(
                f"Calls of the language model for {name}: {writer.text}."
                for name, writer in self.written.items()
                if writer.calls
            ),
            f"Memory: at most {self.memory_mb} MB." if self.memory_mb else "",
        ]
        lines = [line for line in lines if line]
        lines += _listed("Sources that failed, their pages stay as they were", self.failed_sources)
        for title, pages in (
            ("Failed", [p for p in self.pages if p.outcome == "failed"]),
            ("Skipped", [p for p in self.pages if p.outcome == "skipped" and not p.other_language]),
            ("Removed", [p for p in self.pages if p.outcome == "removed" and not p.site]),
        ):
            lines += _listed(title, [f"{p.url}: {p.reason}{_kept(p)}" for p in pages])
        for language in self.other_languages:
            pages = [p for p in self.pages if p.other_language and p.language == language]
            lines += _listed(f"Not indexed, in {language}", [p.url for p in pages], EXAMPLES)
        reasons = Counter((page.site, page.reason) for page in self.pages if page.site)
        lines += _listed("Sites removed", [f"{site}, {count} pages: {why}" for (site, why), count in reasons.items()])
        lines += _listed("Language to check", [f"{p.url}: {p.note}" for p in self.flagged])
        for pairs in self.translations.pairs:
            lines.append(f"Translations by {pairs.name}, for example:")
            lines += [f"  {' = '.join(pair)}" for pair in pairs.sample]
        for source, blocks in self.repeated.items():
            title = f"Left out of the pages of {source}, because most of them repeat it; keep_selectors keeps it"
            lines += _listed(
                title, [f"{one.selector}: {one.example} (on {one.share} % of the pages)" for one in blocks]
            )
        lines += _listed("To know", self.warnings)
        return masked("\n".join(lines))

    def to_json(self) -> str:
        """Everything, as one JSON object."""
        content = asdict(replace(self, learned=None)) | {
            "seconds": round(self.seconds, 3),
            "exit_code": self.exit_code,
            "counts": self.counts,
            "languages": self.languages,
            "other_languages": self.other_languages,
        }
        del content["configured"], content["learned"]
        return masked(json.dumps(content, ensure_ascii=False, indent=1))

    def _would(self) -> str:
        if not self.read:
            return "publish nothing"
        if not self.changed:
            return "change nothing"
        return f"embed {self.embedded_texts} texts and publish a new state of the index"

    def _translated(self) -> str:
        counted = Counter(language for page in self.pages for language in page.translated)
        listed = ", ".join(f"{count} into {language}" for language, count in sorted(counted.items()))
        return f"Translated pages: {listed}." if listed else ""


def _kept(page: PageReport) -> str:
    if not page.kept:
        return ""
    return f" (older state kept{f', unread since {page.stale_since[:10]}' if page.stale_since else ''})"


def _listed(title: str, lines: list[str], longest: int = LONGEST_LIST) -> list[str]:
    if not lines:
        return []
    more = [f"  ... and {len(lines) - longest} more (all are in the JSON report)"] if len(lines) > longest else []
    return [f"{title} ({len(lines)}):", *(f"  {line}" for line in lines[:longest]), *more]
