"""Sections: which are quoted in place of an answer, which a link leads to and why, and which headings are asked next."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from app.citing.asked import Weights, asked_tokens
from app.citing.citations import Citations
from app.citing.sections import (
    LONGEST_QUOTE,
    Found,
    best_section,
    cited_links,
    extract,
    features_of,
    headed_first,
    line_of_unit,
    own_language,
    places,
    ranked,
    section_reason,
    sure,
)
from app.core.fitted import fitted
from app.core.prompts import load_prompts
from app.core.turn import CitingTrace, Done, Link, Message, Request, Source, Text, Turn
from app.core.types import Candidate, Chunk, Hit, Legs, Section
from app.pipeline.steps.cite import Cite, source_of
from app.text.analysis import analyse, beginnings
from app.text.blocks import cut_short
from app.text.units import blocks_of, line_of, units_of
from tests.app.pipeline.turns import hit, stream, text_of, turn
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


ENGLISH = PROMPTS.language("en")


def guide(number: int = 1, text: str = GUIDE, **more: object) -> Hit:
    found = hit(number, text, title="Guide")
    sections = (Section(0, ("Guide", "Storage"), "storage"), Section(text.index("## Network"), ("Guide", "Network")))
    return replace(found, chunk=replace(found.chunk, sections=sections, **more))


def extracted(
    question: str,
    *hits: Hit,
    language: str = "en",
    page: tuple[Hit, ...] = (),
    whole: str = "",
    also: str = "",
    **more: object,
) -> str:
    texts, asked = PROMPTS.language(language), turn(question, language, hits=hits, **more)
    found = own_language(ranked(hits, Weights(dict.fromkeys(asked_tokens(asked, texts), 1.0)), texts), language)
    pages = tuple(hit.chunk for hit in page or hits[:1])
    return text_of(extract(asked, found, pages, texts.texts.extractive_intro, whole, also))


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


def test_a_sentence_that_says_little_of_what_is_asked_is_not_marked() -> None:
    """The section answers, by its heading; a sentence of it that has none of the words would mislead."""

    def marked(question: str) -> str:
        asked = turn(question, "en", hits=(guide(),))
        weights = Weights(dict.fromkeys(asked_tokens(asked, ENGLISH), 1.0))
        return ranked((guide(),), weights, ENGLISH)[0].proof.sentence

    assert marked("Are ports closed?") == "Ports are closed until you open them."
    assert marked("network") == ""


def test_the_part_about_the_question_is_quoted_under_its_own_section() -> None:
    """Not what the passage happens to begin with."""
    text = extracted("Are ports closed?", guide())
    assert "*Guide › Network* [1]\n\nPorts are closed until you open them." in text
    assert "disk" not in text


def test_steps_come_whole_with_the_line_that_announces_them() -> None:
    """Also where the question's words are in one step only."""
    text = extracted("Where do I open the console?", guide())
    assert text.startswith(PROMPTS.language("en").texts.extractive_intro)
    assert "To make the disk larger:\n\n1. Open the console." in text
    assert "2. Choose the new size.\n- or ask support" in text


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
    said = [f"Sentence {n} says a little of the matter at hand, and then some more of it." for n in range(26)]
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
    assert further.split("\n")[0] == " – Make the disk larger"
    assert further.endswith("[3]")


@pytest.mark.parametrize("first", ["#!/bin/sh", "{", "<?php", "---", "# `make` it"])
def test_the_line_of_code_is_one_that_says_something(first: str) -> None:
    """A brace, a comment or the name of an interpreter is the same on all pages."""
    code = hit(1, f"```\n{first}\n\nmake disk larger\n```")
    assert line_of_unit(Found(1, code, units_of(code.chunk)[0])) == "`make disk larger`"


