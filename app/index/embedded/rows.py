"""Chunks and pages as rows: fields for search and filters are columns, the rest is one JSON record."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import orjson

from app.core.errors import IndexMismatch, StoreError
from app.core.types import Chunk, Filters, Page, PlainText, Section, Vector
from app.index.vocabulary import tokens_of

TRANSLATION_SET = "translation_set"
"""The column with the translation set of a page; tables of earlier releases lack it and `language`."""

QUESTIONS = "questions_vector"
"""The column with the vector of a chunk's questions, in an index that has questions; zero for a chunk without any."""


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk to write, with a vector of length 1; so is that of its questions, if the index has questions."""

    chunk: Chunk
    vector: Sequence[float]
    questions: Sequence[float] = ()


def digest(chunk: Chunk) -> bytes:
    """A digest of everything but where the chunk stands in its page, which alone is no reason to write it."""
    return hashlib.blake2b(orjson.dumps(replace(chunk, position=0, start=0, end=0)), digest_size=16).digest()


def unit(vector: Vector, dimension: int, of: str) -> list[float]:
    """The vector scaled to length 1, so that the dot product of two is their cosine; a zero vector stays zero."""
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimension,):
        raise IndexMismatch(
            f"The vector of {of} has {values.size} numbers and the index {dimension}: "
            "it was built with another embedder; use that one, or ingest again."
        )
    length = float(np.linalg.norm(values.astype(np.float64)))
    if not math.isfinite(length):
        raise StoreError(f"The vector of {of} has numbers that aren't finite: check the embedder.")
    unit_values: list[float] = (values / length if length else values).tolist()
    return unit_values


def chunk_schema(dimension: int, *, questions: bool = False) -> Any:
    """Columns of a table of chunks, with vectors of their questions or without."""
    import pyarrow as pa

    vectors = ("vector", QUESTIONS) if questions else ("vector",)
    names = ("id", "url", "collection", "language", "modified", "tokens")
    return pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in names),
            pa.field("versions", pa.list_(pa.string()), nullable=False),
            pa.field("record", pa.binary(), nullable=False),
            pa.field("digest", pa.binary(), nullable=False),
            *(pa.field(name, pa.list_(pa.float32(), dimension), nullable=False) for name in vectors),
        ]
    )


def chunk_table(rows: Sequence[ChunkRow], schema: Any) -> Any:
    """Arrow data of these chunks. Analysis takes about 1 ms per chunk, so call it in a thread."""
    import pyarrow as pa

    def row(item: ChunkRow) -> dict[str, Any]:
        chunk = item.chunk
        return {
            "id": chunk.id,
            "url": chunk.url,
            "collection": chunk.collection,
            "language": chunk.language,
            "modified": chunk.dated,
            "versions": chunk.versions,
            "tokens": " ".join(tokens_of(chunk)),
            "record": orjson.dumps(replace(chunk, start=0, end=0)),
            "digest": digest(chunk),
            "vector": item.vector,
            QUESTIONS: item.questions,
        }

    return pa.Table.from_pylist([row(item) for item in rows], schema=schema)


def to_chunk(record: bytes) -> Chunk:
    """A chunk from its record."""
    values = orjson.loads(record)
    sections = _sections(values.pop("sections"))
    for name in ("before", "after"):  # an index of an earlier release has them
        values.pop(name, None)
    questions = tuple((code, text) for code, text in values.pop("questions", ()))
    return Chunk(**(values | {"versions": tuple(values["versions"])}), sections=sections, questions=questions)


def to_plain_text(record: bytes) -> PlainText:
    """A page's plain text from its record."""
    values = orjson.loads(record)
    places = {id_: (start, end) for id_, (start, end) in values["places"].items()}
    return PlainText(values["text"], tuple(values["borders"]), _sections(values["sections"]), places)


