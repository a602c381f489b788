"""Pages and chunks as operators see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from app.api.admin.answer_models import ChunkBody, PageRow
from app.api.admin.queries import PageAge, PageState
from app.core.types import Chunk, Page

AGES: tuple[tuple[PageAge, timedelta], ...] = (
    ("week", timedelta(days=7)),
    ("month", timedelta(days=31)),
    ("quarter", timedelta(days=92)),
    ("year", timedelta(days=366)),
)
FIRST_LINES = 5


def page_row(page: Page, now: datetime) -> PageRow:
    """The facts about a page."""
    return {
        "url": page.url,
        "title": page.title,
        "language": page.language,
        "collection": page.collection,
        "source": page.source,
        "state": state_of(page),
        "age": age_of(page, now),
        "chunks": len(page.chunk_ids),
        "status": page.status,
        "published": page.published,
        "modified": page.modified,
        "last_ok": page.last_ok,
        "stale_since": page.stale_since,
    }


def state_of(page: Page) -> PageState:
    """Whether the page could be read, and whether it is searched."""
    if page.stale_since:
        return "failing"
    if page.same_as:
        return "duplicate"
    return "ok" if page.chunk_ids else "empty"


def age_of(page: Page, now: datetime) -> PageAge:
    """How long ago the page was changed, else published, as it says itself."""
    try:
        then = datetime.fromisoformat(page.modified or page.published)
    except ValueError:
        return "unknown"
    age = now - (then if then.tzinfo else then.replace(tzinfo=UTC))
    return next((name for name, most in AGES if age <= most), "older")


def chunk_bodies(chunks: Sequence[Chunk], markdown: str) -> list[ChunkBody]:
    """The chunks of a page in their order."""
    found, after, known = [], 0, frozenset[str]()
    for position, chunk in enumerate(chunks):
        lines = chunk.text.split("\n")
        start = -1 if chunk.translated_from else _start([line for line in lines if line not in known], markdown, after)
        after, known = max(after, start + 1), frozenset(lines)
        found.append(_chunk_body(chunk, position, start))
    return found


def _start(lines: Sequence[str], markdown: str, after: int) -> int:
    """Where the first of the first lines stands in the Markdown from `after` on; -1 if none does.

    A chunk has no ids of headings, so whole texts differ. The lines are without those of the chunk before: a chunk repeats the
    head of a table that it goes on with.
    """
    written = (line for line in lines[:FIRST_LINES] if line.strip())
    return next((at for line in written if (at := f"\n{markdown}".find(f"\n{line}", after)) >= 0), -1)


def _chunk_body(chunk: Chunk, position: int, start: int) -> ChunkBody:
    return {
        "id": chunk.id,
        "position": position,
        "language": chunk.language,
        "translated_from": chunk.translated_from,
        "link": chunk.link,
        "text": chunk.text,
        "sections": [{"offset": one.offset, "path": one.path, "anchor": one.anchor} for one in chunk.sections],
        "questions": chunk.questions,
        "start": None if start < 0 else start,
    }
