"""How generators name the sections of a page: the rules from a heading's words to its id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

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
    for heading in headings:
        text = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
        text = re.sub(r"[^\w\s-]", "", text).strip().lower()
        slug = re.sub(r"[-\s]+", "-", text)
        while slug in made or not slug:
            numbered = re.fullmatch(r"(.*)_(\d+)", slug)
            slug = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{slug}_1"
        made.append(slug)
    return made


def _is_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LMN" or category == "Pc"


RULES: Mapping[str, Slugs] = MappingProxyType({"github": github, "mkdocs": mkdocs})
"""By the word that DOCS_ANCHORS names them with."""