def _sections(values: Sequence[dict[str, Any]]) -> tuple[Section, ...]:
    return tuple(Section(section["offset"], tuple(section["path"]), section["anchor"]) for section in values)


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A page with the vector of its summary, of length 1."""

    page: Page
    vector: Sequence[float]

    @property
    def digest(self) -> bytes:
        """A digest of the fields that a summary is found by."""
        page = self.page
        return hashlib.blake2b(
            orjson.dumps((page.summary_text, page.collection, page.language, page.versions)), digest_size=16
        ).digest()


def summary_schema(dimension: int) -> Any:
    """Columns of a table of pages' summaries."""
    import pyarrow as pa

    return pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("url", "collection", "language")),
            pa.field("versions", pa.list_(pa.string()), nullable=False),
            pa.field("digest", pa.binary(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
        ]
    )


def summary_table(rows: Sequence[SummaryRow], dimension: int) -> Any:
    """Arrow data of these summaries."""
    import pyarrow as pa

    columns = ("url", "collection", "language", "versions")
    values = [
        {name: getattr(row.page, name) for name in columns} | {"digest": row.digest, "vector": row.vector}
        for row in rows
    ]
    return pa.Table.from_pylist(values, schema=summary_schema(dimension))


@dataclass(frozen=True, slots=True)
class TextRow:
    """A page's Markdown and its plain text, as a record."""

    url: str
    markdown: str
    plain: bytes

    @classmethod
    def of(cls, page: Page) -> TextRow:
        """The texts of a page."""
        return cls(page.url, page.markdown, orjson.dumps(page.plain))

    @property
    def digest(self) -> bytes:
        """A digest of both."""
        return hashlib.blake2b(self.markdown.encode() + self.plain, digest_size=16).digest()


def text_schema() -> Any:
    """Columns of a table of pages' Markdown and plain texts."""
    import pyarrow as pa

    columns = (("url", pa.string()), ("markdown", pa.string()), ("plain", pa.binary()))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def text_table(rows: Sequence[TextRow]) -> Any:
    """Arrow data of these texts."""
    import pyarrow as pa

    return pa.Table.from_pylist([asdict(row) for row in rows], schema=text_schema())


def page_table(pages: Sequence[Page]) -> Any:
    """Arrow data of page records, by address."""
    import pyarrow as pa

    ordered = sorted(pages, key=lambda page: page.url)
    names = ("url", "language", TRANSLATION_SET)
    schema = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in names),
            pa.field("record", pa.binary(), nullable=False),
        ]
    )
    rows = [
        {
            "url": page.url,
            "language": page.language,
            TRANSLATION_SET: "" if page.same_as else page.translation_set,  # another page has the text
            "record": orjson.dumps(replace(page, plain=PlainText())),
        }
        for page in ordered
    ]
    return pa.Table.from_pylist(rows, schema=schema)


LISTS = ("chunk_ids", "translations", "versions", "links")


def to_page(record: bytes) -> Page:
    """A page from its record, without Markdown."""
    values = orjson.loads(record)
    values.pop("plain", None)
    return Page(**(values | {name: tuple(values.get(name, ())) for name in LISTS}))


def condition(filters: Filters) -> str:
    """The filters in SQL; empty if they don't restrict."""
    parts = [
        f"{column} IN ({quoted(values)})"
        for column, values in (("collection", filters.collections), ("language", filters.languages))
        if values
    ]
    if filters.url_prefixes:
        parts.append("(" + " OR ".join(f"starts_with(url, {quoted([p])})" for p in filters.url_prefixes) + ")")
    if filters.section_pattern:
        parts.append(f"regexp_like(url, {quoted([filters.section_pattern])})")
    if filters.version_pattern:
        said = f"array_has_any(versions, make_array({quoted(filters.said_versions)}))"
        parts.append(f"(regexp_like(url, {quoted([filters.version_pattern])}) OR {said})")
    return " AND ".join(parts)


def quoted(values: Sequence[str]) -> str:
    """The texts as SQL literals, separated by commas."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)
