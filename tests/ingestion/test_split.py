"""Chunks follow headings and never end inside a sentence, a code block or a table row."""

import itertools
import random
import re
from collections.abc import Sequence

import pytest

from app.core.types import Chunk, Page
from app.text.blocks import sentences
from ingestion.convert.markdown import structure
from ingestion.split import Splitter, pieces
from ingestion.split.chunks import Limits, Part, bounds

SENTENCE = "This sentence number {} has about sixty characters in all of it. "


def page(markdown: str, **more: str) -> Page:
    given = {"url": "https://docs.example.org/a", "collection": "docs", **more}
    return Page(title="T", language="en", markdown=markdown, hash="", **given)  # type: ignore[arg-type]


def split(page: Page, size: int) -> tuple[Chunk, ...]:
    return Splitter(size=size).split(page)


def cut(markdown: str, size: int = 300) -> tuple[Chunk, ...]:
    return split(page(markdown), size)


def text(count: int) -> str:
    return "".join(SENTENCE.format(n) for n in range(count)).strip()


def test_small_sections_share_a_chunk_and_keep_their_anchors() -> None:
    """Each section says where it starts; ids leave the text, in both ways of writing them."""
    (chunk,) = cut("# Top {#top}\n\nIntro.\n\n## *One* `x` [#one]\n\nText.\n\n## Two\n\nMore.\n", 500)
    assert chunk.text == "# Top\n\nIntro.\n\n## *One* `x`\n\nText.\n\n## Two\n\nMore."
    assert [(s.path, s.anchor) for s in chunk.sections] == [
        (("Top",), "top"),
        (("Top", "One x"), "one"),
        (("Top", "Two"), ""),
    ]
    assert [chunk.text[s.offset :].split("\n")[0] for s in chunk.sections] == ["# Top", "## *One* `x`", "## Two"]
    assert chunk.link == "https://docs.example.org/a#top"


def test_a_chunk_inside_a_section_knows_its_headings() -> None:
    """The continuation of a long section has its path and anchor at offset 0."""
    chunks = cut(f"# A {{#a}}\n\n## B {{#b}}\n\n{text(12)}\n")
    assert len(chunks) > 2
    assert all(c.sections[0] == type(c.sections[0])(0, ("A", "B"), "b") for c in chunks[1:])


def test_the_path_follows_the_levels() -> None:
    """A heading ends those of its own and deeper levels; setext headings and skipped levels count, comments in code don't."""
    (chunk,) = cut("A\n=\n\n### C\n\nx\n\nB\n-\n\ny\n\n# D\n\nz\n", 900)
    assert [s.path for s in chunk.sections] == [("A",), ("A", "C"), ("A", "B"), ("D",)]
    (chunk,) = cut("# A\n\n```sh\n# not a heading\n```\n\n~~~\n## nor this\n~~~\n", 900)
    assert [s.path for s in chunk.sections] == [("A",)]


def test_prose_is_cut_between_sentences() -> None:
    """Every chunk ends with a full stop, and none is longer than the size."""
    chunks = cut(f"# A\n\n{text(30)}\n")
    assert all(c.text.endswith(".") and len(c.text) <= 300 for c in chunks)
    assert " ".join(c.text.removeprefix("# A\n\n") for c in chunks) == text(30)


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("One. Two! Three? Four", 4),
        ("See e.g. Kubernetes and např. Rancher, tzv. Helm, viz obr. Hlavní.", 1),
        ("Version 1.2 of v. 3 is here. Next.", 2),
        ("Od 3. listopadu. Pak 4. Prosince.", 2),
        ("He said “Stop.” Then he left.", 2),
        ("Use `a.B` now... Then [link](x). Čeština jde také.", 3),
        ("J. Novák wrote it. It is good.", 2),
    ],
)
def test_sentences(written: str, count: int) -> None:
    """Abbreviations, ordinal numbers and initials end no sentence; nothing is lost."""
    found = sentences(written)
    assert "".join(found) == written
    assert len(found) == count, found


def test_a_long_code_block_is_cut_at_line_ends_with_fences() -> None:
    """Each part is a block of its own with the language; the lines are all there, in order."""
    lines = [f"line {n} of the code" for n in range(60)]
    chunks = cut("# A\n\n````python title=x\n" + "\n".join(lines) + "\n````\n\nEnd.\n")
    code = [m for c in chunks for m in re.findall(r"(?ms)^````python title=x\n(.*?)\n````$", c.text)]
    assert len(code) > 3
    assert "\n".join(code).split("\n") == lines
    assert all(c.text.count("````") % 2 == 0 and len(c.text) <= 300 for c in chunks)


