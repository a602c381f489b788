"""Every kind of splitter keeps what a page says, where it says it; each has its own lengths."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document

from app.core.settings import Settings
from app.core.types import Chunk, LexicalText, Page, Query, Vector
from app.text.blocks import sentences
from ingestion.split import SPLITTERS, Splitter, open_splitter
from ingestion.split.embedding import BatchEmbedder
from ingestion.split.parsers import SectionParser, count
from tests.contract.pages import search
from tests.fakes import DIMENSION, FakeEmbedder
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

KINDS = list(SPLITTERS)
WORDS = ["alpha", "beta", "gamma", "delta", "storage", "cluster", "volume", "account"]


def sentence(topic: str, number: int) -> str:
    return f"{topic.capitalize()} {number} is about {topic} and the {topic} of {WORDS[number % 8]} in {topic}."


def paragraph(topic: str, count: int, start: int = 0) -> str:
    return " ".join(sentence(topic, start + number) for number in range(count))


LONG = "\n\n".join(
    [
        "# Guide {#guide}",
        paragraph("storage", 12),
        "## Install {#install}",
        paragraph("network", 9),
        "```sh\n# no heading\n" + "\n".join(f"run --step {n} --with some-longer-option" for n in range(90)) + "\n```",
        "### Options {#options}",
        "| Name | Value |\n| --- | --- |\n" + "\n".join(f"| option-{n} | the value of it is {n} |" for n in range(80)),
        "- first item\n- second item\n\n  ```yaml\n  key: value\n  ```\n\n- third item",
        "## Use {#use}",
        paragraph("account", 20),
        "[ref]: https://docs.example.org/ref",
    ]
)


def page(markdown: str) -> Page:
    return Page("https://docs.example.org/a", "docs", "Guide", "en", markdown, "")


async def cut(splitter: Splitter, markdown: str, embedder: object = None) -> tuple[Chunk, ...]:
    if splitter.embeds:
        batches: Any = BatchEmbedder(embedder or FakeEmbedder(), 32, 1)  # type: ignore[arg-type]
        return await splitter.split_by(batches.embedding, page(markdown))
    return splitter.split(page(markdown))


async def cut_as(kind: str, markdown: str, **settings: int) -> tuple[Chunk, ...]:
    return await cut(open_splitter(Settings.load(None, splitter=kind, **settings)), markdown)


@pytest.mark.parametrize("kind", KINDS)
async def test_no_word_is_lost_and_the_same_page_gives_the_same_ids(kind: str) -> None:
    """By LlamaIndex's own parsers, too."""
    chunks = await cut_as(kind, LONG)
    words = set(re.sub(r" \{#[^}]*\}", "", LONG).split())
    assert words - set(" ".join(chunk.text for chunk in chunks).split()) == set()
    ids = [chunk.id for chunk in chunks]
    assert ids == [chunk.id for chunk in await cut_as(kind, LONG)]
    assert len(set(ids)) == len(ids)


async def test_nodes_know_their_places_and_neighbours() -> None:
    """As LlamaIndex's components expect them: offsets in the document, the nodes beside, and the section."""
    document = Document(text=LONG, id_="https://docs.example.org/a")
    nodes = SectionParser(size=600).get_nodes_from_documents([document])
    assert len(nodes) > 5
    for number, node in enumerate(nodes):
        place = LONG[node.start_char_idx : node.end_char_idx]
        assert " ".join(node.text.split())[-40:-4] in " ".join(place.split())
        assert node.source_node.node_id == document.id_
        assert node.parent_node.node_id == f"{document.id_}#{node.metadata['anchor']}"
        if number:
            assert node.prev_node.node_id == nodes[number - 1].node_id
            assert nodes[number - 1].next_node.node_id == node.node_id


async def test_no_line_is_lost_and_breaks_fall_between_sentences_items_lines_and_rows() -> None:
    """Code and tables that had to be cut are code and tables in each part."""
    chunks = await cut_as("markdown", LONG)
    whole = " ".join(" ".join(chunk.text for chunk in chunks).split())
    lines = [re.sub(r" \{#[^}]*\}$", "", line) for text in LONG.split("\n") for line in sentences(text) if text.strip()]
    assert [line for line in lines if " ".join(line.split()) not in whole] == []
    for chunk in chunks:
        assert len(re.findall(r"(?m)^ *```", chunk.text)) % 2 == 0
        assert "| Name | Value |\n| --- |" in chunk.text or "| option-" not in chunk.text
        assert re.match(r"#|```|\||- |\[ref\]|[A-Z][a-z]+ \d+ is about", chunk.text)
        assert not chunk.text.split("\n")[-1].startswith("#")


@pytest.mark.parametrize("kind", KINDS)
async def test_sections_and_anchors_are_kept(kind: str) -> None:
    """All headings are found in order, and each chunk's first section is the one its text belongs to."""
    chunks = await cut_as(kind, LONG)
    paths = list(dict.fromkeys(section.path for chunk in chunks for section in chunk.sections))
    assert paths == [("Guide",), ("Guide", "Install"), ("Guide", "Install", "Options"), ("Guide", "Use")]
    for chunk in chunks:
        ends = [*(section.offset for section in chunk.sections[1:]), len(chunk.text)]
        for section, end in zip(chunk.sections, ends, strict=True):
            topic = {"guide": "Storage", "install": "Network", "use": "Account"}.get(section.anchor)
            text = chunk.text[section.offset : end]
            assert section.anchor == section.path[-1].lower()
            assert set(re.findall(r"\b(Storage|Network|Account) \d", text)) <= {topic}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("markdown", ["", "\n\n", "# Only a title\n", "One word"])
