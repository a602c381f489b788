"""Citing by code: numbers as they are read, links to what was used, nothing invented; and what is proved of an answer."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from app.core.errors import ModelUnavailable
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Event, Events, Evidence, Failure, Message, Request, Source, Text, Verbatim
from app.core.types import Hit, Passage, Section
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from app.pipeline.steps.cite import Cite
from app.proof.check import Checker
from app.proof.evidence import Evidence as Read
from app.proof.wording import Wording
from app.routes.search import rows_of
from bench.answers import broken, in_prompts, scripts
from tests.app.pipeline.test_retrieve import Broken
from tests.app.pipeline.turns import hit, stream, text_of, turn
from tests.app.published import publish
from tests.fakes import FakeEmbedder

CITE = Cite(load_prompts(("cs", "en")))
HITS = (
    hit(1, anchor="limits", path=("Storage", "Limits"), title="Storage"),
    hit(2),
    hit(3, url="https://docs.example.org/page-1", anchor="limits", path=("Storage", "Limits"), title="Storage"),
    hit(4, url="https://docs.example.org/a (b)/č?x=[1]", title="Odd [title]"),
)


async def say(
    pieces: list[str], *, hits: tuple[Hit, ...] = HITS, end: Event | None = None, language: str = "en", **asked: object
) -> list[Event]:
    return await cited(*map(Text, pieces), end or Done(), language=language, hits=hits, **asked)


async def cited(*events: Event, step: Cite = CITE, **asked: object) -> list[Event]:
    return [event async for event in (await step(turn(events=stream(*events), **asked)))["events"]]


def sources(events: list[Event]) -> list[Source]:
    return [event for event in events if isinstance(event, Source)]


def body(events: list[Event]) -> str:
    return text_of(events).split("\n\n**")[0]


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
async def test_numbers_follow_the_order_of_first_use(size: int) -> None:
    """Passage 2, cited first, becomes [1]; two passages of one section are one source; unknown numbers vanish."""
    text = "B [2]. A [1][3], both [2, 1; 9] none [9], link [4](x) `a[4]` and\n```\nb[2]\n```\nend [3]"
    events = await say([text[i : i + size] for i in range(0, len(text), size)])
    assert body(events) == "B [1]. A [2], both [1][2] none , link [3] `a[4]` and\n```\nb[2]\n```\nend [2]"
    assert [(one.number, one.url) for one in sources(events)] == [
        (1, "https://docs.example.org/page-2"),
        (2, "https://docs.example.org/page-1#limits"),
        (3, "https://docs.example.org/a (b)/č?x=[1]"),
    ]
    assert (
        "\n\n**Sources**\n\n1. [Page 2](https://docs.example.org/page-2)\n2. [Storage – Limits](https://docs.example.org/page-1#limits)\n3. "
        in text_of(events)
    )


async def test_a_model_that_stops_within_a_sentence_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has written so far is shown after a while, up to a word; a reader who leaves then closes the answer of the model."""
    monkeypatch.setattr("app.pipeline.steps.cite.LONGEST_SILENCE", 0.05)
    closed = asyncio.Event()

    async def stalled() -> Events:
        try:
            yield Text("A volume is a disk that notebooks sh")
            await asyncio.Event().wait()
        finally:
            closed.set()

    events = (await CITE(turn(events=stalled(), hits=HITS)))["events"]
    assert await asyncio.wait_for(anext(events), 10) == Text("A volume is a disk that notebooks ")
    await events.aclose()
    assert closed.is_set()


