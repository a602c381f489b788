"""Node parsers of LlamaIndex by the names of DOCS_SPLITTER: ours along headings, and LlamaIndex's own with the lengths of published systems."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import accumulate
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import NodeParser, SemanticSplitterNodeParser, TokenTextSplitter
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.utils import get_tokenizer

from app.core.errors import SettingsError
from app.core.types import Section, Vector
from app.models.protocols import MOST_TEXTS
from app.text.blocks import sentences
from ingestion.split.chunks import Cut, Limits, Part, bounds, cuts_of
from ingestion.split.pieces import pieces

SEMANTIC_LEAST, SEMANTIC_MOST = 100, 400  # tokens of a chunk
SEMANTIC_PERCENTILE = 95
"""Of the distances between neighbouring sentences; where one is larger, the topic changes, and the page may be cut."""
FIXED_TOKENS, FIXED_OVERLAP = 512, 50
"""Length of a fixed chunk, and what of it the next one repeats, in tokens, as in other systems."""
SECTIONS, LINES = "sections", "lines"
"""The keys of a node's metadata with what `SectionParser` knows of its place: the headings at offsets of its text, and the lines of the document."""


class SectionParser(NodeParser):  # type: ignore[misc]  # LlamaIndex isn't typed
    """Cuts Markdown into nodes of at most `size` characters, between sections, blocks, items, rows, and sentences at last; code and
    tables that have to be cut are code and tables in each node.

    A node has its place in the document (`start_char_idx`, `end_char_idx`), the nodes beside it as `PREVIOUS` and `NEXT`, and the section
    that it begins in as `PARENT`, whose id is the document's id with the anchor of the heading.
    """

    size: int = 1200
    abbreviations: frozenset[str] | None = None
    reads_anchors: ClassVar[bool] = True
    """The document has the ids of its headings, as `# Title {#id}`."""

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: Any) -> list[BaseNode]:  # noqa: ARG002
        return [made for document in nodes for made in self._cut(document)]

    def _cut(self, document: BaseNode) -> Iterator[TextNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
        parts = pieces(text, self.size, abbreviations=self.abbreviations)
        # above half of the size the length doesn't matter, so that breaks fall where sections end
        limits = Limits(self.size, self.size / 2, shortness=1.0)
        lengths = [Part(len(piece.text), len(piece.gap), piece.cost) for piece in parts]
        source = document.as_related_node_info()
        for cut in cuts_of(parts[first:last] for first, last in bounds(lengths, limits)):
            first, last = cut.lines
            section = cut.sections[0] if cut.sections else None
            above = {"headings": " > ".join(section.path), "anchor": section.anchor} if section else {}
            parent = RelatedNodeInfo(node_id=f"{document.node_id}#{above.get('anchor', '')}", metadata=above)
            yield TextNode(
                text=cut.text,
                start_char_idx=starts[first],
                end_char_idx=min(starts[last], len(text)),
                metadata=above
                | {SECTIONS: [[one.offset, list(one.path), one.anchor] for one in cut.sections], LINES: [first, last]},
                excluded_embed_metadata_keys=[SECTIONS, LINES],
                excluded_llm_metadata_keys=[SECTIONS, LINES],
                relationships={NodeRelationship.SOURCE: source, NodeRelationship.PARENT: parent},
            )

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]) -> list[BaseNode]:
        places = [(node.start_char_idx, node.end_char_idx) for node in nodes]
        made: list[BaseNode] = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for node, (start, end) in zip(
            made, places, strict=True
        ):  # LlamaIndex looks for texts, and finds those that are twice
            node.start_char_idx, node.end_char_idx = start, end
        return made


def cuts_in(nodes: Sequence[BaseNode]) -> Iterator[Cut]:
    """What the nodes of a `SectionParser` were made of."""
    for node in nodes:
        sections = tuple(Section(at, tuple(path), anchor) for at, path, anchor in node.metadata[SECTIONS])
        first, last = node.metadata[LINES]
        yield Cut(node.get_content(MetadataMode.NONE), sections, (first, last))


