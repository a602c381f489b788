"""The English documentation is short and plain: short sentences, short pages, things named by their names, and what you can do first.

`pytest tests/test_docs_style.py -k NAME` judges the page `docs/en/NAME.md` alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.text.blocks import code_spans, outside_fences, sentences
from app.text.reading import read_blocks, rows

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs/en").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
LONGEST_SENTENCE = 35
LONGEST_PAGE = 3_000
"""Words with a letter or digit, in code, tables and front matter, too; the bars of tables are no words."""
LONGEST_DOCUMENTATION = 40_000
SHOWN = 10
UNNAMED = {
    "that of, those of: name the thing again": r"(?<!\bso )\b(?:that|those) of\b(?! course)",
    "the one, the ones: name the thing again": r"\bthe ones?\b(?!-)",
    "one of them … the other: name both": r"\bone of them\b.*\bthe others?\b",
    "said, told: say who says it, or what it is": r"\b(?:is|are|was|were|be|been|being|as|else|otherwise) (?:said|told)\b(?! (?:apart|from|to)\b)|\b(?:said|told) (?:of|about)\b",
}
"""Words that make a reader look back for what is meant, and the pattern that finds them in a sentence without its code."""
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]*\)|<[^>\n]*>")
_CELL = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"\w")
_CODE = "`C`"
"""Stands for a code span: a capital, so that a sentence can begin with it."""
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def body(page: Path) -> str:
    """The text of a page below its front matter, without the addresses of links, tags of HTML and what is in code spans."""
    text = page.read_text("utf-8")
    text = text.split("---\n", 2)[2] if text.startswith("---\n") else text
    return outside_fences(text, lambda prose: _LINK.sub(lambda link: link[1] or "", without_code(prose)))


def without_code(prose: str) -> str:
    parts, at = list[str](), 0
    for start, end in code_spans(prose):
        parts += [prose[at:start], _CODE]
        at = end
    return "".join([*parts, prose[at:]])


def said(page: Path) -> Iterator[str]:
    """The sentences of paragraphs, items and cells, each without its code; the product itself finds them in this way."""
    for row in rows(body(page)):
        if row.kind in {"code", "heading"}:
            continue
        for cell in _CELL.split(row.text) if row.kind == "table" else [row.text]:
            for sentence in sentences(" ".join(cell.split())):
                yield sentence.replace(_CODE, "").strip()


def length(sentence: str) -> int:
    return sum(map(bool, map(_WORD.search, sentence.split())))


@each_page
def test_sentences_are_short(page: Path):
    """No sentence of a paragraph, an item or a cell has more than 35 words; code doesn't count."""
    long = sorted({sentence for sentence in said(page) if length(sentence) > LONGEST_SENTENCE}, key=length)[::-1]
    shown = "\n".join(f"{length(sentence)} words: {sentence}" for sentence in long[:SHOWN])
    assert not long, f"{len(long)} sentences of {page.name} have more than {LONGEST_SENTENCE} words:\n{shown}"


@each_page
def test_things_are_named(page: Path):
    """No sentence says "that of" or "the one" for a thing that has a name."""
    found = [
        f"{why}: {sentence}"
        for sentence in said(page)
        for why, pattern in UNNAMED.items()
        if re.search(pattern, sentence, re.IGNORECASE)
    ]
    assert not found, f"{len(found)} sentences of {page.name}:\n" + "\n".join(found[:SHOWN])


@each_page
def test_a_page_begins_with_what_you_can_do(page: Path):
    """The first block below the title is a paragraph, and addresses the reader."""
    first = next(block for block in read_blocks(body(page)) if block.kind != "heading")
    assert first.kind == "paragraph", f"{page.name} begins with a {first.kind}"
    assert re.search(r"\byou(?:r|rself)?\b", first.text, re.IGNORECASE), (
        f"{page.name} doesn't begin with what you can do there: {first.text}"
    )


@each_page
def test_a_page_is_short(page: Path):
    """It has at most 3,000 words."""
    words = length(page.read_text("utf-8"))
    assert words <= LONGEST_PAGE, f"{page.name} has {words:,} words: shorten it, or split it"


def test_the_documentation_is_short():
    """All English pages together have at most 40,000 words."""
    words = {page.name: length(page.read_text("utf-8")) for page in DOCS}
    longest = ", ".join(f"{name} {words[name]:,}" for name in sorted(words, key=words.__getitem__)[: -SHOWN - 1 : -1])
    assert sum(words.values()) <= LONGEST_DOCUMENTATION, f"{sum(words.values()):,} words; the longest: {longest}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The limit of a key is that of its role.", ["that"]),
        ("Choose the one in the list.", ["one"]),
        ("Unless it is told otherwise, `the one` stays. See [the file](the-one.md) and the one-time code.", ["said"]),
        ("One of them runs, the other waits; the model is told to quote, and dialects are told apart.", ["them"]),
        ("| a | b |\n|---|---|\n| c | so that of ten, three stay. Said in Slack |", []),
    ],
)
def test_what_is_unnamed_is_found_in_text_alone(tmp_path: Path, text: str, found: list[str]):
    """In sentences and cells, not in code, addresses of links and words of another meaning."""
    page = tmp_path / "page.md"
    page.write_text(f"---\ntitle: T\n---\n\n# T\n\n{text}\n", "utf-8")
    names = ("that", "one", "them", "said")
    hits = [
        n for s in said(page) for n, p in zip(names, UNNAMED.values(), strict=True) if re.search(p, s, re.IGNORECASE)
    ]
    assert hits == found


def test_words_of_a_sentence_are_counted_without_code(tmp_path: Path):
    """A sentence ends where the product ends it, also before code; items and cells are sentences of their own."""
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n\nRun `make. Now` first. `x` is next, e.g. here.\n\n- One item\n  goes on\n- two\n\n"
        "| head |\n|---|\n| a cell. Another one |\n\n```sh\nmany words. In code\n```\n",
        "utf-8",
    )
    assert [(length(sentence), sentence) for sentence in said(page)] == [
        (2, "Run  first."),
        (4, "is next, e.g. here."),
        (4, "One item goes on"),
        (1, "two"),
        (2, "a cell."),
        (2, "Another one"),
    ]