async def test_an_answer_without_numbers_lists_all_passages_once_each() -> None:
    """The reader gets links in any case, in Czech under Zdroje, encoded so that Markdown can't break them."""
    text = text_of(await say(["Odpověď."], language="cs"))
    assert text.count("**Zdroje**") == 1
    assert text.count("page-1#limits") == 1
    assert r"3. [Odd \[title\]](https://docs.example.org/a%20%28b%29/%C4%8D?x=%5B1%5D)" in text


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_link_has_only_a_fragment_that_its_page_has(size: int) -> None:
    """Else a click would carry what stands behind the sign to the site, such as words of the conversation."""
    at = "https://docs.example.cz"
    hits = (
        hit(1, f"See [all]({at}/other#top).", url=f"{at}/a", anchor="limits", path=("A",)),
        hit(2, url=f"{at}/collect"),
    )
    text = (
        f"[a]({at}/a#limits) [b]({at}/a#secret) {at}/collect#secret [c]({at}/other#top) [d]({at}/collect?q=secret). [1]"
    )
    said = body(await say([text[i : i + size] for i in range(0, len(text), size)], hits=hits))
    assert said == f"[a]({at}/a#limits) [b]({at}/a) {at}/collect [c]({at}/other#top) d. [1]"


async def test_a_failure_keeps_the_text_and_lists_nothing() -> None:
    """What was held back is said, then the failure: a broken answer isn't dressed up with sources."""
    events = await say(["The limit is [1"], end=Failure(ModelUnavailable("gone")))
    assert text_of(events) == "The limit is [1"
    assert isinstance(events[-1], Failure)


async def test_the_link_leads_to_the_section_that_speaks_of_the_question() -> None:
    """A chunk of several short sections is linked where the question's words are."""
    chunk = replace(
        hit(1).chunk,
        text="## Disks\n\nTen GB.\n\n## Memory\n\nYou can get 4 GB.\n",
        sections=(Section(0, ("Limits", "Disks"), "disks"), Section(19, ("Limits", "Memory"), "memory")),
    )
    events = await say(["Four [1]."], hits=(replace(hit(1), chunk=chunk),))
    assert "1. [Page 1 – Memory](https://docs.example.org/page-1#memory)" in text_of(events)
    (source,) = sources(events)
    assert source.snippet == "## Memory\n\nYou can get 4 GB."


async def test_a_snippet_is_cut_behind_a_word() -> None:
    events = await say(["Four [1]."], hits=(hit(1, "gigabytes " * 100),))
    (source,) = sources(events)
    assert source.snippet.endswith("gigabytes …")
    assert len(source.snippet) <= 302


async def test_quoted_text_is_left_alone() -> None:
    """A page's own [7] and links are the page's: only what we or the model wrote is rewritten."""
    page = Text("See [7] and https://other.example.cz [1].", quoted=True)
    said = text_of(await cited(Text("**A** [2]\n\n"), page, Text("\n[9]"), Done(), hits=HITS))
    assert said.startswith("**A** [1]\n\nSee [7] and https://other.example.cz [1].\n\n\n**Sources**")


async def test_what_code_writes_before_a_quotation_is_not_judged() -> None:
    """A title with a number that no passage has stood in the list of related pages with the sign of what isn't proved."""
    link = "\n- [Manual: 1.3 Setup under macOS](https://docs.example.org/page-2) [2] – "
    events = await cited(
        Text(link, own=True),
        Text("It is quoted.", quoted=True),
        Done(extractive=True),
        hits=HITS,
        step=replace(CITE, unproven="mark"),
    )
    assert "1.3 Setup under macOS](https://docs.example.org/page-2) [1] – It is quoted." in body(events)


async def test_a_quoted_block_is_a_block_quote_of_the_same_blocks() -> None:
    """Code, tables and lists of a page are in it what they were, and an address in it goes where it went."""
    plain = "".join(page.read_text("utf-8") for page in sorted((Path(__file__).parents[3] / "docs/en").glob("s*.md")))
    parser = MarkdownIt("commonmark").enable("table")
    for text in (plain, "- a\n\n  ```sh\n  > b\n\n  c\n  ```\n\n      d\n\n| e |\n|---|\n| f |  \ng"):
        events = [Text(text, quoted=True, block=block) for block in (True, False)]
        block, same = [text_of(await cited(event, Done(), hits=HITS)).split("\n\n**Sources**")[0] for event in events]
        opened, *within, closed = [(one.type, one.content, one.info) for one in parser.parse(block)]
        assert (opened[0], closed[0]) == ("blockquote_open", "blockquote_close")
        assert within == [(one.type, one.content, one.info) for one in parser.parse(same)]


