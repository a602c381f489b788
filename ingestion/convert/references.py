"""Reference links of Markdown -> inline links, because a definition may end up in another chunk than its uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from app.text.fences import outside_code
from ingestion.convert.structure import MOST_NESTED

_DEFINED = re.compile(r"(?m)^[ \t>]*+\[[^\]\n^][^\]\n]*+\]:")
_LABEL = r"\[((?:[^\[\]\\]|\\.)++)\]"
_IMAGE = re.compile(rf"(?<!\\)(!)\[((?:[^\[\]\\]|\\.)*+)\](?:{_LABEL}|\[\])?(?![\[(:])", re.DOTALL)
_LINK = re.compile(
    rf"(?<![\\\]!])()\[((?:[^\[\]\\]|\\.|\[[^\[\]]*+\](?:\([^()\n]*+\))?)++)\](?:{_LABEL}|\[\])?(?![\[(:])", re.DOTALL
)
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).disable("inline")
_BLOCKS.normalizeLink = str  # type: ignore[method-assign,assignment]  # addresses stay as they are written


def inline_references(text: str) -> str:
    """The text with the target of each reference in its place, and without definitions. Footnotes stay as they are."""
    if not _DEFINED.search(text):
        return text
    env: dict[str, Any] = {}
    _BLOCKS.parse(text, env)
    defined = {label: one for label, one in env.get("references", {}).items() if not label.startswith("^")}
    if not defined:
        return text
    found = [*defined.values(), *(one for one in env.get("duplicate_refs", []) if not one["label"].startswith("^"))]
    lines = text.split("\n")
    for start, end in sorted({tuple(one["map"]) for one in found}, reverse=True):
        del lines[start:end]
    targets = {label: _target(one["href"]) for label, one in defined.items()}
    return outside_code("\n".join(lines), lambda prose: _resolved(prose, targets))


def _target(address: str) -> str:
    return f"<{address}>" if re.search(r"[\s()]", address) or not address else address


def _resolved(prose: str, targets: Mapping[str, str]) -> str:
    def inline(match: re.Match[str]) -> str:
        target = targets.get(normalizeReference(match[3] or match[2]))
        return match[0] if target is None else f"{match[1]}[{match[2]}]({target})"

    return _LINK.sub(inline, _IMAGE.sub(inline, prose))
