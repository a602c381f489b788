"""How generators name the sections of a page: the rules from a heading's words to its id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

_MOST_DIGITS = 1000
Slugs = Callable[[Sequence[str]], list[str]]


def github(headings: Sequence[str]) -> list[str]:
    """As github-slugger does (GitHub, Docusaurus, Fumadocs): letters with diacritics stay, repeats get -1, -2."""
    seen: dict[str, int] = {}
    made: list[str] = []
    for heading in headings:
        plain = slug = "".join(c for c in heading.lower() if c in " -" or _is_word(c)).replace(" ", "-")
        while slug in seen:
            seen[plain] += 1
            slug = f"{plain}-{seen[plain]}"
        seen[slug] = 0
        made.append(slug)
    return made


def mkdocs(headings: Sequence[str]) -> list[str]:
    """As Python-Markdown's toc does (MkDocs): diacritics are taken off, repeats get _1, _2."""
    made: list[str] = []
    after: dict[str, str] = {}  # the next candidate for each used slug
    for heading in headings:
        text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
        text = re.sub(r"[^\w\s-]", "", text).strip().lower()
        slug = re.sub(r"[-\s]+", "-", text)
        first = slug = slug or "_1"
        while slug in after:
            slug = after[slug] if after[slug] != slug else _next(slug)
        after[first] = after[slug] = slug
        made.append(slug)
    return made


def _next(slug: str) -> str:
    name, _, number = slug.rpartition("_")
    counted = name + number != slug and number.isdecimal() and len(number) < _MOST_DIGITS
    return f"{name}_{int(number) + 1}" if counted else f"{slug}_1"


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Pc"


RULES: Mapping[str, Slugs] = MappingProxyType({"github": github, "mkdocs": mkdocs})
"""By the word that DOCS_ANCHORS names them with."""
