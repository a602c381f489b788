"""Reads the headers Accept and Accept-Language, and the field `language` of requests."""

from __future__ import annotations

import re
from collections.abc import Collection

from app.core.errors import RequestError, quoted


def prefers_markdown(accept: str) -> bool:
    """True if the Accept header lists text/markdown and doesn't prefer HTML. Browsers never list it."""
    weights = _weights(accept)
    markdown = weights.get("text/markdown", 0.0)
    return markdown > 0 and markdown >= max(weights.get("text/html", 0.0), weights.get("application/xhtml+xml", 0.0))


def preferred_language(accepted: str, languages: Collection[str]) -> str:
    """The one of these languages that Accept-Language prefers; empty if it accepts none of them."""
    weights = _weights(accepted)
    known = [tag for tag, weight in weights.items() if weight and primary(tag) in languages]
    return primary(max(known, key=lambda tag: weights[tag], default=""))


def named_language(tag: str, languages: Collection[str]) -> str:
    """The language that a request names. Raises `RequestError` if it isn't one of these."""
    if primary(tag) not in languages:
        raise RequestError(
            f"language: {quoted(tag)} isn't configured here. Configured are: {', '.join(languages)}.", param="language"
        )
    return primary(tag)


def primary(tag: str) -> str:
    """The language of a tag such as cs-CZ or cs_CZ."""
    return re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]


def _weights(header: str) -> dict[str, float]:
    """The lower-case values of an Accept header with their quality (q)."""
    weights = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        q = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
        weights[name] = float(q) if re.fullmatch(r"[01](\.\d{0,3})?", q) else 0.0
    return weights