@pytest.mark.parametrize(
    ("language", "source", "told"),
    [
        ("en", "sk", "(translated from Slovak)"),
        ("cs", "sk", "(přeloženo ze slovenštiny)"),
        ("cs", "hu", "(přeloženo z jazyka hu)"),
    ],
)
async def test_a_translated_source_is_told(language: str, source: str, told: str) -> None:
    """Behind its link, in the reader's language; the event has it too, other sources have nothing."""
    translated = replace(HITS[1], chunk=replace(HITS[1].chunk, translated_from=source))
    events = await say(["A [1] b [2]."], hits=(HITS[0], translated), language=language)
    assert text_of(events).endswith(f"2. [Page 2](https://docs.example.org/page-2) {told}")
    assert text_of(events).count("(př" if language == "cs" else "(tr") == 1
    assert [one.translated_from for one in sources(events)] == ["", source]


async def refused(text: str, *, language: str = "en", hits: tuple[Hit, ...] = HITS, **asked: object) -> tuple[str, int]:
    """What is said, and how many sources are told."""
    events = await say([text], language=language, hits=hits, **asked)
    return text_of(events), len(sources(events))


NO_ANSWER = [
    ("en", "The documentation does not answer this question."),
    ("en", "I could not find any information in the documentation. Ask the help desk."),
    ("en", "I don't know."),
    ("cs", "Dokumentace na tuto otázku neodpovídá."),
    ("cs", "Na tuto otázku v dokumentaci odpověď není."),
    ("cs", "V dokumentaci jsem o tom nic nenašel. Zeptejte se podpory."),
    ("cs", "Dokumentace neuvádí, kolik to stojí."),
    ("cs", "V dokumentaci o tom není žádná zmínka."),
]


async def test_an_answer_that_only_announces_one_has_no_sources() -> None:
    """Weak models end there; it isn't well supported, although nothing of it is wrong."""
    events = await say(["The answer to this question is:"])
    assert sources(events) == []
    assert isinstance(events[-1], Done)
    assert events[-1].refused
    events = await say(["The answer is:\n\n- [1] one"])
    assert len(sources(events)) == 1


async def test_a_refusal_of_the_model_has_no_sources() -> None:
    """It offers at most five pages about what was asked, like a refusal without a model; in other words than the prompt's, it proves nothing."""
    proving = replace(CITE, unproven="mark")
    for language, text in NO_ANSWER:
        said, told = await refused(
            text, language=language, question="Which odd page has text on storage?", step=proving
        )
        assert await refused(text, language=language, question="Who won?", step=proving) == (text, 0)
        heading = CITE.prompts.language(language).texts.related
        assert said.startswith(
            f"{text}\n\n{heading}\n\n- [Storage – Limits](https://docs.example.org/page-1#limits)\n- [Page 2"
        )
        assert (said.count("\n- "), told) == (3, 0), text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The documentation has no answer to this, but the limit is 4 GB [2]."),
        ("en", "No, a pod can't be resized."),
        ("en", "The documentation has no answer for all of it:\n\n```\nkubectl get pods\n```"),
        ("en", "The documentation does not say it in one place. " + "This is what it says. " * 20),
        ("cs", "Podle dokumentace není možné pod zvětšit."),
    ],
)
async def test_an_answer_has_its_sources_also_where_it_says_no(language: str, text: str) -> None:
    """Cited or not, short or long: who answers has used the passages."""
    said, told = await refused(text, language=language)
    assert f"**{CITE.prompts.language(language).texts.sources}**" in said
    assert told > 0