@pytest.mark.parametrize(
    "best",
    [
        "```sh\nmake disk larger\n```",
        "| what | how |\n|---|---|\n| disk | make it larger |",
        'Minimum to make a disk larger").',
        "`make disk larger`",
    ],
)
def test_a_further_section_shows_a_sentence_on_what_is_asked_or_its_title_alone(best: str) -> None:
    """Code, rows and parts of sentences say nothing on their own, however well they match."""
    beside = "A disk of any size costs nothing."
    for text, shown in ((f"{best}\n\n{beside}", beside), (f"{best}\n\nAnd so on it goes.", "")):
        said = extracted("How do I make the disk larger?", guide(), hit(2, text))
        assert said.endswith(f"[2] – {shown}" if shown else "[2]")


def test_a_further_section_without_a_sentence_on_the_subject_is_its_title() -> None:
    """Neither a row of figures, nor a sentence on something else; the number of a section is no part of its title."""
    table = "| disk | P | R |\n|---|---|---|\n| disk | 0.733 | 0.884 |"
    other = hit(3, "It rains.")
    numbered = replace(other, chunk=replace(other.chunk, title="6.3.4. Networks"))
    text = extracted(
        "How do I make the disk larger?", guide(), hit(2, table), numbered, hit(4, "The [disk](x) is **big**.")
    )
    further = re.sub(r"\]\([^()]*\)", "]", text[text.index("\n- [") :])
    assert further == "\n- [Page 2] [2]\n- [Networks] [3]\n- [Page 4] [4] – The disk is **big**."


def test_units_are_sentences_items_rows_and_code() -> None:
    """Each with its place; labels of code and sentences that only announce something are none."""
    text = """\
Use `a. B` e.g. Docker, which is the usual way to do this here. Then wait until it has begun! As follows:

config.yaml

```yaml
size: 10
```

- one
  - two

| name | value |
|---|---|
| port | 8000 |
"""
    chunk = hit(1, text).chunk
    assert [line_of(chunk, unit) for unit in units_of(chunk)] == [
        "Use `a. B` e.g. Docker, which is the usual way to do this here.",
        "size: 10",
        "one",
        "two",
        "port – 8000",
    ]
    assert [text[unit.start : unit.end].strip() for unit in units_of(chunk)][2:] == [
        "- one",
        "- two",
        "| port | 8000 |",
    ]


def test_the_best_section_is_quoted_and_the_others_have_a_line_each() -> None:
    """A link with the sentence that matched, best first; the same line only once, and at most five."""
    table = "Before.\n\n| what | when |\n|---|---|\n| logs | never |\n| backups of disks | at night |"
    hits = [
        hit(1, "Backups exist.", title="First"),
        hit(2, table, title="Second"),
        hit(3, "Some words. Backups of the disks are made at night. More words.", title="Third"),
        hit(4, "Backups of the disks are made at night.", title="Fourth"),
        hit(5, "Backups of the disks are made at night.", title="Fifth"),
        *(hit(n, f"The night is dark {n}.") for n in range(6, 10)),
    ]
    text = extracted("When are backups of disks made, at night?", *hits)
    lines = text.split("[1]\n\nBackups exist.\n\n")[1].split("\n")
    assert lines[0] == "- [Second](https://docs.example.org/page-2) [2]"
    assert text.count("Backups of the disks are made at night.") == 2
    assert len(lines) == 5


def test_the_best_unit_leads_to_another_section_than_the_first_hit() -> None:
    """The order of the hits counts, and so do the words of a row: a clear match wins over a slightly better rank."""
    first, second = (
        hit(1, "Settings change things."),
        hit(2, "| name | is |\n|---|---|\n| port | 8000 |\n| host | local |"),
    )
    close = replace(second, fused=0.95)
    assert "*Page 2* [2]\n\n| name | is |" in extracted("Which port?", first, close)


def test_a_hit_that_was_moved_forward_leads_where_the_words_decide_nothing() -> None:
    """A section headed by the question comes before others whatever their scores."""
    headed = replace(hit(1, "Change the prompts here."), fused=0.6)
    assert "[1]\n\nChange the prompts here." in extracted(
        "change prompts", headed, hit(2, "Change a prompt in a file.")
    )