def test_a_code_block_that_fits_and_a_row_are_never_cut() -> None:
    """Prose before the block goes to another chunk instead; half a row says nothing, so it may be longer than the size."""
    block = "```\n" + "\n".join(f"{n}" * 10 for n in range(10, 20)) + "\n```"
    assert any(block in c.text for c in cut(f"# A\n\n{text(3)}\n\n{block}\n\n{text(3)}\n"))
    row = "| " + "x" * 500 + " |"
    assert any(row in c.text for c in cut(f"| A |\n| --- |\n{row}\n| y |\n"))


def test_code_in_lists_and_unclosed_code_keeps_its_fences_even() -> None:
    """Indented fences are closed with their indentation, a missing end is added on cuts."""
    lines = "\n".join(f"   line {n} of the code" for n in range(40))
    listed = cut(f"1. First\n\n   ```sh\n{lines}\n   ```\n\n2. Second\n")
    assert all(c.text.count("```") % 2 == 0 for c in listed)
    assert "2. Second" in listed[-1].text
    assert all(c.text.count("```") % 2 == 0 for c in cut(f"# A\n\n```\n{lines}\n"))


def test_what_begins_inside_a_list_is_not_indented() -> None:
    """Four spaces before a fence or a nested item would make code of it, with the fence in it."""
    code = "\n".join(f"      line {n} of the code" for n in range(30))
    chunks = cut(
        f"- First\n\n  1. {text(3)}\n\n     ```sh\n{code}\n     ```\n\n     {text(3)}\n\n# B\n\n    indented\n"
    )
    assert [chunk.text for chunk in chunks if re.match(r"[ \t]", chunk.text)] == []
    assert sum(chunk.text.startswith("```sh\n line") for chunk in chunks) > 1
    assert "\n    indented" in chunks[-1].text


def test_a_long_table_repeats_its_header() -> None:
    """Every part is a table, every row is whole and there once."""
    rows = [f"| row {n} | some value of it |" for n in range(40)]
    chunks = cut("# A\n\n| Name | Value |\n| --- | --- |\n" + "\n".join(rows) + "\n")
    assert len(chunks) > 3
    assert all("| Name | Value |\n| --- | --- |\n| row" in c.text for c in chunks)
    assert [line for c in chunks for line in c.text.split("\n") if line.startswith("| row")] == rows


def test_lists_are_cut_between_items() -> None:
    """An item isn't torn while it fits, and nested items stay indented."""
    items = "\n".join(f"- item {n} with some words\n  - nested {n}" for n in range(20))
    chunks = cut(f"# A\n\n{items}\n")
    assert len(chunks) > 2
    assert all(c.text.removeprefix("# A\n\n").startswith("- item") for c in chunks)


def test_nothing_is_lost_whatever_the_page() -> None:
    """Link definitions, HTML, endless lines and rules are all in some chunk."""
    strange = (
        "[ref]: https://e.org\n\n<div>\nhtml\n</div>\n\n---\n\n"
        + "endless " * 200
        + "\n\n    indented\n\n> quote\n> more\n\nLast"
    )
    joined = " ".join(" ".join(c.text for c in cut(strange)).split())
    assert joined == " ".join(strange.split())
    assert all(len(c.text) <= 300 for c in cut(strange))
    assert all(c.text.strip() for c in cut("#\n")), "there is no empty chunk"


def test_a_heading_is_never_alone_at_the_end() -> None:
    """It stands with what it heads, and an announcing line with what it announces."""
    chunks = cut("".join(f"## H{n}\n\n{text(2)}\n\nAs follows:\n\n- item\n\n" for n in range(10)))
    assert not any(re.search(r"(^|\n)## [^\n]*$|:$", c.text) for c in chunks)


def test_a_term_or_a_label_is_never_apart_from_what_it_names() -> None:
    """Definitions, tabs, admonitions: alone at the end of a chunk it says nothing, and neither do they without it."""
    code = "```sh\n{}\n```".format("\n".join(f"echo number {n} of the lines" for n in range(9)))
    indented = code.replace("\n", "\n  ")
    named = {
        "**Debian**": f"**Debian**\n\n{code}",
        "- **mkfs**:": f"- **mkfs**:\n\n  {indented}\n\n  {text(3)}",
        "- **mount**: ": f"- **mount**: {text(6)}",
        "> **Warning: Back up first**": f"> **Warning: Back up first**\n>\n> {text(2)}",
    }
    for label, block in named.items():
        for before in range(0, 300, 7):
            chunks = cut(f"# T\n\n{'x' * before}.\n\n{block}\n\n{text(2)}")
            (labelled,) = [chunk.text for chunk in chunks if label.strip() in chunk.text]
            assert labelled.partition(label)[2].strip("\n >"), (label, before)


