"""Examples of the patterns that functions build, for `bench.patterns`: by function, each pattern with the way it is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from app.citing import citations, refusal, wording
from app.core.filters import Filters
from app.core.prompts import Prompts, load_prompts
from app.pipeline import conversation as history
from app.pipeline import replies
from app.pipeline.steps.optional.period_rules import open_rules
from app.text import literals, redaction
from app.text.sought import Sought
from ingestion.crawl import sitemap_parse
from ingestion.split import glossary

Patterns = Iterable[tuple[re.Pattern[Any], str]]


@cache
def _prompts() -> Prompts:
    folders = Path(__file__).parents[1].glob("prompts/*/language.toml")
    return load_prompts(tuple(path.parent.name for path in folders))


def _refusals() -> Patterns:
    return [(re.compile(language.no_answer), "search") for language in _prompts().languages.values()]


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


BOUNDED: Mapping[str, int] = {
    **{
        f"app.text.redaction.{name}": redaction.LONGEST
        for name in vars(redaction)
        if name.startswith("_") and name[1].isupper()
    },
    "app.text.redaction._told": redaction.LONGEST,
    "app.citing.refusal._refuses": refusal.LONGEST_SENTENCE,
    "app.core.language._pattern": refusal.LONGEST_SENTENCE,
    "ingestion.crawl.sitemap_parse._END": sitemap_parse.END,
}
"""Characters that the code cuts texts to before it tries these patterns."""

AWAITED: frozenset[str] = frozenset()
"""Patterns that take more than linear time until they are rewritten: none is to be added."""


BUILT: Mapping[str, Callable[[], Patterns]] = {
    "app.text.redaction._told": lambda: [(redaction._told(frozenset({"password", "pin"})), "finditer")],  # noqa: SLF001
    "app.core.filters.Filters.admits": _filters,
    "app.core.language._pattern": _refusals,
    "app.citing.citations._pattern": lambda: [(citations._pattern(("passage", "source"), ("and", "or")), "fullmatch")],  # noqa: SLF001
    "app.index.opensearch.catalog.Catalog._numbers_of_indices": _none,  # names of our own indices
    "app.citing.refusal._refuses": _refusals,
    "app.citing.refusal._contrast": lambda: [(refusal._contrast(frozenset({"but", "yet"})), "finditer")],  # noqa: SLF001
    "app.citing.refusal._only": lambda: [(refusal._only(frozenset({"only", "just"})), "search")],  # noqa: SLF001
    "app.citing.wording._pattern": lambda: [(wording._pattern(("passage", "passages")), "finditer")],  # noqa: SLF001
    "app.citing.support._holds": lambda: [(re.compile(r"(?<![\d.])16(?!\d)"), "search")],
    "app.pipeline.replies._list": lambda: [
        (replies._list(_prompts().vocabulary.labels, _prompts().vocabulary.and_or), "fullmatch")  # noqa: SLF001
    ],
    "app.pipeline.replies.replied_numbers": partial(_words_of, "fullmatch", "none"),
    "app.pipeline.replies.says_none": partial(_words_of, "match", "none"),
    "app.pipeline.conversation._heading": lambda: [(history._heading(("Sources:", "Zdroje:")), "fullmatch")],  # noqa: SLF001
    "app.pipeline.steps.optional.period_rules.PeriodRules.__init__": _words,
    "app.pipeline.steps.optional.period_rules.PeriodRules._compiled": partial(_rules, "finditer", "_patterns"),
    "app.pipeline.steps.optional.period_rules.PeriodRules._counted": partial(_rules, "finditer", "_last"),
    "app.pipeline.steps.optional.period_rules._any": partial(_rules, "search", "_time", "_hint"),
    "app.text.sought.Sought._places": lambda: [
        (re.compile(Sought.of("storage classes vol", "en", open_end=True).pattern), "finditer")
    ],
    "app.text.literals._amount": lambda: [(literals._amount(), "finditer")],  # noqa: SLF001
    "app.text.literals._measured": lambda: [(literals._measured(), "finditer")],  # noqa: SLF001
    "app.text.literals._in_table": lambda: [
        (re.compile(r"\|\s*10\s*\|"), "search"),
        (re.compile(r"(?<!\w)gib(?!\w)"), "search"),
    ],
    "ingestion.crawl.directory.published_links": lambda: [(re.compile(r"(\]\(<?)/a/([^\s()#?<>]*)"), "finditer")],
    "ingestion.convert.html_dates._times": partial(_words_of, "search", "updated", "published"),
    "ingestion.convert.javascript.needs_script": partial(_words_of, "search", "javascript"),
    "ingestion.split.glossary._pattern": lambda: [(glossary._pattern("virtual machine disk"), "finditer")],  # noqa: SLF001
}