def test_a_quotation_is_sure_by_what_was_found_and_not_by_anything_alone() -> None:
    """A page that stands out with all that is asked is; a rival, other words and a page that only its words find make it less likely."""
    weights = Weights(dict.fromkeys(analyse("disk", "en"), 1.0))
    first, rival = hit(1, "A disk has 20 GB."), replace(hit(2, "Disks are round."), fused=0.9)
    alone, beside = (features_of(ranked(hits, weights, ENGLISH), weights, Legs()) for hits in ([first], [first, rival]))
    assert (alone["gap"], beside["gap"], beside["unit"]) == (1.0, pytest.approx(0.1), 1.0)
    assert sure(alone)
    other = Weights(dict.fromkeys(analyse("banana peel", "en"), 1.0))
    assert not sure(features_of(ranked([first, rival], other, ENGLISH), other, Legs()))
    headed = hit(1, "A disk has 20 GB.", path=("How large is a disk?",))
    by_heading = features_of(ranked([headed, rival], weights, ENGLISH), weights, Legs())
    pages = tuple(Candidate(f"{n}", f"https://docs.example.org/page-{n}", "en", 1.0 / n) for n in range(1, 9))
    far = features_of(ranked([first], weights, ENGLISH), weights, Legs(pages, pages[::-1], pages[::-1]))
    assert (alone["near"], alone["nearest"], far["near"], far["nearest"]) == (1.0, 1.0, 1 / 8, 0.0)
    odds = fitted("sure").probability
    assert odds(beside) < odds(by_heading)
    assert odds(beside) < odds(alone)
    assert odds(far) < odds(alone)


def test_the_nearest_stretch_has_the_best_unit_where_words_decide_nothing() -> None:
    """It was found by its vector; a unit with the words of the question still wins."""
    text = f"Disks are large. {'There are many of them here. ' * 12}\n\nVolumes grow. {'It happens at night. ' * 16}"
    near = replace(hit(1, text), stretch=1)
    asked = [Weights(dict.fromkeys(analyse(question, "en"), 1.0)) for question in ("storage", "disks")]
    assert [ranked([near], weights, ENGLISH)[0].unit.block for weights in asked] == [1, 0]


def test_a_section_that_is_cut_keeps_its_command_and_what_follows_the_best_unit() -> None:
    """What there is to do stands at the beginning, and an answer below its question; the middle is left out between blocks."""
    middle = "\n\n".join(f"Paragraph {n} is about other things.{' More of it.' * 14}" for n in range(8))
    faq = "Why is the installation slow?\n\nThe model is large.\n\n```sh\nmake smaller\n```"
    text = f"```sh\nmake run\n```\n\n{middle}\n\n{faq}\n\n{middle}"
    part = extracted("Is the installation slow?", hit(1, text)).split("[1]\n\n")[1]
    assert part.startswith("```sh\nmake run\n```\n\n…\n\nParagraph ")
    assert f"More of it.\n\n{faq}" in part
    assert part.endswith("\n\n…")
    assert "\n\n…\n\n…" not in part
    assert len(part) <= LONGEST_QUOTE + 10


def test_a_table_that_does_not_fit_keeps_what_introduces_it() -> None:
    """A reader learns what to do with the table, and sees its first rows."""
    rows = "\n".join(f"| file{n}.md | is one of many |" for n in range(60))
    text = f"A lamp is a file.\n\nPut it into the cellar:\n\n| file | what |\n|---|---|\n{rows}\n\nThat is all."
    part = extracted("What is a lamp?", hit(1, text)).split("[1]\n\n")[1]
    assert "\n\nPut it into the cellar:\n\n| file | what |\n|---|---|\n| file0.md |" in part
    assert part.endswith("\n\n…")
    assert len(part) <= LONGEST_QUOTE


