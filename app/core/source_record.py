"""A source of an index, as a generation records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source that an index was made from, so that a later run can read it again.

    - `options`: the fields of `ingestion.sources.Source` that differ from their defaults, without secrets
    - `roots`: the values that `Page.source` has in its pages
    - `unreadable`: why it can't be read again from this record; empty if it can
    - `demo`: True for this product's own documentation, which gives way to other sources
    """

    options: Mapping[str, Any]
    roots: tuple[str, ...]
    unreadable: str = ""
    demo: bool = False

    @property
    def url(self) -> str:
        """The address that the operator gave."""
        return str(self.options["url"])

    @property
    def collection(self) -> str:
        """The collection that its pages are in."""
        return str(self.options["collection"])
