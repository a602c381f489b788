"""Answers without a language model: what is quoted, whole where it must be, once, in order, and not too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.prompts import load_prompts
from app.core.types import Chunk, Hit, Section
from app.pipeline.steps.synthesize import LONGEST_QUOTE, extract
from app.text.blocks import blocks_of, quotable_sentences
from tests.app.pipeline.turns import hit, text_of, turn
from tests.deadline import at_most

PROMPTS = load_prompts(("cs", "en"))
GUIDE = """\
## Storage

![disk](https://docs.example.org/disk.png)

Every project has a disk. To make the disk larger:

1. Open the console.

   ```sh
   console --disk

   # wait for it
   ```

2. Choose the new size.
- or ask support

After that the disk is resized at once.

## Network

Ports are closed until you open them.
"""


def guide(number: int = 1, text: str = GUIDE, **more: object) -> Hit:
    found = hit(number, text, title="Guide")
    sections = (Section(0, ("Guide", "Storage"), "storage"), Section(text.index("## Network"), ("Guide", "Network")))
    return replace(found, chunk=replace(found.chunk, sections=sections, **more))


def extracted(question: str, *hits: Hit, language: str = "en", **more: object) -> str:
    return text_of(extract(turn(question, language, hits=hits, **more), PROMPTS.language(language)))


def test_a_passage_falls_into_whole_blocks() -> None:
    """A list with its code is one, headings and pictures are none; each knows its section."""
    blocks = blocks_of(guide().chunk)
    assert [(block.kind, block.section) for block in blocks] == [
        ("paragraph", 0), ("list", 0), ("paragraph", 0), ("paragraph", 1)
    ]  # fmt: skip
    assert blocks[0].leads
    assert "console --disk\n\n   # wait for it\n   ```\n\n2. Choose" in blocks[1].text
    assert blocks[1].text.endswith("- or ask support")


def test_rules_and_pictures_are_read_in_linear_time() -> None:
    """The rule of a table without a leading pipe can be read as many rules in exponentially many ways."""
    many = ("-" * 60 + "|", "*" * 60 + "a", "_" * 20_000 + "|", "<br>" * 20_000 + "|", "![](a) " * 20_000 + "x")
    with at_most(10):
        for text in many:
            assert [block.text for block in blocks_of(guide(text=f"{text}\n\n## Network").chunk)] == [text]
        assert not blocks_of(guide(text="--- ***___ <br> ![a](b)\n\n## Network").chunk)


def test_the_part_about_the_question_is_quoted_under_its_own_section() -> None:
    """Not what the passage happens to begin with."""
    text = extracted("Are ports closed?", guide())
    assert "**Guide > Network** [1]\n\nPorts are closed until you open them." in text
    assert "disk" not in text


def test_steps_come_whole_with_the_line_that_announces_them() -> None:
    """Also where the question's words are in one step only."""
    text = extracted("Where do I open the console?", guide())
    assert text.startswith(PROMPTS.language("en").extractive_intro)
    assert "To make the disk larger:\n\n1. Open the console." in text
    assert "2. Choose the new size.\n- or ask support" in text


def test_nothing_is_announced_and_then_left_out() -> None:
    """A quotation doesn't end with "as follows:"."""
    text = "Disks have a size.\n\nIt is set as follows:\n\n```yaml\n" + "size: 10\n" * 200 + "```"
    part = extracted("Which size do disks have?", hit(1, text))
    assert part.count("size: 10") in {0, 200}
    assert ("as follows:" in part) == ("size: 10" in part)


def test_of_a_long_paragraph_the_best_sentences_are_quoted() -> None:
    """With a mark where something was left out; the sentences themselves are the page's."""
    filler = "Nothing of this has anything to do with it, e.g. `a. B` or that. " * 20
    text = extracted("When are backups made?", hit(1, f"{filler}Backups are made at night. {filler}"))
    quoted = text.split("[1]\n\n")[1]
    assert "Backups are made at night." in quoted
    assert quoted.startswith("… ")
    assert quoted.endswith(" …")
    assert len(quoted) < LONGEST_QUOTE


def test_of_a_long_paragraph_the_sentences_before_the_best_one_come_first() -> None:
    """They say what it is about; the rest of the room is for those after it."""
    said = [f"Sentence {n} says a little of the matter at hand, and then some more of it." for n in range(16)]
    said[6] = "The port of the service is 8000, as everybody here has known for many years."
    part = extracted("Which port has the service?", hit(1, " ".join(said))).split("[1]\n\n")[1]
    assert part.startswith(said[0])
    assert said[7] in part
    assert part.endswith(" …")


def test_a_further_passage_has_its_line_without_the_code_below_it() -> None:
    """A fence within a line would be no fence, and its backticks would stand in the text."""
    step = "1. Make the disk larger:\n\n   ```sh\n   console --disk\n   ```\n"
    text = extracted("How do I make the disk larger?", guide(), hit(2, step), hit(3, "```sh\nmake disk larger\n```"))
    further = text.split("[2]")[1]
    assert further.split("\n")[0] == ": Make the disk larger:"
    assert further.endswith("[3]: make disk larger")


def test_sentences_end_neither_in_code_nor_behind_abbreviations() -> None:
    """They are the pieces that may be quoted alone."""
    assert quotable_sentences("Use `a. B` e.g. Docker. Then wait! Např. Helm. Konec.") == [
        "Use `a. B` e.g. Docker.", "Then wait!", "Např. Helm.", "Konec."
    ]  # fmt: skip


def test_the_best_passage_is_quoted_and_the_others_have_a_line_each() -> None:
    """In the order of the ranking, whatever words they have; the same line only once, and no line for a weak one."""
    table = "Before.\n\n| what | when |\n|---|---|\n| logs | never |\n| backups of disks | at night |"
    hits = [
        hit(1, "Backups exist.", title="First"),
        hit(2, table, title="Second"),
        hit(3, "Some words. Backups of the disks are made at night. More words.", title="Third"),
        hit(4, "Backups of the disks are made at night.", title="Fourth"),
        hit(5, "The night is dark. " * 10, title="Fifth"),
    ]
    text = extracted("When are backups of disks made, at night?", *hits)
    assert "**First** [1]\n\nBackups exist.\n\n- **Second** [2]: backups of disks – at night\n- **Third** [3]: " in text
    assert text.endswith("[3]: Backups of the disks are made at night.")


def test_long_tables_and_lists_are_shortened_to_their_best_rows_and_items() -> None:
    """With the header of the table, and marks where something was left out."""
    rows = [f"| setting {n} | does the thing number {n} | {'x' * 40} |" for n in range(60)]
    rows.insert(30, "| port | of the service | 8000 |")
    table = "\n".join(["| name | does | note |", "|---|---|---|", *rows])
    part = extracted("Which port has the service?", hit(1, table)).split("[1]\n\n")[1]
    assert part.startswith("| name | does | note |\n|---|---|---|\n| port | of the service | 8000 |\n| setting 30 |")
    assert part.endswith("|\n\n…")
    items = [f"- the item {n}\n  is about {'y' * 60}" for n in range(40)]
    part = extracted("port", hit(1, "\n".join([*items, "- the port\n  is 8000"]))).split("[1]\n\n")[1]
    assert part.startswith("…\n\n- the item")
    assert part.endswith("- the port\n  is 8000")
    assert len(part) <= LONGEST_QUOTE + 10


@pytest.mark.parametrize(("language", "own"), [("cs", "Zálohy"), ("en", "Backups")])
def test_the_reader_s_language_stands_alone_where_it_says_as_much(language: str, own: str) -> None:
    """The same page in two languages is quoted in one; where there is no other, the foreign one is."""
    english = hit(1, "Backups (zálohy) of etcd are made at night.")
    czech = replace(hit(2), chunk=replace(hit(2).chunk, language="cs", text="Zálohy (backups) etcd se dělají v noci."))
    order = (english, czech) if language == "en" else (czech, english)
    text = extracted("backups zálohy etcd", *order, language=language)
    assert own in text
    assert len(text.split("[")) == 2
    assert "Backups (zálohy)" in extracted("zálohy etcd", english, language="cs")


def test_a_whole_page_as_one_passage_is_bounded() -> None:
    """Also with a splitter that doesn't cut, an answer is no book; code alone stays whole."""
    page = "\n\n".join(f"Paragraph {n} about disks. " + "More about disks. " * 100 for n in range(50))
    items = "\n".join(f"- item {n} about disks " + "and more " * 10 for n in range(500))
    for text in (page, items, f"Disks:\n\n{items}"):
        part = extracted("disks", hit(1, text))
        assert len(part) < 2 * LONGEST_QUOTE
        assert not part.rstrip().endswith("and")


def test_a_chunk_without_text_is_no_failure() -> None:
    """Only a heading and a picture: there is still an answer."""
    chunk = Chunk("c", "docs", "https://docs.example.org/x", 0, "# T\n\n![x](y.png)", "en", "T")
    assert extracted("What is T?", Hit(chunk)).startswith(PROMPTS.language("en").extractive_intro)