def test_a_section_that_is_cut_keeps_its_steps() -> None:
    """They are what there is to do; of the text between them and the best unit, something else is left out."""
    steps = "It does this:\n\n1. It opens the door.\n2. It lights the lamp." + " Then it waits." * 16
    prose = "\n\n".join(f"Paragraph {n} is about other things.{' More of it.' * 20}" for n in range(4))
    part = extracted(
        "Is there a cellar?", hit(1, f"```sh\nopen it\n```\n\n{steps}\n\n{prose}\n\nThe cellar has no lamp.")
    )
    assert f"open it\n```\n\n{steps}\n\n…\n\nParagraph " in part
    assert part.endswith("The cellar has no lamp.")
    assert len(part.split("[1]\n\n")[1]) <= LONGEST_QUOTE + 10


@pytest.mark.parametrize("row", ["| cellar | has no lamp |", "- **Cellar**: it has no lamp", "- `cellar` has no lamp"])
def test_of_equal_hits_the_row_or_item_named_by_the_question_leads(row: str) -> None:
    """Its first cell, bold text or code says what it is about, as a heading does; others only mention it."""
    head = "| what | is |\n|---|---|\n" if row.startswith("|") else ""
    named = replace(hit(2, f"{head}{row}"), fused=0.98)
    assert "*Page 2* [2]" in extracted("cellar?", hit(1, "The lamp is not in the cellar."), named)
    assert "*Page 1* [1]" in extracted("cellar?", hit(1, "The lamp is not in the cellar."), replace(named, fused=0.7))


def test_a_short_section_goes_on_with_those_below_it() -> None:
    """Under their headings: what to do often stands there. A section beside it, and a list without what it announces, don't."""
    text = "## Deploy\n\nGitHub serves pages.\n\n### Projects\n\n- Run this:\n\n```sh\nmake deploy\n```\n\n## Other\n\nMore."
    paths = (("Deploy",), ("Deploy", "Projects"), ("Other",))
    starts = (0, text.index("### Projects"), text.index("## Other"))
    sections = tuple(Section(start, path) for start, path in zip(starts, paths, strict=True))
    found = hit(1, text)
    part = extracted("Does GitHub serve pages?", replace(found, chunk=replace(found.chunk, sections=sections)))
    assert part.endswith("GitHub serves pages.\n\n**Projects**\n\n- Run this:\n\n```sh\nmake deploy\n```")
    without = replace(found.chunk, sections=sections[:2], text=text[: text.index("```sh")])
    part = extracted("Does GitHub serve pages?", replace(found, chunk=without))
    assert part.endswith("GitHub serves pages.\n\n…")


def test_a_quotation_that_was_cut_ends_with_a_link_to_all_of_it() -> None:
    """In the language of the reader; one that is whole has none."""
    texts = [extracted("port", hit(1, "The port is 8000. " * times), whole="All of it") for times in (5, 500)]
    link = "…\n\n[All of it](https://docs.example.org/page-1)"
    assert [link in text for text in texts] == [False, True]


def test_a_section_comes_whole_with_its_code_from_the_next_chunk() -> None:
    """A sentence that ends in a colon is followed by what it announces, and tabs have labels."""
    first = hit(1, "## Install\n\nInstall it like this:", path=("Install",))
    code = "npm\n\n```sh\nnpm install it\n```\n\nyarn\n\n```sh\nyarn add it\n```"
    second = hit(1, code, path=("Install",))
    second = replace(second, chunk=replace(second.chunk, id="c2"))
    text = extracted("How do I install it?", first, page=(first, second))
    assert "Install it like this:\n\n**npm**\n\n```sh\nnpm install it\n```\n\n**yarn**" in text
    alone = extracted("How do I install it?", first, page=(first,))
    assert "Install it like this:" in alone


def test_long_tables_and_lists_are_shortened_to_their_best_rows_and_items() -> None:
    """With the header of the table, and marks where something was left out."""
    rows = [f"| setting {n} | does the thing number {n} | {'x' * 40} |" for n in range(60)]
    rows.insert(30, "| port | of the service | 8000 |")
    table = "\n".join(["| name | does | note |", "|---|---|---|", *rows])
    part = extracted("Which port has the service?", hit(1, table)).split("[1]\n\n")[1]
    assert part.startswith(
        "| name | does | note |\n|---|---|---|\n| … | | |\n| port | of the service | 8000 |\n| setting 30 |"
    )
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


