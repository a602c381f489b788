"""Language tags as sites write them."""

from __future__ import annotations

import re

from app.core.language import Vocabulary, vocabulary


def primary_language(tag: str, words: Vocabulary | None = None) -> str:
    """The primary part of a language tag in lower case; an alias such as cz becomes cs."""
    primary = re.split(r"[-_]", tag.strip().lower())[0]
    return (words or vocabulary()).aliases.get(primary, primary)
