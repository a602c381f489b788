"""Cuts pages with a `NodeParser` of LlamaIndex. Nodes of a class that knows nothing of sections are found in the page again."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from app.core.errors import AssistantError, SettingsError
from app.core.language import vocabulary
from app.core.plugins import made
from app.core.settings import Settings
from app.core.types import Chunk, Page, Section
from ingestion.convert.document import Document
from ingestion.convert.markdown.structure import heading_of, top_level
from ingestion.convert.prepare import Prepared, prepare
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError
from ingestion.split.chunks import Cut, Trail, below, chunks_of, plain_text, section_of, with_neighbours

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

VERSIONS: Mapping[str, str] = {"markdown": "markdown-5", "semantic": "semantic-3", "fixed": "fixed-3", "page": "page-3"}
"""The names in recipes, which change when the same page would get other chunks."""
_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Splitter:
    """Cuts pages with the parser that `kind` names: one of `VERSIONS`, or `module:Class` with `arguments` (JSON).

    Chunks of `markdown` have at most `size` characters. Each chunk is also found by so many characters, `neighbours`, of the chunks
    beside it; readers and the language model get its text alone. The process that cuts makes the parser.
    """

    kind: str = "markdown"
    size: int = 1200
    abbreviations: frozenset[str] | None = None
    arguments: str = "{}"
    neighbours: int = 0

    @property
    def name(self) -> str:
        """The splitter's name in the recipe. Arguments are hashed, as they may be secret."""
        if self.kind in VERSIONS:
            name = VERSIONS[self.kind] + (f"/{self.size}" if self.kind == "markdown" else "")
        else:
            name = f"node-1/{self.kind}/{hashlib.sha256(self.arguments.encode()).hexdigest()[:8]}"
        return f"{name}+{self.neighbours}" if self.neighbours else name

    @property
    def embeds(self) -> bool:
        """True if an embedder decides where to cut."""
        return self.kind == "semantic"

    def check(self) -> None:
        """Raises `SettingsError` for a class that isn't there, is no `NodeParser` or refuses its arguments."""
        if self.kind not in VERSIONS:
            _own(self.kind, self.arguments)

    def split(self, page: Page) -> tuple[Chunk, ...]:
        """The page's chunks in order, by a parser without an embedder. Raises `ConversionError` when the parser fails."""
        parser = _parser(self)
        text = None if getattr(parser, "reads_anchors", False) else _Text(page.markdown)
        document = _document(page, text.text if text else page.markdown)
        try:
            nodes = parser.get_nodes_from_documents([document])
        except Exception as error:  # anything can happen in a class from outside
            raise ConversionError(f"{self.kind} can't split it ({type(error).__name__}: {error})") from error
        return self._chunks(page, nodes, text, str(getattr(parser, "window_metadata_key", "")))

    async def split_by(self, embedding: BaseEmbedding, page: Page) -> tuple[Chunk, ...]:
        """The same by a parser that embeds sentences. Raises `ModelError` when embedding fails."""
        from ingestion.split.parsers import EMBEDDING

        text = _Text(page.markdown)
        parser = EMBEDDING[self.kind](self.abbreviations, embedding)
        try:
            nodes = await parser.aget_nodes_from_documents([_document(page, text.text)]) if text.text.strip() else []
        except AssistantError:
            raise
        except Exception as error:
            raise ConversionError(f"{self.kind} can't split it ({type(error).__name__}: {error})") from error
        return self._chunks(page, nodes, text, "")

    def _chunks(self, page: Page, nodes: Sequence[Any], text: _Text | None, window: str) -> tuple[Chunk, ...]:
        from ingestion.split.parsers import cuts_in

        chunks = chunks_of(page, _cuts(nodes, text, window) if text else cuts_in(nodes))
        return with_neighbours(chunks, self.neighbours) if self.neighbours else chunks


def open_splitter(settings: Settings) -> Splitter:
    """The splitter that DOCS_SPLITTER names. Raises `SettingsError` for an unknown one, and for arguments that it refuses."""
    kind = settings.splitter
    if ":" not in kind and settings.splitter_args:
        raise SettingsError("DOCS_SPLITTER_ARGS are for a splitter of your own: set DOCS_SPLITTER=module:Class.")
    if ":" not in kind and kind not in VERSIONS:
        raise SettingsError(f"DOCS_SPLITTER is {kind!r}. Known are: {', '.join(VERSIONS)}, and module:Class.")
    splitter = Splitter(
        kind,
        settings.tuning.chunk_size,
        vocabulary(settings.languages, settings.prompts).abbreviations,
        json.dumps(settings.splitter_args, sort_keys=True),
        settings.tuning.chunk_neighbours,
    )
    splitter.check()
    return splitter


@cache
def _parser(splitter: Splitter) -> Any:
    from ingestion.split.parsers import PARSERS

    if splitter.kind in PARSERS:
        return PARSERS[splitter.kind](splitter.size, splitter.abbreviations)
    return _own(splitter.kind, splitter.arguments)


@cache
def _own(path: str, arguments: str) -> Any:
    from llama_index.core.node_parser import NodeParser

    return made(path, NodeParser, json.loads(arguments), "DOCS_SPLITTER", by="from_defaults")