def test_most_chunks_are_well_filled() -> None:
    """At least 60 % lie between half and the whole size, for sections of all lengths."""
    chunks = cut("".join(f"## H{n}\n\n{text(1 + n % 7)}\n\n" for n in range(40)), 600)
    assert sum(300 <= len(c.text) <= 600 for c in chunks) >= 0.6 * len(chunks)


def test_an_edit_changes_few_chunks() -> None:
    """A sentence added near the top of a long page leaves most ids as they are."""
    sections = [f"## H{n}\n\n{text(4)} Part {n}.\n\n" for n in range(40)]
    before = {c.id for c in cut("# A\n\n" + "".join(sections), 600)}
    after = {c.id for c in cut("# A\n\nNew words.\n\n" + "".join(sections), 600)}
    assert len(after - before) <= 3


def test_ids_tell_equal_texts_pages_and_collections_apart() -> None:
    """The same text twice on a page has two ids; so have other pages and collections; a repeat has the same."""
    twice = "\n\n".join([f"# A\n\n{text(4)}"] * 2)
    chunks = cut(twice)
    assert chunks[0].embedded_text == chunks[1].embedded_text
    other = split(page(twice, url="https://docs.example.org/b"), 300) + split(page(twice, collection="x"), 300)
    assert len({c.id for c in (*chunks, *other)}) == len(chunks) + len(other)
    assert [c.id for c in cut(twice)] == [c.id for c in chunks]


def test_page_facts_are_on_every_chunk() -> None:
    """Language, file and dates are those of the page, positions count up."""
    chunks = split(page(f"# A\n\n{text(12)}", file="a.md", modified="2025-01-01", published="2024-01-01"), 300)
    assert {(c.language, c.file, c.modified, c.published) for c in chunks} == {
        ("en", "a.md", "2025-01-01", "2024-01-01")
    }
    assert [c.position for c in chunks] == list(range(len(chunks)))


def test_a_page_is_cut_where_breaks_cost_least() -> None:
    """As trying every way finds it, also with parts that are longer than a chunk may be."""
    rng = random.Random(5)
    limits = Limits(size=40, full=20, shortness=1.0)

    def price(found: Sequence[tuple[int, int]], parts: Sequence[Part]) -> float:
        lengths = [sum(p.length + p.gap for p in parts[a:b]) - parts[a].gap for a, b in found]
        short = sum(limits.chunk + max(0.0, 1 - length / limits.full) * limits.shortness for length in lengths)
        too_long = any(length > limits.size and b - a > 1 for (a, b), length in zip(found, lengths, strict=True))
        return float("inf") if too_long else short + sum(parts[a].cost for a, _ in found[1:])

    for _ in range(60):
        parts = [Part(rng.randint(1, 60 if rng.random() < 0.1 else 15), 2, rng.random()) for _ in range(9)]
        found = bounds(parts, limits)
        assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
        ways = ([0, *breaks, 9] for count in range(9) for breaks in itertools.combinations(range(1, 9), count))
        best = min(price(list(itertools.pairwise(way)), parts) for way in ways)
        assert price(found, parts) == pytest.approx(best)


def test_a_table_costs_no_more_than_its_lines() -> None:
    """Rows of one cell under a thousand columns were a thousand cells each."""
    table = "|a" * 1000 + "|\n" + "|-" * 1000 + "|\n" + "|x|\n" * 50
    assert len(structure._parser(inline=False).parse(f"{table}\nText.\n> |a|\n> |-|\n")) < 10
    found = pieces.pieces(f"Before:\n{table}\nText.\n\n> |a|\n> |-|\n> |x|\n\nEnd.", 10_000)
    assert [piece.text for piece in found[1:]] == [table.strip("\n"), "Text.", "> |a|\n> |-|\n> |x|", "End."]


def test_a_deeply_nested_list_ends_where_it_ends() -> None:
    """Its properties of properties took the rest of an API's reference into one section."""
    deep = "\n".join(f"{'  ' * level}- `name{level}` (object)" for level in range(30))
    chunks = cut(f"# A\n\n{deep}\n\n## B\n\nText.\n\n[x]: /y\n", 900)
    assert [section.path for chunk in chunks for section in chunk.sections][-1] == ("A", "B")


def test_a_symbol_has_chunks_of_its_own() -> None:
    """Also a short one; it stays with a heading that has nothing else below it."""
    chunks = cut(
        "# A\n\nText.\n\n## Classes\n\n### `a.B`\n\nOne.\n\n#### `c()`\n\nTwo.\n\n## Next\n\nThree.\n\n## Last\n\nFour.\n",
        900,
    )
    found = [tuple(section.path[-1] for section in chunk.sections) for chunk in chunks]
    assert found == [("A", "Classes", "a.B"), ("c()",), ("Next", "Last")]
