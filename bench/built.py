"""Examples of the patterns that functions build, for `bench.patterns`: by function, each pattern with the way it is used."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from app.citing import citations, placement
from app.core.generation import named_versions
from app.core.prompts import Prompts, load_prompts
from app.core.turn import Message
from app.core.types import Filters
from app.index.vocabulary import Vocabulary
from app.pipeline import calls
from app.pipeline import conversation as history
from app.proof.wording import Wording
from app.text import literals, redaction
from app.text.analysis import analyse, fold, words_of
from app.text.answer_language import AnswerLanguage
from app.text.language import LanguageDetector, is_overview, is_smalltalk, without_stopwords
from app.text.query_highlight import QueryWords
from app.text.segments import LONGEST_SENTENCE
from ingestion.crawl import sitemap
from ingestion.split import translate
from plugins.steps.period import open_rules

Patterns = Iterable[tuple[re.Pattern[Any], str]]


@cache
def _prompts() -> Prompts:
    folders = Path(__file__).parents[1].glob("prompts/*/language.toml")
    return load_prompts(tuple(path.parent.name for path in folders))


def _spoken_addresses() -> re.Pattern[str]:
    return redaction._spoken(frozenset({"at"}), frozenset({"zavináč"}), frozenset({"dot"}))  # noqa: SLF001


def _words_of(way: str, *names: str) -> Patterns:
    for name in names:
        yield re.compile(getattr(_prompts().vocabulary, name), re.IGNORECASE), way


def _rules(way: str, *names: str) -> Patterns:
    for rules in open_rules(_prompts()).values():
        for name in names:
            yield from ((pattern, way) for pattern in _inside(vars(rules)[name]))


def _words() -> Patterns:
    yield from _rules("fullmatch", "_months", "_weekdays", "_units", "_numbers", "_named", "_written")
    yield from _rules("match", "_edges")
    yield from _rules("search", "_about", "_perhaps_about", "_not_about", "_other_things")
    yield from _rules("finditer", "_topics")


def _inside(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        yield from _inside(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _inside(each)


def _filters() -> Patterns:
    filters = Filters(sections=("/docs/a", "/b"), versions=("1.2", "2"))
    return [(re.compile(filters.section_pattern), "search"), (re.compile(filters.version_pattern), "search")]


def _none() -> Patterns:
    return []


def entries() -> Mapping[str, Callable[[str], object]]:
    """The functions that read a question as it comes, before anything is known of it."""
    prompts = _prompts()
    english = prompts.language("en")
    vocabulary = Vocabulary.of({"install": 3, "instance": 2, "로그인": 1})
    detector = LanguageDetector(prompts.languages, "en")
    passage = "Install it with `make run`, then log in. " * 50
    return {
        "analyse": lambda text: analyse(text, "cs"),
        "fold": fold,
        "words_of": words_of,
        "vocabulary": lambda text: [(vocabulary.corrected(fold(word), whole=True), vocabulary.completions(fold(word), 9)) for word in text.split()[-32:]],
        "query words": lambda text: QueryWords.of(text, "en", open_end=True).excerpt(passage),
        "marks": lambda text: QueryWords.of("install log", "en").excerpt(text),
        "detect": detector.detect,
        "shown": detector.shown,
        "guessed": detector.guessed,
        "is_smalltalk": lambda text: is_smalltalk(text, english),
        "is_overview": lambda text: is_overview(text, english),
        "without_stopwords": lambda text: without_stopwords(text, english),
        "named_versions": named_versions,
        "redacted": redaction.redacted,
        "referred": lambda text: history.referred((Message("user", "Hi"), Message("assistant", text), Message("user", text)), english),
        "earlier": lambda text: history.earlier((Message("user", text), Message("assistant", text), Message("user", text)), prompts),
        "claims": literals.claims,
        "comparable": literals.comparable,
        "answer language": lambda text: AnswerLanguage("en", prompts.languages).outcome(text),
    }  # fmt: skip


BOUNDED: Mapping[str, int] = {
    **{
        f"app.text.redaction.{name}": redaction.LONGEST
        for name in vars(redaction)
        if name.startswith("_") and name[1].isupper()
    },
    "app.text.redaction._told": redaction.LONGEST,
    "app.text.redaction._spoken": redaction.LONGEST,
    "app.citing.citations._refuses": LONGEST_SENTENCE,
    "app.proof.check.Checker._refuses": LONGEST_SENTENCE,
    "app.core.language._pattern": LONGEST_SENTENCE,
    "ingestion.crawl.sitemap._END": sitemap.END,
}
"""Characters that the code cuts texts to before it tries these patterns."""

AWAITED: frozenset[str] = frozenset()
"""Patterns that take more than linear time until they are rewritten: none is to be added."""


BUILT: Mapping[str, Callable[[], Patterns]] = {
    "app.text.redaction._told": lambda: [(redaction._told(frozenset({"password", "pin"})), "finditer")],  # noqa: SLF001
    "app.text.redaction._spoken": lambda: [(_spoken_addresses(), "finditer")],
    "app.core.types.Filters.admits": _filters,
    "app.proof.wording.Wording.__init__": lambda: [
        (pattern, "search") for pattern in Wording(_prompts().languages).numbers.values()
    ],
    "app.core.language._pattern": partial(_words_of, "fullmatch", "none"),
    "app.citing.citations._pattern": lambda: [(citations._pattern(("passage", "source"), ("and", "or")), "fullmatch")],  # noqa: SLF001
    "app.index.opensearch.catalog.Catalog._numbers_of_indices": _none,  # names of our own indices
    "app.citing.placement._pattern_of": lambda: [(placement._pattern_of(("passage", "passages")), "finditer")],  # noqa: SLF001
    "app.citing.sections._holds": lambda: [(re.compile(r"(?<![\d.])16(?!\d)"), "search")],
    "app.pipeline.calls._list": lambda: [
        (calls._list(_prompts().vocabulary.labels, _prompts().vocabulary.and_or), "fullmatch")  # noqa: SLF001
    ],
    "app.pipeline.calls.replied_numbers": partial(_words_of, "fullmatch", "none"),
    "app.pipeline.conversation._heading": lambda: [(history._heading(("Sources:", "Zdroje:")), "fullmatch")],  # noqa: SLF001
    "plugins.steps.period.PeriodRules.__init__": _words,
    "plugins.steps.period.PeriodRules._compiled": partial(_rules, "finditer", "_patterns"),
    "plugins.steps.period.PeriodRules._counted": partial(_rules, "finditer", "_last"),
    "plugins.steps.period._any": partial(_rules, "search", "_time", "_hint"),
    "app.proof.evidence.Evidence.has_ending": lambda: [(re.compile(r"\w-wal(?![\w-])"), "search")],
    "app.proof.evidence.Evidence.takes_value": lambda: [
        (re.compile(r"(?<![\w-])(?i:-g)(?:, ?--[\w-]+)?[ =]\[?(?:(\w{2,}+)(?!=)|<[^<>\n]+>)"), "finditer")
    ],
    "app.proof.evidence.Evidence.counts": lambda: [(re.compile(r"(?<!\w)(\w++) pages"), "finditer")],
    "app.text.literals._amount": lambda: [(literals._amount(), "finditer")],  # noqa: SLF001
    "app.text.literals._measured": lambda: [(literals._measured(), "finditer")],  # noqa: SLF001
    "app.text.literals.unit_in": lambda: [
        (re.compile(rf"(?<![^\W\d_])(?:{forms})(?!\w)", re.IGNORECASE), "search")
        for forms in literals._units().values()  # noqa: SLF001
    ],
    "app.text.literals._in_table": lambda: [
        (re.compile(r"\|\s*10\s*\|"), "search"),
        (re.compile(r"(?<!\w)gib(?!\w)"), "search"),
    ],
    "ingestion.crawl.directory.published_links": lambda: [(re.compile(r"(\]\(<?)/a/([^\s()#?<>]*)"), "finditer")],
    "ingestion.convert.html.page._times": partial(_words_of, "search", "updated", "published"),
    "ingestion.convert.html.page.needs_script": partial(_words_of, "search", "javascript"),
    "ingestion.split.translate._pattern": lambda: [(translate._pattern("virtual machine disk"), "finditer")],  # noqa: SLF001
}