@pytest.mark.parametrize(
    "text",
    ["The documentation doesn't cover this topic [1].", "None of the pages say who founded the company [1][2]."],
)
async def test_an_answer_that_no_passage_proves_has_no_source_also_if_it_cites(text: str) -> None:
    """What it cites is only offered; one that says what a passage says has that as its source."""
    proving = replace(CITE, unproven="mark")
    related = CITE.prompts.language("en").texts.related
    said, told = await refused(text, step=proving)
    assert (told, related in said) == (0, True)
    assert (await refused("Backups are kept for 30 days [1].", hits=PASSAGES, step=proving))[1] == 1


async def test_addresses_that_the_model_was_shown_stay() -> None:
    """Also those of what a passage grew to, of links that it was shown without, and of headings."""
    found = hit(1, "Ask [the help](https://help.known.cz/).")
    text = "Install: `curl https://get.known.cz/i.sh | sh`\n\nAsk the help."
    chunk = replace(found.chunk, text=text, sections=(Section(0, ("See https://heading.known.cz",), ""),))
    said = "Run `curl https://get.known.cz/i.sh`, see https://help.known.cz or https://heading.known.cz [1]"
    assert body(await say([said], hits=(found,), passages=(Passage(chunk, (found,)),))) == said


OWN_LISTS = [
    ("en", "Four [2].\n\n**Sources**\n\n1. [Page 2](https://docs.example.org/page-2)\n2. [9] Other\n"),
    ("en", "Four [2].\n\nSources:\n- [2] Page 2\n"),
    ("en", "Four [2].\n\n## References\n[1]: https://invented.io/x\n[2]: https://invented.io/y"),
    ("cs", "Four [2].\n\nZdroje:\n- [2] Page 2\n- [1] Page 1"),
    ("cs", "Four [2].\n\n**Použité zdroje:**\n\n* <https://invented.io>"),
]


async def test_our_list_of_sources_replaces_that_of_the_model() -> None:
    for language, text in OWN_LISTS:
        name = CITE.prompts.language(language).texts.sources
        note = " (anglicky)" if language == "cs" else ""
        for size in (1, 4, 1000):
            events = await say([text[i : i + size] for i in range(0, len(text), size)], language=language)
            assert text_of(events) == f"Four [1].\n\n**{name}**\n\n1. [Page 2](https://docs.example.org/page-2){note}"


async def test_numbers_in_the_models_own_list_tell_what_it_used() -> None:
    """Where the text has none."""
    events = await say(["Four.\n\nSources:\n- [2] Page 2"])
    assert [one.url for one in sources(events)] == ["https://docs.example.org/page-2"]
    assert text_of(events).startswith("Four.\n\n**Sources**\n\n1. [Page 2]")


@pytest.mark.parametrize(
    "text",
    [
        "You can use:\n\n**Sources**\n\n- S3\n- NFS",
        "Files are\n\n**Sources**\n\nof truth.",
        "Sources:\n- [2] Page 2\n\nThey are read every hour.",
        "```\n# Sources\n- https://docs.example.org/page-2\n```",
    ],
)
async def test_what_only_looks_like_a_source_list_stays(text: str) -> None:
    """Other lists, and lists that aren't the end."""
    assert text_of(await say([text])).startswith(text.replace("[2]", "[1]"))


async def test_a_question_back_has_no_sources() -> None:
    """It rests on no passage."""
    asked = await cited(Text("Which do you mean?", quoted=True), Done(), hits=HITS, choices=HITS[:2])
    assert asked == [Text("Which do you mean?"), Done()]


