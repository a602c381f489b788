"""Real documentation: converter scores, splitter properties, and both forms of one site."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.core.settings import Settings
from app.core.types import Page
from app.text.blocks import blocks, sentences
from ingestion.convert import Document, SourceText, convert
from ingestion.split import open_splitter
from tests.ingestion.local_site import load

SHARED = Path(__file__).parents[2] / "../shared"
SIZE = 1500
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared corpora in {SHARED}"),
]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of eight real pages of each generator, by the shared scorer."""
    made = tmp_path_factory.mktemp("converted")
    for key, info in json.loads((SHARED / "convert/index.json").read_text("utf-8")).items():
        page = convert(SourceText(info["url"], (SHARED / f"convert/pages/{key}.html").read_text("utf-8")))
        (made / key).parent.mkdir(parents=True, exist_ok=True)
        (made / f"{key}.md").write_text(page.markdown, "utf-8")
    found: dict[str, dict[str, Any]] = load(SHARED / "convert/score.py").score(made)
    return found


@pytest.mark.parametrize(
    "generator", ["mkdocs-material", "sphinx-flask", "sphinx-rtd-click", "vitepress", "docusaurus"]
)
def test_conversion_is_as_good_as_the_reference(generator: str, scores: dict[str, dict[str, Any]]) -> None:
    """Headings, code, languages, tables, words and anchors."""
    row = scores[generator]
    assert row["missing"] == row["anchors_false"] == row["relative_links"] == row["boilerplate"] == 0
    assert row["heading_recall"] == row["heading_precision"] == row["code_equal"] == row["code_language"] == 100
    assert row["anchors_real"] == row["anchors_possible"]
    assert min(row["word_recall"], row["word_precision"]) >= 98
    made_tables, tables = row["tables"].split("/")
    assert made_tables == tables


def corpus() -> list[tuple[str, str]]:
    """(name, Markdown) of the shared corpus as its site serves it."""
    root = SHARED / "eval/corpus"
    return [
        (
            str(path.relative_to(root)),
            convert(SourceText(f"https://docs.example.org/{path.name}", path.read_text("utf-8"), "text/mdx")).markdown,
        )
        for path in sorted(root.rglob("*.mdx"))
    ]


def headless(markdown: str) -> int:
    """How many delimiter rows have no header row above."""
    lines = ["", *markdown.split("\n")]
    rows = [n for n, line in enumerate(lines) if re.fullmatch(r"\|[\s:|-]*-{3,}[\s:|-]*\|", line)]
    return sum("|" not in lines[n - 1] for n in rows)


async def test_splitting_the_corpus_loses_and_breaks_nothing() -> None:
    """No fence more left open than in the sources, no headless table, no line lost, no chunk begun in mid-sentence."""
    fence = re.compile(r"(?m)^[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)*(?:```+|~~~+)")
    splitter = open_splitter(Settings.load(None))
    odd = source_odd = middle = without_header = 0
    for name, markdown in corpus():
        page = Page(f"https://docs.example.org/{name}", "docs", "T", "en", markdown, "")
        chunks = splitter.split(page)
        source_odd += len(fence.findall(markdown)) % 2
        odd += sum(len(fence.findall(chunk.text)) % 2 for chunk in chunks)
        middle += sum(chunk.text[0].islower() for chunk in chunks)
        whole = " ".join(" ".join(chunk.text for chunk in chunks).split())
        lines = [line for line in markdown.split("\n") if line.strip() and not line.startswith("#")]
        # a word longer than any chunk, as a key in code, has to be cut: its beginning must be there
        lost = [part for line in lines for part in sentences(line) if " ".join(part.split())[: SIZE // 4] not in whole]
        assert not lost, name
        if not headless(markdown):  # a table that its author gave no header has none in any piece
            without_header += sum(headless(chunk.text) for chunk in chunks)
    assert odd <= source_odd
    assert without_header == 0
    assert middle <= 1


@dataclass
class Told:
    """What a page tells: headings with their levels, code without indentation of the list it stands in, and words."""

    headings: list[tuple[int, str]]
    code: collections.Counter[str]
    words: collections.Counter[str]

    @classmethod
    def by(cls, markdown: str) -> Told:
        told = cls([], collections.Counter(), collections.Counter())
        for is_code, piece in blocks(markdown):
            text = re.sub(r"\{#[^}]*\}|\]\([^)]*\)|https?://\S+", " ", piece)
            if is_code:
                text = "\n".join(piece.strip("\n").split("\n")[1:-1])
                told.code[" ".join(text.split())] += 1
            else:
                told.headings += [
                    (len(marks), " ".join(re.findall(r"\w+", words.lower())))
                    for marks, words in re.findall(r"(?m)^(#{1,6})\s+(.*)$", text)
                ]
            told.words.update(re.findall(r"\w+", text.lower()))
        return told


def both_forms() -> Iterator[tuple[str, Document, Document]]:
    """(name, raw form, HTML form) of each page of the shared corpus."""
    for path in sorted((SHARED / "eval/corpus").rglob("*.mdx")):
        name = path.relative_to(SHARED / "eval/corpus").as_posix()
        language, _, page = name.removesuffix(".mdx").split("/", 2)
        built = SHARED / "eval/html_site" / ("cs" if language == "cs" else "") / page / "index.html"
        raw = convert(SourceText(f"https://docs.example.org/{name}", path.read_text("utf-8"), "text/mdx"))
        yield name, raw, convert(SourceText(f"https://docs.example.org/{page}/", built.read_text("utf-8")))


def test_both_forms_of_the_site_give_the_same_pages() -> None:
    """Titles are equal, and page by page headings, code and words, but for what the site's generator made another.

    Python-Markdown takes code that isn't indented like its list item for text (nextflow, pvc), and its theme writes the
    title above a page that begins with a heading of its own (helloworld-cmd, nbgrader-auth-student).
    """
    found = words = 0
    for name, raw, html in both_forms():
        one, other = Told.by(raw.markdown), Told.by(html.markdown)
        assert raw.title == html.title, name
        if not name.endswith(("nextflow.mdx", "helloworld-cmd.mdx", "nbgrader-auth-student.mdx")):
            assert one.headings == other.headings, name
        if not name.endswith(("nextflow.mdx", "pvc.mdx")):
            assert sum((one.code - other.code).values()) == 0, name
            assert sum((one.words - other.words).values()) <= max(6, 0.01 * one.words.total()), name
            assert sum((other.words - one.words).values()) <= max(6, 0.01 * one.words.total()), name
        found += (one.words & other.words).total()
        words += one.words.total()
    assert found >= 0.999 * words
