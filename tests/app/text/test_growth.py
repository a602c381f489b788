"""Found chunks grow to whole sections: whole blocks in the page's order, nothing twice, within the budget."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from app.core.settings import Settings
from app.core.types import Hit, Page, Passage, PlainText
from app.text.blocks import CUT
from app.text.growth import chunks_in, grown, heading_line
from ingestion.split import open_splitter
from ingestion.split.chunks import plain_text

WORD, MARK = re.compile(r"p\d+w\d+"), re.compile(rf"{CUT} \([^()]*\)")
SPLITTERS = ("markdown", "page")


def markdown(seed: int) -> str:
    """A page of all kinds of blocks, each with words of its own, some longer than a chunk."""
    dice, number = random.Random(seed), iter(range(10**6))

    def words(count: int) -> str:
        return " ".join(f"p{seed}w{next(number)}" for _ in range(count))

    def sentences(count: int) -> str:
        return " ".join(f"S{words(dice.randint(3, 9))}." for _ in range(count))

    kinds = (
        lambda: sentences(dice.choice((1, 3, 6, 40))),
        lambda: "\n".join(f"- {sentences(dice.randint(1, 3))}" for _ in range(dice.choice((2, 5, 30)))),
        lambda: (
            f"The {words(2)}:\n\n1. {sentences(2)}\n\n   ```sh\n   {words(4)}\n\n   {words(3)}\n   ```\n2. {sentences(1)}"
        ),
        lambda: "```js\n" + "\n\n".join(words(5) for _ in range(dice.choice((2, 12, 60)))) + "\n```",
        lambda: "|A|B|\n|-|-|\n" + "\n".join(f"|{words(3)}|{words(4)}|" for _ in range(dice.choice((2, 40, 200)))),
        lambda: f":::tip {words(1)}\n\n{sentences(2)}\n\n- {words(2)}\n\n{sentences(1)}\n\n:::",
        lambda: f"!!! note\n\n    {sentences(1)}\n\n    {sentences(1)}",
        lambda: f"> {sentences(2)}\n>\n> {sentences(1)}",
    )
    blocks = [f"# {words(2)} {{#top}}"]
    for _ in range(dice.choice((2, 6, 14))):
        blocks.append(f"{'#' * dice.choice((2, 2, 3, 4))} {words(2)} {{#a{next(number)}}}")
        blocks += [dice.choice(kinds)() for _ in range(dice.randint(1, 4))]
    return "\n\n".join(blocks) + "\n"


@cache
def site(seed: int, splitter: str) -> tuple[list[Hit], dict[str, PlainText]]:
    """Found chunks of some pages, best first, and the pages."""
    dice, hits, pages = random.Random(seed), list[Hit](), dict[str, PlainText]()
    for number in range(3):
        url = f"https://docs.example.org/{seed}/{number}"
        page = Page(url, "docs", f"Page {number}", "en", markdown(seed * 10 + number), "h")
        chunks = open_splitter(Settings.load(None, splitter=splitter)).split(page)
        pages[url] = plain_text(page.markdown, chunks)
        hits += [Hit(chunk, fused=dice.random()) for chunk in dice.sample(chunks, min(len(chunks), dice.randint(1, 3)))]
    return sorted(hits, key=lambda hit: -hit.fused)[:6], pages


def cases() -> Iterator[tuple[list[Hit], dict[str, PlainText], int]]:
    for seed in range(15):
        yield *site(seed, SPLITTERS[seed % 2]), (1500, 4000, 12_000, 60_000, 10**6)[seed // 3]


def parts(passage: Passage, page: PlainText) -> list[tuple[int, int]]:
    """From where to where in the page the texts between the marks of a passage stand; a part of a block has no place."""
    places = []
    for between in passage.chunk.text.split(CUT):
        text = (between.partition("\n\n")[2] if between.startswith(" (") else between).strip("\n")
        at = page.text.find(text) if text else -1
        if at >= 0:
            places.append((at, at + len(text)))
    return places


def test_passages_are_of_whole_blocks_in_order_within_the_budget_and_nothing_twice() -> None:
    whole = cut = 0
    for hits, pages, budget in cases():
        passages = grown(hits, pages, budget)
        assert passages[0].hits[0] == hits[0]
        assert [p.chunk.url for p in passages] == list(dict.fromkeys(p.chunk.url for p in passages))
        length = sum(len(p.chunk.text) + len(heading_line(p.chunk)) + 6 for p in passages)
        assert length <= budget or len(passages) == 1
        telling = WORD.findall(MARK.sub("", " ".join(p.chunk.text for p in passages)))
        assert len(telling) == len(set(telling))
        for passage in passages:
            page, own = pages[passage.chunk.url], {hit.chunk.text for hit in passage.hits}
            ends = {len(page.text[:border].rstrip("\n")) for border in page.borders}
            for start, end in parts(passage, page):
                if page.text[start:end] not in own:  # a part of a block that is longer than all that may be read
                    assert start in page.borders
                    assert end in ends
                    whole += 1
            cut += CUT in passage.chunk.text
            assert passage.chunk.text.count("```") % 2 == 0
    assert whole > 20
    assert cut > 5


def test_the_sections_of_a_passage_are_where_they_are_told_to_be() -> None:
    for hits, pages, budget in cases():
        for passage in grown(hits, pages, budget):
            page, sections = pages[passage.chunk.url], passage.chunk.sections
            own = {section.anchor: section for section in page.sections}
            assert [one.offset for one in sections] == sorted(one.offset for one in sections)
            for section in sections:
                assert own[section.anchor].path == section.path
                at = passage.chunk.text[section.offset :]
                if at.startswith("#"):
                    assert at.partition("\n")[0].lstrip("# ") == section.path[-1]


def test_the_best_hit_grows_first_to_its_section_then_around_it() -> None:
    text = f"# Top\n\nAbout.\n\n## One\n\nAlpha.\n\n{'Filler. ' * 60}\n\nBeta.\n\n## Two\n\n{'Gamma. ' * 60}"
    text += "\n\n### Deep\n\nDelta.\n"
    page = Page("https://a.org/x", "docs", "Top", "en", text, "h")
    chunks = open_splitter(Settings.load(None, chunk_size=200)).split(page)
    (chunk,) = [one for one in chunks if "Beta" in one.text]
    plain = plain_text(text, chunks)
    read = {budget: grown([Hit(chunk)], {page.url: plain}, budget)[0].chunk.text for budget in (180, 700, 2000)}
    assert read[2000] == text.strip()
    assert read[700].startswith("## One\n\nAlpha.")
    assert read[700].endswith("Beta.")
    assert "Alpha" not in read[180]
    assert read[180].startswith(CUT)


def test_no_chunk_that_a_passage_has_words_of_is_missing_among_its_chunks() -> None:
    for hits, pages, budget in cases():
        for passage in grown(hits, pages, budget):
            page, read = pages[passage.chunk.url], set(WORD.findall(passage.chunk.text))
            told = {id_ for id_, (start, end) in page.places.items() if read & set(WORD.findall(page.text[start:end]))}
            assert told <= chunks_in(page, passage.chunk) <= page.places.keys()


def test_a_text_that_two_pages_share_is_read_once() -> None:
    shared = "The limit of every project is the same, whatever it is used for and whoever pays for it in the end."
    hits, pages = list[Hit](), dict[str, PlainText]()
    for name in ("a", "b"):
        text = f"# {name}\n\nOwn {name}.\n\n{shared}\n\n## In {name}\n\nAs {shared}\n\nMore {name}.\n"
        page = Page(f"https://a.org/{name}", "docs", name, "en", text, "h")
        chunks = open_splitter(Settings.load(None)).split(page)
        pages[page.url] = plain_text(page.markdown, chunks)
        hits += [Hit(chunk) for chunk in chunks]
    one, other = grown(hits, pages, 10_000)
    assert shared in one.chunk.text
    assert other.chunk.text == f"# b\n\nOwn b.\n\n{CUT}\n\n## In b\n\n{CUT}\n\nMore b."


def test_a_chunk_without_a_place_stays_as_it_is_under_a_number_of_its_own() -> None:
    """Translations, and what an earlier release indexed."""
    hits, pages = site(1, "markdown")
    none: Mapping[str, PlainText] = {}
    assert [p.chunk.text for p in grown(hits, none, 10**6)] == [h.chunk.text for h in hits]
    foreign = replace(hits[0], chunk=replace(hits[0].chunk, id="t", text="Přeloženo.", translated_from="en"))
    both = grown([foreign, *hits], pages, 10**6)
    assert both[0].chunk.text == "Přeloženo."
    assert len(both) == 1 + len(grown(hits, pages, 10**6))