async def test_the_section_is_that_of_the_keywords_it_was_found_by() -> None:
    """Those of a second search, too, which is made where the question's own words say too little."""
    sections = (Section(0, ("Disks", "Making"), "make"), Section(6, ("Disks", "Resizing"), "resize"))
    found = hit(1, "Make. Resize.")
    found = replace(found, chunk=replace(found.chunk, sections=sections))
    assert rows_of(turn("frobnicate", hits=(found,)))[0]["section"] == "Making"
    (row,) = rows_of(turn("frobnicate", hits=(found,), more_keywords={"en": "resize"}))
    assert row["section"] == "Resizing"


HOSTILE = "See <img src=//evil.io/p> [x](javascript:a) ![p](https://evil.io/p.png) ![q](https://docs.example.org/q.png) <b>b</b>."


async def test_what_pages_say_is_as_safe_as_what_the_model_says() -> None:
    """Extracts, titles, names of sections and snippets: no tag but a few, no script, pictures from the pages' hosts alone."""
    title, path = "A <script>a</script> `x](//evil.io)", ("Top", "<img src=//evil.io>")
    chunk = replace(hit(1, HOSTILE, title=title).chunk, sections=(Section(0, path, "a"),))
    shown, snippets, said = {}, {}, (Text(HOSTILE, quoted=True), Text("\n\n[1]"), Done())
    for images in ("site", "none"):
        events = await cited(*said, step=Cite(CITE.prompts, images), hits=(replace(hit(1), chunk=chunk),))
        shown[images] = body(events)
        (source,) = sources(events)
        assert (source.title, source.section) == ("A `x](//evil.io)", "")
        snippets[images] = source.snippet
        assert r"\`x\](//evil.io)](" in text_of(events)
    assert snippets == {
        "site": r"See \<img src=> x p ![q](https://docs.example.org/q.png) <b>b</b>.",
        "none": r"See \<img src=> x p q <b>b</b>.",
    }
    assert shown == {images: f"{snippet}\n\n[1]" for images, snippet in snippets.items()}


PROMPTS = load_prompts(("cs", "en"))
PASSAGES = (
    hit(1, "Backups run every night at 02:00. They are kept for 30 days in the archive.", title="Backups"),
    hit(2, "A restore takes an hour. Ask the administrators for it.", title="Restore"),
)
ENGLISH = PROMPTS.language("en").texts


async def answered(
    *pieces: str,
    whole: bool = False,
    unproven: str = "mark",
    evidence: Evidence | None = None,
    end: Done = Done(),  # noqa: B008  # frozen
) -> list[Event]:
    request = Request((Message("user", "How are backups kept?"),), id="t1", whole=whole)
    asked = turn(
        "How are backups kept?",
        hits=PASSAGES,
        request=request,
        events=stream(*map(Text, pieces), end),
        evidence=evidence,
    )
    step = Cite(PROMPTS, unproven=unproven)
    return [event async for event in (await step(asked))["events"]]


