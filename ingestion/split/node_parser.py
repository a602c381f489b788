"""Cuts with a LlamaIndex `NodeParser`; its nodes are found in the page again, so that they have sections and places."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

from app.core.plugins import made
from app.core.types import Chunk, Page, Section, Vector
from ingestion.convert.markdown.structure import heading_of, top_level
from ingestion.errors import ConversionError
from ingestion.split.chunks import Cut, Trail, below, chunks_of, section_of
from ingestion.split.splitters import Splitter

VERSION = "node-1"
_Place = tuple[int, int]


def open_node_parser(path: str, arguments: Mapping[str, Any]) -> NodeParserSplitter:
    """The splitter. Raises `SettingsError` when the class isn't there, is no `NodeParser` or refuses the arguments."""
    splitter = NodeParserSplitter(path, json.dumps(arguments, sort_keys=True))
    _parser(splitter.path, splitter.arguments)
    return splitter


@dataclass(frozen=True, slots=True)
class NodeParserSplitter(Splitter):
    """One chunk for each node of the class at `path`, made with `arguments` (JSON), in the process that cuts.

    The parser gets the page's Markdown without the ids of headings. Of nodes with children only the children become
    chunks: the language model reads the section around them anyway.
    """

    path: str
    arguments: str = "{}"

    @property
    def name(self) -> str:
        """See `Splitter`. The arguments are hashed, as they may be secret."""
        return f"{VERSION}/{self.path}/{hashlib.sha256(self.arguments.encode()).hexdigest()[:8]}"

    def split(self, page: Page, vectors: Sequence[Vector] = ()) -> tuple[Chunk, ...]:
        """The page's chunks. Raises `ConversionError` when the parser fails."""
        del vectors
        text = _Text(page.markdown)
        # the key of the metadata with the sentences around a node, where the parser has such
        window = str(getattr(_parser(self.path, self.arguments), "window_metadata_key", ""))
        return chunks_of(page, _cuts(self._nodes(page, text.text), text, window))

    def _nodes(self, page: Page, text: str) -> Sequence[Any]:
        from llama_index.core.schema import Document

        facts = {"title": page.title, "url": page.url, "language": page.language}
        # left out of the texts of nodes, which have them as the context of the chunk; parsers count their length else
        document = Document(
            text=text, metadata=facts, excluded_embed_metadata_keys=[*facts], excluded_llm_metadata_keys=[*facts]
        )
        try:
            return list(_parser(self.path, self.arguments).get_nodes_from_documents([document]))
        except Exception as error:  # anything can happen in a class from outside
            raise ConversionError(f"{self.path} can't split it ({type(error).__name__}: {error})") from error


@cache
def _parser(path: str, arguments: str) -> Any:
    from llama_index.core.node_parser import NodeParser

    return made(path, NodeParser, json.loads(arguments), "DOCS_SPLITTER", by="from_defaults")


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