def test_a_page_in_another_language_leads_where_it_is_the_best() -> None:
    """What is asked may stand in one language only; the reader's own pages follow."""
    english = hit(1, "Backups (zálohy) of etcd are made at night.")
    czech = replace(hit(2), fused=0.5, chunk=replace(hit(2).chunk, language="cs", text="Zálohy disků se nedělají."))
    text = extracted("zálohy etcd", english, czech, language="cs")
    assert "[1]\n\nBackups (zálohy) of etcd are made at night.\n\n- [" in text
    assert "[2] – Zálohy disků se nedělají." in text


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
    assert extracted("What is T?", Hit(chunk)).startswith(PROMPTS.language("en").texts.extractive_intro)


def test_a_section_whose_heading_is_the_question_is_quoted() -> None:
    """A page with more of its words, or a nearer one, says something about it; that section answers it."""
    other = replace(hit(2, "Open WebUI shows all models, and no models are shown twice.", path=("Models",)), fused=0.9)
    headed = replace(hit(1, "Check the address of the connection.", path=("Open WebUI shows no models",)), fused=0.5)
    said = extracted("Open WebUI shows no models", headed, other)
    assert said.index("Check the address") < said.index("twice")


def test_a_line_that_is_cut_leaves_no_code_span_open() -> None:
    text = f"{'word ' * 29}(`npm install it globally with all of its parts and pieces`)"
    assert cut_short(text, 170) == f"{'word ' * 29}…"
    assert cut_short("`a b`", 170) == "`a b`"


HEADED_HITS: tuple[Hit, ...] = (
    hit(1, path=("Indexing", "Can pages of another site be translated?"), title="Indexing"),
    hit(2, path=("Start", "How do I index another site?"), title="Start"),
    hit(3, path=("Začínáme", "Jak zaindexuji jiný web?"), title="Začínáme"),
    hit(4, path=("Storage", "Snapshots"), title="Storage of projects"),
    hit(5, path=("Languages", "Add a language"), title="Languages"),
    hit(6, path=("How it works",), title="How it works"),
    hit(7, path=("FAQ", "How do I add a language?"), title="FAQ"),
)


@pytest.mark.parametrize(
    ("question", "language", "first"),
    [
        ("How do I index another site?", "en", 2),
        ("index another site", "en", 2),
        ("jak zaindexuji jiny web", "cs", 3),
        ("storage of projects", "en", 4),
        ("How do I index another site of mine?", "en", 1),
        ("How do I index a site?", "en", 2),
        ("Snapshots", "en", 1),
        ("How it works", "en", 6),
        ("add a language", "en", 5),
        ("How do I add a language?", "en", 7),
        ("How?", "en", 1),
        ("", "en", 1),
    ],
)
def test_the_very_words_of_a_heading_lead_to_it(question: str, language: str, first: int) -> None:
    """Function words, diacritics and capitals don't matter; a word more is another question, as is a single one.

    The heading with the same function words comes first, one that says more after those that say as much.
    """
    found = headed_first(HEADED_HITS, question, PROMPTS.language(language))
    assert found[0].chunk.id == f"c{first}"
    assert set(found) == set(HEADED_HITS)


def test_of_sections_that_say_as_much_the_one_headed_by_it_is_linked() -> None:
    """The first section ends with a link to how another site is indexed; the second one is about it."""
    first, second = "Prints how to index another site.", "Another site: index it with `run`."
    sections = (Section(0, ("Start", "Run it"), "run"), Section(len(first), ("Start", "Index another site"), "other"))
    chunk = replace(hit(1).chunk, text=first + second, sections=sections)
    assert best_section(chunk, beginnings("index another site")) == sections[1]
    assert "words of the question: Index, another, site" in section_reason(chunk, beginnings("index another site"))


RESIZE = "How do I resize a volume?"


