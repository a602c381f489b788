"""Excerpts around the words of a query."""

from __future__ import annotations

import textwrap

import pytest

from app.text.query_highlight import EXCERPT, QueryWords

FILLER = "Volumes hold *files* of a [project](https://docs.example.org/project) for as long as it runs.\n\n"


def excerpt(markdown: str, query: str = "backup night") -> str:
    return "".join(
        f"<{piece.text}>" if piece.match else piece.text for piece in QueryWords.of(query, "en").excerpt(markdown)
    )


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 20), (20, 0), (20, 20)])
def test_it_is_around_the_words_and_says_where_it_is_cut(before: int, after: int) -> None:
    """Of a long text, only some paragraphs are read as Markdown."""
    text = excerpt(FILLER * before + "The `backup` runs each **night**.\n\n" + FILLER * after)
    assert "The <backup> runs each <night>." in text
    assert text.startswith("… ") == (before > 1)
    assert text.endswith(" …") == (after > 1)
    assert len(text) <= EXCERPT + 20
    assert not set("*`[") & set(text)


def test_code_with_blank_lines_stays_code() -> None:
    text = excerpt(FILLER * 5 + "```sh\n# *all*\n\nbackup --night  # [once]\n```\n\n" + FILLER * 5)
    assert "# *all* <backup> --<night> # [once]" in text


@pytest.mark.parametrize("indent", [3, 4])
def test_code_of_a_list_that_begins_before_has_no_fences(indent: int) -> None:
    """They are deeper than Markdown takes for fences where the list isn't there."""
    item = FILLER * 5 + "```sh\nbackup --night\n  --once\n```\n\nThen *wait*.\n\n"
    text = excerpt(f"1. First:\n\n{textwrap.indent(item, ' ' * indent)}{FILLER * 5}")
    assert "<backup> --<night> --once Then wait." in text
    assert "`" not in text


def test_of_a_table_it_begins_with_the_row_whose_cells_are_apart() -> None:
    row = "| `PORT` | 8000 | where it listens |\n"
    table = f"| setting | default | what it does |\n| --- | --- | --- |\n{row * 9}"
    text = excerpt(f"Settings.\n\n{table}| `AT` | | when to save, as a backup at night |\n{row * 9}\nMore.")
    assert text.startswith("… AT – when to save, as a <backup> at <night> • PORT – 8000 – where it listens • ")


def test_without_the_words_it_is_the_beginning() -> None:
    assert excerpt(FILLER * 9, "rain").startswith("Volumes hold files of a project")
    assert excerpt("", "rain") == ""
