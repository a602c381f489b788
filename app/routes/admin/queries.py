"""The query strings of /v1/admin, and the index that one names."""

from typing import Literal

from pydantic import ConfigDict, Field

from app.assistants.file import NamedIndex
from app.core.errors import RequestError, quoted
from app.http.bodies import Name, Place, RequestModel
from app.routes.service import Service

PageState = Literal["ok", "failing", "duplicate", "empty"]
PageAge = Literal["week", "month", "quarter", "year", "older", "unknown"]
PageOrder = Literal[
    "url", "-url", "title", "-title", "language", "-language", "modified", "-modified",
    "last_ok", "-last_ok", "chunks", "-chunks",
]  # fmt: skip


class QueryModel(RequestModel):
    """Base of query strings, whose values are texts."""

    model_config = ConfigDict(strict=False)


class IndexQuery(QueryModel):
    """Index that is meant."""

    model_config = ConfigDict(extra="forbid")

    index: Name | None = Field(
        None, description="Name of an [[index]], empty for that of DOCS_STORE; the first assistant's by default."
    )


class PageQuery(IndexQuery):
    """Page that is meant."""

    url: Place = Field(description="Address of the page; a fragment is ignored.")


class NeighboursQuery(IndexQuery):
    """Number of neighbours that are wanted."""

    limit: int = Field(10, ge=1, le=100, description="Number of neighbours.")


class PagesQuery(IndexQuery):
    """Pages that are wanted, and their order."""

    q: Name = Field("", description="Text in the address or the title.")
    source: Place | None = Field(None, description="Sitemap or directory that lists the pages.")
    collection: Name | None = Field(None, description="Collection of the pages.")
    language: Name | None = Field(None, description="Language of the pages.")
    state: PageState | None = Field(
        None, description="failing: couldn't be read recently; duplicate: another page has the same text."
    )
    age: PageAge | None = Field(None, description="Time since the page was changed, as it says itself.")
    sort: PageOrder = Field("url", description="Field to sort by; with a minus sign, the largest first.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of pages to skip.")
    limit: int = Field(100, ge=1, le=1000, description="Number of pages to return.")


def chosen_index(service: Service, name: str | None) -> NamedIndex:
    """The index of this name, or that of the first assistant. Raises `RequestError` if no assistant uses one of that name."""
    used = service.assistants.used()
    if name is None:
        name = next(iter(used), "")
    if name not in used:
        known = ", ".join(map(quoted, used))
        raise RequestError(
            f"No assistant uses an index {quoted(name)}. There are: {known}.", param="index", code="index_not_found"
        )
    return used[name]
