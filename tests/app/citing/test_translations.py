"""Links lead to the page in the reader's language where the site has it, and tell the language where it hasn't."""

from __future__ import annotations

import pytest

from app.citing.translations import counterparts
from app.core.errors import StoreUnavailable
from app.core.filters import Filters
from app.core.prompts import load_prompts
from app.core.turn import Done, Events, Request, Source, Text
from app.core.types import Chunk, Hit, Page, Recipe, Section
from app.index.protocols import Generation, Store
from app.pipeline.steps.cite import Cite
from tests.app.pipeline.turns import text_of, turn
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fakes import DIMENSION, FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
SITE = "https://docs.example.org"
BOTH = {"cs": f"{SITE}/cs/disk", "en-GB": f"{SITE}/en/disk"}


def chunk(name: str, language: str, title: str, *anchors: str, collection: str = "docs") -> Chunk:
    sections = tuple(Section(5 * i, (title, f"{anchor} {language}"), anchor) for i, anchor in enumerate(anchors))
    text = "".join(f"{anchor:<5}" for anchor in anchors) or "text"
    return Chunk(f"{language}-{name}", collection, f"{SITE}/{language}/{name}", 0, text, language, title, sections)


async def generation_of(store: Store, *pages: tuple[Chunk, dict[str, str]]) -> Generation:  # noqa: F811
    embedder = FakeEmbedder()
    async with await store.draft(Recipe(embedder.name, DIMENSION, "s", "a")) as draft:
        for made, alternates in pages:
            (vector,) = await embedder.embed_passages([made.embedded_text])
            page = Page(made.url, made.collection, made.title, made.language, made.text, made.id, alternates=alternates)
            await draft.put(page, [made], {made.id: vector})
        await draft.publish()
    return await store.live()


async def cited(generation: Generation, *chunks: Chunk, question: str = "resize", language: str = "cs") -> list:
    async def events() -> Events:
        yield Text(" ".join(f"[{n}]" for n in range(1, len(chunks) + 1)))
        yield Done()

    hits = tuple(Hit(made) for made in chunks)
    given = turn(question, language, hits=hits, events=events(), generation=generation)
    return [event async for event in (await Cite(PROMPTS)(given))["events"]]


async def test_the_link_leads_to_the_same_section_in_the_reader_s_language(store: Store) -> None:  # noqa: F811
    """By its anchor; found in both languages, it is one source."""
    english = chunk("disk", "en", "Disks", "make", "resize")
    czech = chunk("disk", "cs", "Disky", "make", "resize", "drop")
    generation = await generation_of(store, (english, BOTH), (czech, BOTH))
    events = await cited(generation, english, czech)
    assert text_of(events).split("\n\n")[0] == "[1]"
    (source,) = (event for event in events if isinstance(event, Source))
    assert (source.title, source.url, source.language) == ("Disky", f"{SITE}/cs/disk#resize", "cs")
    assert text_of(events).endswith(f"1. [Disky – resize cs]({SITE}/cs/disk#resize)")
    (same,) = (event for event in await cited(generation, english, language="en") if isinstance(event, Source))
    assert same.url == f"{SITE}/en/disk#resize"


@pytest.mark.parametrize(
    ("anchors", "link"), [(("vytvořit", "zvětšit"), "/cs/disk#zvětšit"), (("vytvořit",), "/cs/disk")]
)
async def test_translated_anchors_are_matched_by_place(store: Store, anchors, link) -> None:  # noqa: F811
    """Only where both pages have as many sections; else the page is better than a wrong section."""
    english = chunk("disk", "en", "Disks", "make", "resize")
    generation = await generation_of(store, (english, BOTH), (chunk("disk", "cs", "Disky", *anchors), BOTH))
    (source,) = (event for event in await cited(generation, english) if isinstance(event, Source))
    assert source.url == SITE + link
    assert source.section == (f"{anchors[1]} cs" if "#" in link else "")


async def test_without_a_counterpart_the_other_language_is_told(store: Store) -> None:  # noqa: F811
    """In the reader's language, behind the link; a page that isn't indexed is none."""
    english = chunk("disk", "en", "Disks", "resize")
    generation = await generation_of(store, (english, BOTH))
    assert text_of(await cited(generation, english)).endswith(
        f"1. [Disks – resize en]({SITE}/en/disk#resize) (anglicky)"
    )


@pytest.mark.parametrize(
    ("filters", "leads"),
    [
        (Filters(), True),
        (Filters(collections=("docs",)), False),
        (Filters(languages=("en",)), False),
        (Filters(sections=("/en",)), False),
        (Filters(url_prefixes=(f"{SITE}/en",)), False),
        (Filters(collections=("blog", "docs"), languages=("cs", "en"), url_prefixes=(SITE,)), True),
    ],
)
async def test_no_link_leads_beyond_what_may_be_searched(store: Store, filters: Filters, leads: bool) -> None:  # noqa: F811
    """Neither the limits of an assistant nor the filters of a request end at the links."""
    english, other = chunk("disk", "en", "Disks", "resize"), chunk("disk", "cs", "Disky", "resize", collection="blog")
    generation = await generation_of(store, (english, BOTH), (other, BOTH))
    request = Request((), filters=filters)
    given = turn("resize", "cs", hits=(Hit(english),), generation=generation, request=request)
    assert bool(await counterparts(given)) == leads


async def test_a_store_that_fails_leaves_the_links_that_there_are() -> None:
    """Where a page stands in another language is worth no failed answer."""

    class Broken:
        async def page(self, url: str) -> Page | None:
            raise StoreUnavailable(f"gone: {url}")

    text = text_of(await cited(Broken(), chunk("disk", "en", "Disks", "resize")))  # type: ignore[arg-type]
    assert text.endswith(f"({SITE}/en/disk#resize) (anglicky)")