def with_sections(number: int, *sections: tuple[str, str, str]) -> Hit:
    """A hit with sections, each of an anchor, a heading and a text."""
    text, made = "", []
    for anchor, heading, words in sections:
        made.append(Section(len(text), ("Disks", heading), anchor))
        text += f"{words}\n\n"
    found = hit(number, text, title="Disks")
    return replace(found, chunk=replace(found.chunk, sections=tuple(made)))


HEADED = with_sections(1, ("make", "Making", "Make a volume."), ("resize", "Resizing", "Detach the volume first."))
ALIKE = with_sections(2, ("a", "One", "A volume."), ("b", "Two", "Another volume."))
NONE = with_sections(3, ("c", "Three", "Nothing."), ("d", "Four", "Nothing."))
ONLY = with_sections(4, ("", "Volumes", "All of them."))


async def answer(text: str, *hits: Hit, quote: str = "", **more: object) -> tuple[list[Link], list[Source]]:
    events = stream(Text(text), Text(quote, quoted=True), Done())
    asked: Turn = turn(RESIZE, hits=hits, events=events, citing=CitingTrace(), **more)
    said = [event async for event in (await Cite(PROMPTS)(asked))["events"]]
    assert asked.citing is not None
    return asked.citing.links, [event for event in said if isinstance(event, Source)]


async def test_a_quote_below_its_label_is_what_the_citation_proves() -> None:
    """An answer without a model cites before it quotes; the words of the page's title are in each label."""
    found = with_sections(
        1, ("disks", "Disks", "Disks."), ("make", "Making", "Type make."), ("end", "Ending", "Type wipe 3.")
    )
    quoted = await answer(
        "**Disks > Ending** [1]\n\n", found, ALIKE, quote="Type wipe 3.\n\n- **Other** [2]: Type make."
    )
    labelled = await answer("**Disks of servers** [1]: type make.", found)
    said = await answer("**You type make for disks.** [1]\n\nType wipe 3.", found)
    assert [links[0].section for links, _ in (quoted, labelled, said)] == ["Ending", "Making", "Making"]


async def test_each_link_has_its_passage_and_what_chose_the_section() -> None:
    """Number, address and section are those that readers get."""
    links, sources = await answer("A [4]. B [1], C [3] [2].", HEADED, ALIKE, NONE, ONLY)
    shown, told = [[(one.number, one.url, one.section) for one in each] for each in (links, sources)]
    assert shown == told
    assert [(one.number, one.passage, one.chunk, one.section) for one in links] == [
        (1, 4, "c4", "Volumes"), (2, 1, "c1", "Resizing"), (3, 3, "c3", "Three"), (4, 2, "c2", "One"),
    ]  # fmt: skip
    assert [one.reason for one in links] == [
        "the passage's only section: Volumes; its anchor isn't known, so the link leads to its page",
        "the passage's section with most words of the question: Resizing, volume",
        "the passage's section with most words of the question",
        "the passage's section with most words of the question: volume",
    ]
    assert links[1].score == HEADED.score


async def test_passages_behind_one_link_are_listed_each() -> None:
    """Only those that were cited; all of them, where none was."""
    same = replace(ONLY, chunk=replace(ONLY.chunk, id="c5"))
    cited, _ = await answer("A [2].", ONLY, same)
    assert [(one.number, one.passage, one.chunk) for one in cited] == [(1, 2, "c5")]
    uncited, _ = await answer("A.", ONLY, same, ALIKE)
    assert [(one.number, one.passage) for one in uncited] == [(1, 1), (1, 2), (2, 3)]
    assert all(one.reason.startswith("linked as all passages are, since the answer cites none; ") for one in uncited)


async def test_pages_that_are_only_offered_have_no_number() -> None:
    """Those below a refusal, once each, as they are shown: those with more of the question first."""
    links, sources = await answer("The documentation does not answer this question.", ONLY, ONLY, HEADED)
    assert sources == []
    offered = [(None, None, one.chunk.url) for one in (HEADED, ONLY)]
    assert [(one.number, one.passage, one.url) for one in links] == offered
    assert {one.reason for one in links} == {"offered: the model finds no answer in the passages"}