class BoundedParser(NodeParser):  # type: ignore[misc]
    """The nodes of another parser, of `least` to `most` tokens: shorter ones are joined with the next one, longer ones cut."""

    parser: NodeParser
    least: int
    most: int

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: Any) -> list[BaseNode]:
        return self._bounded(nodes, self.parser.get_nodes_from_documents(nodes, show_progress))

    async def _aparse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: Any) -> list[BaseNode]:
        return self._bounded(nodes, await self.parser.aget_nodes_from_documents(nodes, show_progress))

    def _bounded(self, documents: Sequence[BaseNode], found: Sequence[BaseNode]) -> list[BaseNode]:
        made: list[BaseNode] = []
        for document in documents:
            of = [node.get_content(MetadataMode.NONE) for node in found if node.ref_doc_id == document.node_id]
            made += build_nodes_from_splits(self._lengths(of), document, id_func=self.id_func)
        return made

    def _lengths(self, texts: Sequence[str]) -> list[str]:
        cut = TokenTextSplitter(chunk_size=self.most, chunk_overlap=0).split_text
        short = [part for text in texts for part in (cut(text) if count(text) > self.most else [text])]
        joined: list[str] = []
        for text in short:
            if joined and count(joined[-1]) < self.least and count(joined[-1] + text) <= self.most:
                joined[-1] += text
            else:
                joined.append(text)
        if len(joined) > 1 and count(joined[-1]) < self.least and count(joined[-2] + joined[-1]) <= self.most:
            joined[-2:] = [joined[-2] + joined[-1]]
        return joined


class CountedEmbedding(BaseEmbedding):  # type: ignore[misc]
    """Embeds by a function of ours, which counts texts and keeps vectors."""

    def __init__(self, embed: Callable[[Sequence[str]], Awaitable[list[Vector]]]) -> None:
        super().__init__(model_name="counted", embed_batch_size=MOST_TEXTS)
        self._embed = embed

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Vector]:
        return [list(map(float, row)) for row in await self._embed(texts)]

    async def _aget_query_embedding(self, query: str) -> Vector:
        return (await self._aget_text_embeddings([query]))[0]

    def similarity(self, embedding1: Vector, embedding2: Vector, **_: Any) -> float:
        """The cosine; 0 for a text without words, whose vector an embedder may leave empty."""
        return float(super().similarity(embedding1, embedding2)) if any(embedding1) and any(embedding2) else 0.0

    def _get_query_embedding(self, query: str) -> Vector:
        return asyncio.run(self._aget_query_embedding(query))

    def _get_text_embedding(self, text: str) -> Vector:
        return self._get_query_embedding(text)


def count(text: str) -> int:
    """Returns the number of tokens of the text."""
    return len(_encoder()(text))


@cache
def _encoder() -> Callable[[str], Sequence[int]]:
    try:
        encoder: Callable[[str], Sequence[int]] = get_tokenizer()
        encoder("")
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"Tokens can't be counted ({error}): the tokenizer inside llama-index-core is missing. "
            "Install llama-index-core again, or set DOCS_SPLITTER=markdown."
        ) from error
    return encoder


def _sentences(text: str, abbreviations: frozenset[str] | None) -> list[str]:
    """The sentences of all paragraphs, which together are the text."""
    *before, last = text.split("\n\n")
    paragraphs = [*(f"{one}\n\n" for one in before), last]
    return [part for one in paragraphs for part in sentences(one, abbreviations) if part] or [text]


def _semantic(abbreviations: frozenset[str] | None, embedding: BaseEmbedding) -> NodeParser:
    parser = SemanticSplitterNodeParser.from_defaults(
        embed_model=embedding,
        breakpoint_percentile_threshold=SEMANTIC_PERCENTILE,
        sentence_splitter=partial(_sentences, abbreviations=abbreviations),
    )
    return BoundedParser(parser=parser, least=SEMANTIC_LEAST, most=SEMANTIC_MOST)


Make = Callable[[int, frozenset[str] | None], NodeParser]
PARSERS: Mapping[str, Make] = {
    "markdown": lambda size, ends: SectionParser(size=size, abbreviations=ends),
    "fixed": lambda *_: TokenTextSplitter(chunk_size=FIXED_TOKENS, chunk_overlap=FIXED_OVERLAP),
    "page": lambda *_: TokenTextSplitter(chunk_size=sys.maxsize, chunk_overlap=0),
}
"""By their names, made of the size of chunks and of the abbreviations that end no sentence."""
EMBEDDING: Mapping[str, Callable[[frozenset[str] | None, BaseEmbedding], NodeParser]] = {"semantic": _semantic}
"""Those that embed sentences to find where to cut."""
