"""Why an answer links where it does: number, passage, section and reason."""

from __future__ import annotations

from dataclasses import replace

from app.citing.citations import Citations
from app.citing.sections import cited_links, places
from app.core.prompts import load_prompts
from app.core.turn import Done, Link, Source, Text, Turn
from app.core.types import Hit, Section
from app.pipeline.steps.cite import Cite, source_of
from tests.app.pipeline.turns import hit, stream, turn

PROMPTS = load_prompts(("cs", "en"))
QUESTION = "How do I resize a volume?"


def passage(number: int, *sections: tuple[str, str, str]) -> Hit:
    """A hit with sections, each of an anchor, a heading and a text."""
    text, made = "", []
    for anchor, heading, words in sections:
        made.append(Section(len(text), ("Disks", heading), anchor))
        text += f"{words}\n\n"
    found = hit(number, text, title="Disks")
    return replace(found, chunk=replace(found.chunk, sections=tuple(made)))


HEADED = passage(1, ("make", "Making", "Make a volume."), ("resize", "Resizing", "Detach the volume first."))
ALIKE = passage(2, ("a", "One", "A volume."), ("b", "Two", "Another volume."))
NONE = passage(3, ("c", "Three", "Nothing."), ("d", "Four", "Nothing."))
ONLY = passage(4, ("", "Volumes", "All of them."))


async def answer(text: str, *hits: Hit, quote: str = "", **more: object) -> tuple[list[Link], list[Source]]:
    events = stream(Text(text), Text(quote, quoted=True), Done())
    asked: Turn = turn(QUESTION, hits=hits, events=events, links=[], **more)
    said = [event async for event in (await Cite(PROMPTS)(asked))["events"]]
    assert asked.links is not None
    return asked.links, [event for event in said if isinstance(event, Source)]


async def test_a_quote_below_its_label_is_what_the_citation_proves() -> None:
    """An answer without a model cites before it quotes; the words of the page's title are in each label."""
    found = passage(
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
    links, sources = await answer("The passages do not answer that.", ONLY, ONLY, HEADED)
    assert sources == []
    offered = [(None, None, one.chunk.url) for one in (HEADED, ONLY)]
    assert [(one.number, one.passage, one.url) for one in links] == offered
    assert {one.reason for one in links} == {"offered: the model finds no answer in the passages"}


def test_a_passage_that_a_translation_was_found_for_says_so() -> None:
    hit = replace(HEADED, found_in="en")
    asked = turn(QUESTION, language="cs", hits=(hit,))
    ((number, held),) = places(asked, Citations((hit.chunk.url,)), "")
    (link,) = cited_links(asked, [(source_of(number, hit, held[0].section), held)], cited=False)
    assert link.reason.endswith("; found by the translation of its page in en")