async def test_pages_with_next_to_nothing(kind: str, markdown: str) -> None:
    """What is there makes one chunk; nothing makes none."""
    chunks = await cut_as(kind, markdown)
    assert [chunk.text for chunk in chunks] == ([markdown.strip()] if markdown.strip() else [])


def test_the_index_remembers_how_it_was_cut() -> None:
    """Another kind or number is another recipe."""
    settings = [*({"splitter": kind} for kind in KINDS), {"chunk_size": 900}]
    names = [open_splitter(Settings.load(None, **values)).name for values in settings]
    assert len(set(names)) == len(names)


async def test_a_chunk_carries_the_ends_of_its_neighbours(site: LocalSite, tmp_path: Path) -> None:
    """A question whose words end the chunk before finds both chunks, by words and by meaning; each sentence is shown once."""
    told = "Ferrets must be unplugged by a lighthouse keeper."
    parts = [
        f"## Part {n} {{#p{n}}}\n\n{paragraph(topic, 6, n)}"
        for n, topic in enumerate(("storage", "network", "account"))
    ]
    site.put("/guide.md", "# Guide\n\n" + f" {told}\n\n".join(parts[:2]) + "\n\n" + parts[2], "text/markdown")
    sitemap = site.sitemap("/guide.md")
    found, recipes, shown = {}, {}, {}
    for characters in (0, 200):
        async with Index(tmp_path / str(characters), site, chunk_size=600, chunk_neighbours=characters) as index:
            await index.run(sitemap)
            live = await index.store.live()
            (vector,) = await index.embedder.embed_queries([told])
            for leg, query in (
                ("words", Query((LexicalText("en", "unplugged lighthouse keeper"),), vector_weight=0, language="en")),
                ("meaning", Query((), vector, vector_weight=1, lexical_weight=0, language="en", limit=2)),
            ):
                hits = await search(live, query)
                found[leg, characters] = [hit.chunk.sections[-1].anchor for hit in hits]
            recipes[characters] = live.info.recipe.splitter
            shown[characters] = await index.text(f"{site.url}/guide")
            assert not (await index.run(sitemap)).changed  # the next run writes no chunk again
    assert found["words", 0] == ["p0"]
    assert found["words", 200] == ["p0", "p1"]
    assert found["meaning", 200][:2] == ["p0", "p1"]
    assert shown[0] == shown[200]
    assert shown[200].count(told) == 1
    assert recipes[0] != recipes[200]


async def test_fixed_chunks_are_full_and_overlap() -> None:
    """None is longer than 512 tokens, and each begins with up to 50 tokens that end the one before."""
    chunks = await cut(Splitter("fixed"), "# A\n\n" + paragraph("storage", 120))
    assert len(chunks) > 3
    assert all(count(chunk.text) <= 512 for chunk in chunks)
    assert all(count(chunk.text) > 450 for chunk in chunks[:-1])
    for one, other in itertools.pairwise(chunks):
        shared = next(n for n in range(len(other.text), 0, -1) if one.text.endswith(other.text[:n].strip()))
        assert 20 < count(other.text[:shared].strip()) <= 50


async def test_fixed_keeps_its_length_where_a_long_block_follows_an_overlap() -> None:
    """The overlap gives way to a block that fills a chunk alone."""
    code = "```\n" + "\n".join(f"line {n} of code in a long block" for n in range(120)) + "\n```"
    chunks = await cut(Splitter("fixed"), f"{paragraph('storage', 6)}\n\n{code}\n\n{paragraph('network', 6)}")
    assert max(count(chunk.text) for chunk in chunks) <= 512


async def test_a_page_is_one_chunk_with_all_its_sections() -> None:
    """That knows where each of them begins."""
    (chunk,) = await cut(Splitter("page"), LONG)
    assert [chunk.text[one.offset :].split("\n")[0].lstrip("# ") for one in chunk.sections] == [
        "Guide", "Install", "Options", "Use"
    ]  # fmt: skip


async def test_semantic_cuts_where_the_matter_changes() -> None:
    """Three matters in one section, each longer than the least, come apart where they meet."""
    matters = [paragraph(topic, 14) for topic in ("storage", "network", "account")]
    chunks = await cut(Splitter("semantic"), " ".join(matters))
    mixed = [chunk for chunk in chunks if len(set(re.findall(r"Storage|Network|Account", chunk.text))) > 1]
    assert len(chunks) >= 3
    assert len(mixed) <= 2  # a window of three sentences reaches over the border
    for chunk in mixed:
        topics = Counter(re.findall(r"Storage|Network|Account", chunk.text))
        assert min(topics.values()) <= 2


async def test_semantic_stays_within_its_lengths() -> None:
    """No chunk is longer than the most, and hardly one shorter than the least, on a page of one matter too."""
    for markdown in (LONG, paragraph("storage", 100)):
        lengths = [count(chunk.text) for chunk in await cut(Splitter("semantic"), markdown)]
        assert max(lengths) <= 400
        assert sum(length < 100 for length in lengths) <= 1


async def test_semantic_survives_vectors_of_nothing() -> None:
    """An embedder gives zeros for a text without words; the page is cut by length then."""

    class Nothing(FakeEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            return [[0.0] * DIMENSION for _ in texts]

    assert len(await cut(Splitter("semantic"), LONG, Nothing())) > 2
