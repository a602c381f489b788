"""Examples of the patterns that functions build, for `bench.patterns`: by function, each pattern with the way it is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from app.citing import citations
from app.core.filters import Filters
from app.core.prompts import Prompts, load_prompts
from app.pipeline import conversation as history
from app.pipeline.steps import cite
from app.pipeline.steps.optional.period_rules import open_rules
from ingestion.split import glossary

Patterns = Iterable[tuple[re.Pattern[Any], str]]


@cache
def _prompts() -> Prompts:
    folders = Path(__file__).parents[1].glob("prompts/*/language.toml")
    return load_prompts(tuple(path.parent.name for path in folders))


def _refusals() -> Patterns:
    return [(re.compile(language.no_answer), "search") for language in _prompts().languages.values()]


def _rules(way: str, *names: str) -> Patterns:
    for rules in open_rules(_prompts()).values():
        for name in names:
            yield from ((pattern, way) for pattern in _inside(vars(rules)[name]))


def _words() -> Patterns:
    yield from _rules("fullmatch", "_months", "_weekdays", "_units", "_numbers", "_named", "_written")
    yield from _rules("match", "_edges")
    yield from _rules("search", "_about", "_perhaps_about", "_not_about")


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
    "app.pipeline.steps.cite._Answer._refuses": cite.LONGEST_REFUSAL,
    "app.core.prompts._pattern": cite.LONGEST_REFUSAL,
}
"""Characters that the code cuts texts to before it tries these patterns."""

AWAITED = frozenset(
    {
        "ingestion.convert.base._META_CHARSET",
        "app.text.fences._CODE_SPAN",
        "ingestion.convert.html._title",
        "ingestion.convert.inline_html._COMMENT",
        "ingestion.convert.inline_html._DRESSING",
        "ingestion.convert.inline_html._LINK",
        "ingestion.convert.links._ATTRIBUTE",
        "ingestion.convert.markdown._ANCHOR",
        "ingestion.convert.markdown._FRONT_LINE",
        "ingestion.convert.markdown._H1",
        "ingestion.convert.markdown._HEADED",
        "ingestion.convert.markdown._LINKED",
        "ingestion.convert.mdx._COMMENT",
        "ingestion.crawl.exchange._PARAMETER",
        "ingestion.split.faithful._CODE",
        "ingestion.split.faithful._ID",
        "ingestion.convert.language",
        "ingestion.convert.language._MAIL",
        "ingestion.publish.losses._NO_WORD",
        "ingestion.convert.raw._ANCHOR",
        "ingestion.convert.raw._HEADING",
        "ingestion.convert.raw._key",
        "ingestion.crawl.sitemap_parse._END",
        "ingestion.split.blocks._ANCHOR",
        "ingestion.split.translate._parts",
        "ingestion.split.translate._H1",
        "app.text.sentences._LAST_WORD",
        "ingestion.split.blocks._FENCE_LINE",
    }
)
"""Patterns that take more than linear time until they are rewritten: none is to be added."""


BUILT: Mapping[str, Callable[[], Patterns]] = {
    "app.core.filters.Filters.admits": _filters,
    "app.core.prompts._pattern": _refusals,
    "app.index.opensearch.catalog.Catalog.delete_others": _none,  # names of our own indices
    "app.citing.citations._pattern": lambda: [(citations._pattern(("passage", "source")), "fullmatch")],  # noqa: SLF001
    "app.pipeline.steps.cite._Answer._refuses": _refusals,
    "app.pipeline.conversation._heading": lambda: [(history._heading(_prompts()), "fullmatch")],  # noqa: SLF001
    "app.pipeline.steps.optional.period_rules.PeriodRules.__init__": _words,
    "app.pipeline.steps.optional.period_rules.PeriodRules._compiled": partial(_rules, "finditer", "_patterns"),
    "app.pipeline.steps.optional.period_rules.PeriodRules._counted": partial(_rules, "finditer", "_last"),
    "app.pipeline.steps.optional.period_rules._any": partial(_rules, "search", "_time", "_hint"),
    "app.text.literals._in_table": lambda: [
        (re.compile(r"\|\s*10\s*\|"), "search"),
        (re.compile(r"(?<!\w)gib(?!\w)"), "search"),
    ],
    "ingestion.crawl.directory.published_links": lambda: [(re.compile(r"(\]\(<?)/a/([^\s()#?<>]*)"), "finditer")],
    "ingestion.split.glossary._pattern": lambda: [(glossary._pattern("virtual machine disk"), "finditer")],  # noqa: SLF001
}
