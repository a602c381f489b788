"""A LlamaIndex node parser as splitter: its nodes are chunks with sections, anchors and places in their page."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.types import Chunk, Hit, PlainText
from app.text.growth import grown
from ingestion.split import Splitter, open_splitter
from ingestion.split.chunks import plain_text
from tests.ingestion.index import Index, outcomes
from tests.ingestion.test_splitters import LONG, page

CORE = "llama_index.core.node_parser"
SENTENCES = f"{CORE}:SentenceWindowNodeParser"

OWN = '''
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import TextNode

class Shouting(NodeParser):
    """Its first node is nowhere in the page, with a window around it; the others are its paragraphs."""
    window_metadata_key: str = "window"

    def _parse_nodes(self, nodes, show_progress=False, **kwargs):
        (page,) = nodes
        if "boom" in page.text:
            raise ZeroDivisionError("boom")
        parts = [TextNode(text=" ".join(part.split())) for part in page.text.split("\\n\\n")]
        own = TextNode(text="WORDS OF ITS OWN", metadata={"window": "More words of its own."})
        return [own, TextNode(text="  "), *parts]
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_parser.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_parser:Shouting"


def opened(path: str, **arguments: Any) -> Splitter:
    return open_splitter(Settings.load(None, splitter=path, splitter_args=arguments))


def placed(chunks: tuple[Chunk, ...], markdown: str) -> PlainText:
    return plain_text(markdown, chunks)


def test_nodes_have_their_sections_and_are_read_where_they_stand() -> None:
    """Whichever parser cuts, also one that repeats text or has nodes of several sizes."""
    for path, arguments in [
        (SENTENCES, {"window_size": 2}),
        (f"{CORE}:SentenceSplitter", {"chunk_size": 200, "chunk_overlap": 40}),
        (f"{CORE}:MarkdownNodeParser", {}),
        (f"{CORE}:TokenTextSplitter", {"chunk_size": 128}),
        (f"{CORE}:HierarchicalNodeParser", {"chunk_sizes": [512, 128]}),
    ]:
        chunks = opened(path, **arguments).split(page(LONG))
        plain = placed(chunks, LONG)
        assert set(plain.places) == {chunk.id for chunk in chunks}, path
        anchors = {section.anchor for chunk in chunks for section in chunk.sections}
        assert anchors == {"guide", "install", "options", "use"}
        for chunk in chunks:
            assert "{#" not in chunk.text
            start, end = plain.places[chunk.id]
            said, there = (set(re.findall(r"[A-Z]\w+ \d+", text)) for text in (chunk.text, plain.text[start:end]))
            assert said <= there
            assert all(chunk.text[one.offset :].lstrip("# ").startswith(one.path[-1]) for one in chunk.sections[1:])


def test_a_window_is_searched_and_read_with_its_section(own: str) -> None:
    """A sentence is a chunk with its window, the model reads around it; what the parser wrote itself is read in its window."""
    chunks = opened(SENTENCES, window_size=1).split(page(LONG))
    (found,) = [chunk for chunk in chunks if re.findall(r"Account (\d+) is", chunk.text) == ["6", "7", "8"]]
    assert found.link.endswith("#use")
    assert len(opened(SENTENCES, window_size=9).split(page("# A\n\nOne is one. Two is two. Three is three."))) == 1
    (passage,) = grown([Hit(found, 1.0)], {found.url: placed(chunks, LONG)}, 4000)
    assert {"Account 5 is", "Account 9 is"} <= set(re.findall(r"Account \d is", passage.chunk.text))

    chunks = opened(own).split(page(LONG))
    assert (chunks[0].text, chunks[0].sections) == ("More words of its own.", ())
    assert chunks[0].link == page(LONG).url
    plain = placed(chunks, LONG)
    assert {chunk.id for chunk in chunks} - set(plain.places) == {chunks[0].id}
    read = grown([Hit(chunks[0], 1.0), Hit(chunks[2], 0.9)], {found.url: plain}, 4000)
    assert [passage.chunk.text[:10] for passage in read] == ["More words", "# Guide\n\nS"]


def test_the_documented_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each language shows the same, and each splits a page into chunks with their places."""
    pages = [page.read_text("utf-8") for page in sorted((Path(__file__).parents[2] / "docs").glob("[a-z][a-z]/*.md"))]
    sections = [page.partition("{#node-parsers}")[2] for page in pages if "{#node-parsers}" in page]
    assert len(sections) == 2
    lines, python = (re.search(rf"```{kind}\n(.*?)```", sections[0], re.DOTALL)[1] for kind in ("sh", "python"))  # type: ignore[index]
    assert lines in sections[1]
    assert python in sections[1]
    (tmp_path / ".env").write_text(lines, "utf-8")
    (tmp_path / "my_splitters.py").write_text(python, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for settings in (Settings.load(tmp_path / ".env"), Settings.load(None, splitter="my_splitters:Paragraphs")):
        chunks = open_splitter(settings).split(page(LONG))
        assert len(placed(chunks, LONG).places) == len(chunks) > 5


def test_mistakes_in_the_splitter_are_named() -> None:
    """The class, its base, the argument and those there are; at the start, before any page is read."""
    for path, arguments, says in [
        ("no_such_package:Parser", {}, "there is no module no_such_package"),
        (f"{CORE}:SentenceWindow", {}, "has no class SentenceWindow.*SentenceWindowNodeParser"),
        ("pathlib:Path", {}, "Path is no NodeParser"),
        (SENTENCES, {"windows": 2}, "has no argument windows. Its arguments: .*window_size"),
        (SENTENCES, {"window_size": -2}, "refuses its arguments: window_size: Input should be greater than 0"),
        ("markdown", {"a": 1}, "DOCS_SPLITTER_ARGS"),
        ("sentences", {}, "DOCS_SPLITTER has value 'sentences'"),
    ]:
        with pytest.raises(SettingsError, match=says):
            opened(path, **arguments)


async def test_another_splitter_cuts_again_and_a_failing_page_fails_alone(site: Any, index: Index, own: str) -> None:
    """In a real run: the same splitter embeds nothing, another rebuilds; the parser's error is that page's reason."""
    for name in "abc":
        site.page(f"/{name}", f"Page {name}", f"About {name}. It has a sentence. And another one.")
    site.page("/d", "Page d", "Here it goes boom.")
    sitemap, markdown = site.sitemap("/a", "/b", "/c"), f"{CORE}:MarkdownNodeParser"
    first = await index.run(sitemap, splitter=markdown)
    again = await index.run(sitemap, splitter=markdown)
    assert (first.exit_code, again.embedding_calls, again.changed) == (0, 0, False)
    assert opened(markdown).name != opened(markdown, include_metadata=False).name
    report = await index.run(site.sitemap("/a", "/b", "/c", "/d"), splitter=own)
    assert outcomes(report)["/d"] == "skipped"
    assert next(page.reason for page in report.pages if page.url.endswith("/d")) == (
        "own_parser:Shouting can't split it (ZeroDivisionError: boom)"
    )
    assert "WORDS" not in await index.text(f"{site.url}/a")
    assert "More words of its own." in await index.text(f"{site.url}/a")


async def test_a_page_that_cannot_be_cut_ends_no_rebuild(site: Any, index: Index, own: str) -> None:
    """Listed in this run or not, it is reported, stays as it was cut before, and is found."""
    for name in "abcde":
        site.page(f"/{name}", f"Page {name}", f"About {name}: " + ("here it goes boom." if name in "de" else "fine."))
    listed = site.sitemap("/a", "/b", "/c", "/d")
    await index.run(listed, site.sitemap("/e", at="/other.xml"))
    report = await index.run(listed, splitter=own)
    assert report.published.pages == 5
    skipped = [one for one in report.pages if one.outcome == "skipped"]
    assert sorted(one.url[-2:] for one in skipped) == ["/d", "/e"]
    for one in skipped:
        assert (one.kept, one.chunks) == (True, 1)
        assert one.reason == "own_parser:Shouting can't split it (ZeroDivisionError: boom)"
        assert "goes boom" in await index.text(one.url)
        plain = (await (await index.store.live()).plain_texts([one.url]))[one.url]
        assert len(plain.places) == 1