def done(events: list[Event]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def test_a_marked_statement_loses_its_citation_and_its_source() -> None:
    events = await answered("Backups run every night [1]. They run at 02:00 [1]. ", "A restore takes 5 weeks [2].")
    assert f"A restore takes 5 weeks. {ENGLISH.unproven}" in text_of(events)
    assert [one.title for one in events if isinstance(one, Source)] == ["Backups"]
    assert [(one.kind, one.passage) for one in done(events).unsupported] == [("number", 2)]
    assert (done(events).refused, done(events).ending) == (False, "")


async def test_a_mostly_unproved_answer_becomes_a_refusal() -> None:
    """Who waits for the whole answer never sees it; who reads along is told not to rely on it."""
    said = ("Backups are kept for 90 days [1]. ", "A restore takes 5 weeks [2].")
    whole, streamed = await answered(*said, whole=True), await answered(*said)
    assert text_of(whole).startswith(ENGLISH.refuted)
    assert "90 days" not in text_of(whole)
    assert f"5 weeks. {ENGLISH.unproven}\n\n{ENGLISH.refuted}" in text_of(streamed)
    for events in (whole, streamed):
        assert (done(events).refused, done(events).ending) == (True, "unproven")
        assert not [one for one in events if isinstance(one, Source)]


async def test_an_answer_of_one_unproved_statement_has_no_sources() -> None:
    """It can be a false alarm, so it is no refusal, though its sign says what refusals say; the pages may be related."""
    events = await answered("Backups are kept for 90 days [1].")
    assert text_of(events).startswith(f"Backups are kept for 90 days. {ENGLISH.unproven}")
    assert ENGLISH.related in text_of(events)
    assert not [one for one in events if isinstance(one, Source)]
    assert (done(events).refused, [one.kind for one in done(events).unsupported]) == (False, ["number"])


async def test_a_refusal_says_what_of_it_is_marked() -> None:
    events = await answered("The documentation does not answer this question. Ask the tool Veeam or its 5 operators.")
    assert text_of(events).count(ENGLISH.unproven) == 1
    assert (done(events).refused, len(done(events).unsupported)) == (True, 1)


async def test_a_marked_first_statement_makes_no_refusal() -> None:
    events = await answered(
        "Backups are kept for 90 days [1]. They run at 02:00, and every night. A restore takes an hour."
    )
    assert text_of(events).count(ENGLISH.unproven) == 1
    assert (done(events).refused, len(done(events).unsupported)) == (False, 1)


async def test_what_follows_a_sign_of_another_turn_is_not_shown() -> None:
    """The rest isn't read, and the sources are those of what was shown."""
    events = await answered("Backups run every night [1].", "<|im_end|>", "\nA restore takes 5 weeks [2].")
    assert "restore" not in text_of(events)
    assert [one.title for one in events if isinstance(one, Source)] == ["Backups"]
    assert done(events).ending == "turned"


async def test_nothing_is_judged_when_it_is_off() -> None:
    events = await answered("Backups are kept for 90 days [1].", unproven="off")
    assert ENGLISH.unproven not in text_of(events)
    assert done(events).unsupported == ()


@pytest.mark.parametrize(
    ("said", "shown", "titles"),
    [
        ("A restore takes an hour [1].", "A restore takes an hour [1].", ["Backups"]),
        ("A restore takes an hour. Backups run every night [1].", "A restore takes an hour. Backups run every night [1].", ["Backups"]),
        ("A restore takes an hour [2][1].", "A restore takes an hour [1][2].", ["Restore", "Backups"]),
        ("A restore takes an hour.", "A restore takes an hour.", ["Backups", "Restore"]),
    ],
    ids=["another passage", "one of two sentences", "both passages", "no number"],
)  # fmt: skip
async def test_the_numbers_that_the_model_wrote_count(said: str, shown: str, titles: list[str]) -> None:
    """No words of a passage move one or add one; without any, all pages are listed."""
    events = await answered(said)
    assert text_of(events).partition("\n\n")[0] == shown
    assert [one.title for one in events if isinstance(one, Source)] == titles


async def test_copied_statements_are_counted_and_nothing_else_is_claimed() -> None:
    """Also those of a quotation; a refusal has no number."""
    good, doubtful = (
        "A restore takes an hour [2]. So the administrators are asked for it [2]. ",
        "A restore takes 5 weeks [2]. ",
    )
    counted = [done(await answered(*pieces)).verbatim for pieces in ((good,), (good, doubtful))]
    assert counted == [Verbatim(2, 1), Verbatim(3, 1)]
    refused = done(await answered("The documentation doesn't say how backups are kept."))
    assert (refused.refused, refused.verbatim) == (True, None)
    quotation = turn(hits=PASSAGES, events=stream(
        Text("Perhaps:", own=True), Text("It runs. It is kept.\n\n- It ends", quoted=True, block=True), Done(extractive=True, doubtful=True)
    ))  # fmt: skip
    events = [event async for event in (await Cite(PROMPTS, unproven="mark")(quotation))["events"]]
    assert done(events).verbatim == Verbatim(3, 3)


async def test_statements_in_doubt_are_compared_in_meaning(tmp_path, monkeypatch) -> None:
    """With the vectors of the index and of the embedder that it was made with, also across languages."""
    monkeypatch.setattr("app.index.ranking.units.FEWEST_CHUNKS", 6)
    monkeypatch.setattr("app.pipeline.steps.cite.FEWEST_CHUNKS", 6)
    embedder, store = (
        open_embedder(Settings.load(None, embedding_model="local:multilingual-e5-small")),
        EmbeddedStore(tmp_path / "index"),
    )
    texts = (
        "The cluster has 40 nodes.",
        "Log in with your password.",
        "Books are lent for a month.",
        "A licence costs 20 €.",
    )
    hits = (*PASSAGES, *(hit(number, text) for number, text in enumerate(texts, start=3)))
    await publish(store, embedder, *(one.chunk for one in hits))
    paraphrase = "Everything is backed up nightly and archived for thirty days afterwards [1]. "
    foreign = "A courier collects magnetic tapes and stores them beneath some mountain [1]. "

    async def shown(*pieces: str, language: str = "en") -> str:
        asked = turn("How are backups kept?", language, hits=PASSAGES, events=stream(*map(Text, pieces), Done()))
        step = Cite(PROMPTS, unproven="mark", embedder=embedder)
        return text_of([event async for event in (await step(asked.changed(generation=await store.live())))["events"]])

    by_words = Checker(
        Read([one.chunk.text for one in PASSAGES], ["en", "en"], "How are backups kept?"),
        "en",
        Wording(PROMPTS.languages),
    )
    assert by_words.sentence(paraphrase)[0].kind == "statement"
    text = await shown("Backups run every night [1]. ", paraphrase, foreign)
    assert f"beneath some mountain. {ENGLISH.unproven}" in text
    assert text.count(ENGLISH.unproven) == 1
    czech = await shown(
        "Zálohy se dělají každou noc ve dvě hodiny [1]. ", "Kurýr převáží pásky do hor [1].", language="cs"
    )
    assert czech.count(PROMPTS.language("cs").texts.unproven) == 1
    assert "Kurýr převáží pásky do hor. " in czech
    await store.close()


@pytest.mark.parametrize("broken", ["embedder", "index"])
async def test_without_their_meaning_words_decide(tmp_path, monkeypatch, caplog, broken: str) -> None:
    """The answer goes on, and what failed isn't asked a second time."""
    monkeypatch.setattr("app.index.ranking.units.FEWEST_CHUNKS", 2)
    monkeypatch.setattr("app.pipeline.steps.cite.FEWEST_CHUNKS", 2)
    embedder, store = Broken() if broken == "embedder" else FakeEmbedder(), EmbeddedStore(tmp_path / "index")
    await publish(store, FakeEmbedder(), *(one.chunk for one in PASSAGES))
    live = await store.live()
    if broken == "index":
        shutil.rmtree(tmp_path / "index")
    said = ("Backups run every night [1]. ", "Tapes travel weekly beneath some mountain [1]. " * 2)
    asked = turn("How are backups kept?", hits=PASSAGES, generation=live, events=stream(*map(Text, said), Done()))
    events = [event async for event in (await Cite(PROMPTS, unproven="mark", embedder=embedder)(asked))["events"]]
    assert text_of(events).count(ENGLISH.unproven) == 1
    assert len([one for one in caplog.records if "words" in one.getMessage()]) == 1
    await store.close()


async def test_no_scripted_answer_ends_untidily() -> None:
    """Numbers, citations below code, titles, sections, pages, refusals, retrieval's words, related pages and addresses."""
    chosen = scripts()
    assert len(chosen) > 250
    assert [(script.promise, script.answer, said) for script, said in await broken(chosen)] == []


def test_the_prompts_for_answers_never_speak_of_passages() -> None:
    """Models repeat the words of their prompt."""
    assert in_prompts() == 0