def test_a_passage_that_a_translation_was_found_for_says_so() -> None:
    hit = replace(HEADED, found_in="en")
    asked = turn(RESIZE, language="cs", hits=(hit,))
    ((number, held),) = places(asked, Citations((hit.chunk.url,)), "")
    (link,) = cited_links(asked, [(source_of(number, hit, held[0].section), held)], cited=False)
    assert link.reason.endswith("; found by the translation of its page in en")


CITE = Cite(load_prompts(("cs", "en")))
COPYING = "Run this:\n\n```sh\nlumora snapshot copy\n```\n"
FOUND = (
    hit(1, anchor="create", path=("Volumes", "How do I create a volume?"), title="Volumes"),
    hit(2, anchor="resize", path=("Volumes", "How do I resize a volume?"), title="Volumes"),
    hit(3, COPYING, anchor="copy", path=("Snapshots", "Copy a snapshot"), title="Snapshots"),
    hit(4, anchor="quotas", path=("Quotas", "Limits of storage quotas"), title="Quotas"),  # neither question nor task
    hit(5, anchor="delete", path=("Volumes", "How do I delete a volume?"), title="Volumes"),
    hit(6, anchor="bill", path=("Bills", "How do I pay a bill?"), title="Bills"),  # of something else
    hit(7, anchor="mount", path=("Volumes", "How do I mount a volume?"), title="Volumes"),
)


QUESTION = "How do I make a volume, and a snapshot of it?"


async def follow_ups(
    said: str, *, hits: tuple[Hit, ...] = FOUND, step: Cite = CITE, end: Done | None = None, **asked: object
) -> tuple[str, ...]:
    given = turn(QUESTION, asked.pop("language", "en"), hits=hits, events=stream(Text(said), end or Done()), **asked)
    events = [event async for event in (await step(given))["events"]]
    assert isinstance(events[-1], Done)
    return events[-1].follow_ups


async def test_up_to_three_questions_and_tasks_follow_that_were_found_and_not_cited() -> None:
    """In the order in which they were found; a section that is only a subject is none, nor is one of something else."""
    assert await follow_ups("So [1].") == (
        "How do I resize a volume?",
        "Copy a snapshot",
        "How do I delete a volume?",
    )
    assert (await follow_ups("So [2][3]."))[0] == "How do I create a volume?"


async def test_nothing_follows_that_was_asked_already_or_is_in_another_language() -> None:
    earlier = (Message("user", "how do I RESIZE a volume"), Message("assistant", "So."), Message("user", "And now?"))
    assert await follow_ups("So [1].", request=Request(earlier)) == (
        "Copy a snapshot",
        "How do I delete a volume?",
        "How do I mount a volume?",
    )
    assert await follow_ups("Takto [1].", language="cs") == ()


async def test_nothing_follows_that_is_what_was_just_asked() -> None:
    said = hit(8, anchor="one", path=("Volumes", "How do I make a snapshot of a volume?"), title="Volumes")
    assert await follow_ups("So [1].", hits=(FOUND[0], said)) == ()


async def test_nothing_follows_a_refusal_or_a_question_back_or_where_it_is_switched_off() -> None:
    assert await follow_ups("So.", end=Done(extractive=True, refused=True)) == ()
    assert await follow_ups("Which?", choices=FOUND[:2]) == ()
    assert await follow_ups("So [1].", step=replace(CITE, follow_ups=False)) == ()


async def test_a_section_is_asked_about_by_its_own_steps() -> None:
    """Of a chunk with several sections, the heading of the one with code or steps is a task."""
    sections = (Section(0, ("Disks", "Shape of a disk"), "shape"), Section(7, ("Disks", "Format a disk"), "format"))
    found = replace(
        FOUND[1],
        chunk=replace(
            FOUND[1].chunk, id="x", url=FOUND[0].chunk.url, text="Flat.\n\n1. Format it.\n2. Wait.", sections=sections
        ),
    )
    assert await follow_ups("So [1].", hits=(FOUND[0], found)) == ("Format a disk",)
