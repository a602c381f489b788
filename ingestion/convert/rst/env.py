"""The state of reading one reStructuredText file, which its directives and roles share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from docutils import nodes

from ingestion.convert.rst.files import Files


@dataclass
class Env:
    """`outer` are the symbols around the one that is read, `module` and `program` those that its name belongs to."""

    files: Files
    outer: list[str] = field(default_factory=list)
    module: str = ""
    program: str = ""


def env_of(document: nodes.document) -> Env:
    """The state of the document."""
    found: Env = document.settings.env
    return found


def sphinx_id(prefix: str, name: str) -> str:
    """The anchor that Sphinx gives an option, a term or another named thing."""
    return re.sub(r"[^a-zA-Z0-9._]+", "-", f"{prefix}-{name}").strip("-")


def labelled(text: str) -> nodes.paragraph:
    """A bold line."""
    return nodes.paragraph("", "", nodes.strong("", text))


def joined_fields(*found: Any) -> str:
    """The texts with spaces between, without the empty ones."""
    return " ".join(text for text in map(str, found) if text)