def _document(page: Page, text: str) -> Any:
    from llama_index.core.schema import Document

    facts = {"title": page.title, "url": page.url, "language": page.language}
    # left out of the texts of nodes, which have them as the context of the chunk; parsers count their length else
    return Document(
        text=text,
        id_=page.url,
        metadata=facts,
        excluded_embed_metadata_keys=[*facts],
        excluded_llm_metadata_keys=[*facts],
    )


def _cuts(nodes: Iterable[Any], text: _Text, window: str) -> Iterator[Cut]:
    """A part for each node: its window where it has one, which is searched better than its sentence alone."""
    from llama_index.core.schema import MetadataMode

    after, seen = 0, set[tuple[str, _Place]]()
    for node in nodes:
        content = node.get_content(metadata_mode=MetadataMode.NONE).strip()
        if not content or node.child_nodes:
            continue
        around = str(node.metadata.get(window, "")).strip()
        place = text.place(around, None, after) if around else None
        if place is None:
            place = text.place(content, getattr(node, "start_char_idx", None), after)
            after = place[0] + 1 if place else after
        else:
            content, after = around, place[0]
        if place is None:
            # nothing can be read around it, so it has what its parser gives for reading
            yield Cut(around or content)
        elif (content, place) not in seen:  # on a short page, many windows are the whole page
            seen.add((content, place))
            yield Cut(content, tuple(text.sections(content, place)), text.lines(place))


@dataclass
class _Text:
    """A page's Markdown without the ids of its headings, and where in it the lines and sections of the original begin."""

    markdown: str
    text: str = ""
    _lines: list[tuple[int, int]] = field(default_factory=list)  # (first, the one after) of the original, by line
    _starts: list[int] = field(default_factory=list)
    _headings: list[int] = field(default_factory=list)
    _trails: list[Trail] = field(default_factory=list)

    def __post_init__(self) -> None:
        lines, trail = self.markdown.split("\n"), Trail()
        blocks = [block for block in top_level(lines) if block[0] is not None and block[0].type == "heading"]
        written, parts = 0, list[str]()
        for block, start, end in blocks:
            assert block is not None
            heading, shown = heading_of(block, lines[start:end])
            parts += [*lines[written:start], shown]
            self._lines += [*((number, number + 1) for number in range(written, start)), (start, end)]
            trail = below(trail, heading)
            self._headings.append(len(parts) - 1)
            self._trails.append(trail)
            written = end
        parts += lines[written:]
        self._lines += [(number, number + 1) for number in range(written, len(lines))]
        self._starts = list(accumulate((len(part) + 1 for part in parts), initial=0))[:-1]
        self._headings = [self._starts[number] for number in self._headings]
        self.text = "\n".join(parts)

    def place(self, content: str, given: int | None, after: int) -> _Place | None:
        """Finds the content: where its parser says, else from `after` on, else anywhere; blanks may differ."""
        at = -1 if given is None else given
        while 0 <= at < len(self.text) and self.text[at].isspace():
            at += 1
        if at < 0 or not self.text.startswith(content, at):
            at = self.text.find(content, after)
            at = self.text.find(content) if at < 0 else at
        if at >= 0:
            return at, at + len(content)
        squeezed, offsets = self._squeezed
        wanted = "".join(content.split())
        at = squeezed.find(wanted, bisect_left(offsets, after))
        at = squeezed.find(wanted) if at < 0 else at
        return (offsets[at], offsets[at + len(wanted) - 1] + 1) if at >= 0 else None

    def lines(self, place: _Place) -> tuple[int, int]:
        """The lines of the original (first, and the one after) in which the place is."""
        first, last = bisect_right(self._starts, place[0]) - 1, bisect_left(self._starts, place[1]) - 1
        return self._lines[first][0], self._lines[last][1]

    def sections(self, content: str, place: _Place) -> Iterator[Section]:
        """The section that the place begins in, and those that begin in it, at their offsets in the content."""
        first = bisect_right(self._headings, place[0])
        yield section_of(0, self._trails[first - 1] if first else ())
        for number in range(first, bisect_left(self._headings, place[1])):
            yield section_of(self._offset(content, place[0], self._headings[number]), self._trails[number])

    def _offset(self, content: str, start: int, offset: int) -> int:
        """Returns the position in the content, whose blanks may differ from the page's, of this offset of the page."""
        if self.text.startswith(content[: offset - start + 1], start):
            return offset - start
        before = len("".join(self.text[start:offset].split()))
        return [at for at, character in enumerate(content) if not character.isspace()][before]

    @cached_property
    def _squeezed(self) -> tuple[str, list[int]]:
        """The text without blanks, and the offset of each of its characters."""
        offsets = [at for at, character in enumerate(self.text) if not character.isspace()]
        return "".join(self.text[at] for at in offsets), offsets


def prepare_and_cut(  # one call to another process instead of two
    splitter: Splitter, known_hash: str, document: Document, fetched: Fetched, entry: Entry, settings: Settings
) -> Prepared:
    """The page, with chunks when its text is not the known one and cutting it needs no embedder."""
    prepared = prepare(document, fetched, entry, settings)
    if prepared.page.hash == known_hash or splitter.embeds:
        return prepared
    chunks = splitter.split(prepared.page)
    return replace(prepared, page=with_plain_text(prepared.page, chunks), chunks=chunks)


def with_plain_text(page: Page, chunks: Sequence[Chunk]) -> Page:
    """The page with its plain text, in which these chunks have their places."""
    return replace(page, derived=replace(page.derived, plain=plain_text(page.markdown, chunks)))
