"""Forms of pages: the files that are of each, and what converts them. Markdown and HTML are ours, others come from plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from app.core.hooks import registered

if TYPE_CHECKING:
    from ingestion.convert.document import Converter


@dataclass(frozen=True, slots=True)
class Format:
    """A form of page. `endings` are those of its files, with the media types by which the converter knows them.

    A converter that takes its time to import is named as module:Class: only processes that convert pages need it.
    Of a `binary` one, the converter reads the download as it is: it isn't decoded to text first.
    """

    converter: Converter | str
    endings: Mapping[str, str] = field(default_factory=dict)
    binary: bool = False


_MARKDOWN = {".md": "text/markdown", ".mdx": "text/mdx", ".markdown": "text/markdown"}


@cache
def formats() -> tuple[Format, ...]:
    """Returns the formats of plugins, in the order in which they are asked whether they match a page."""
    return tuple(registered("register_formats"))


@cache
def file_types() -> Mapping[str, str]:
    """The endings of files that are pages of a directory, with their media types."""
    return _MARKDOWN | {ending: kind for form in formats() for ending, kind in form.endings.items()}


@cache
def binary_types() -> frozenset[str]:
    """Types whose converters read the download as it is."""
    return frozenset(kind for form in formats() if form.binary for kind in form.endings.values())
