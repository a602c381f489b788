"""Translations together with the rest: copies of a page, both languages of readers, and the answers that use them."""

from __future__ import annotations

from typing import Any

import pytest

from app.assistants.assistant import Assistant, Plans
from app.assistants.file import AssistantTable
from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Text
from app.pipeline.registry import Tools, make_plan
from app.text.language import LanguageDetector
from tests.fake_llm import Reply
from tests.ingestion.test_translate import CODE, PAGE, SLOVAK, Index, index, translated  # noqa: F401  # fixture

STEPS = ["detect", "probe", "retrieve", "synthesize", "cite"]
CZECH = (
    "Úložiště připojíte příkazem `mount -t nfs4 host:/data /mnt` a potom zkontrolujete, zda je dostupné všem uživatelům, "
    "které jste pozvali do projektu. Kvóta je 100 GB a 5.000 souborů, více najdete v [návodu](https://docs.example.org/kvota). "
    "Když jste přihlášeni, můžete si vybrat složku, kterou chcete sdílet s ostatními."
)
QUESTIONS = {"en": "How do I connect the storage for all users?", "cs": "Jak připojím úložiště pro všechny uživatele?"}
TOLD = {"en": "(translated from Slovak)", "cs": "(přeloženo ze slovenštiny)"}


def in_czech(text: str) -> str:
    for slovak, czech in (
        (SLOVAK, CZECH),
        ("# Úložisko", "# Úložiště"),
        ("## Príklad {#priklad}", "## Příklad {#priklad}"),
    ):
        text = text.replace(slovak, czech)
    return text


def translate(body: Any) -> Reply:
    """The language model: it translates into the language that its instructions are written in."""
    system, user = (message["content"] for message in body["messages"])
    return Reply(in_czech(user) if "Přelož" in system else translated(user))


async def answer(index: Index, question: str) -> str:  # noqa: F811
    """What a reader gets who asks where no language model is."""
    settings = index.settings(languages="cs en")
    prompts = load_prompts(settings.languages)
    tools = Tools(settings, prompts, LanguageDetector(prompts.languages, "en"), None, index.embedder)
    assistant = Assistant(
        AssistantTable(id="a", steps=STEPS), Plans(make_plan(STEPS, tools)), index.store, tools.prompts
    )
    events = assistant.answer(Request((Message("user", question),), id="r"))
    return "".join([event.text async for event in events if isinstance(event, Text)])


async def test_readers_of_both_languages_are_answered_in_theirs_and_sent_to_the_original(index: Index) -> None:  # noqa: F811
    """From one Slovak page; the list of sources says that it was translated, and from what."""
    index.llm.reply = translate
    report = await index.run(translate="en cs")
    assert report.pages[0].translated == ("en", "cs")
    for language, question in QUESTIONS.items():
        said = await answer(index, question)
        sources = said[said.rindex("**") :]
        assert f"]({index.site.url}/sk" in sources
        assert TOLD[language] in sources
        assert (CZECH if language == "cs" else translated(SLOVAK))[:60] in said
        assert SLOVAK[:60] not in said


async def test_copies_of_a_page_are_translated_once(index: Index) -> None:  # noqa: F811
    """Though both are read at the same time; and the copy has the translation when the page goes."""
    await index.run()
    asked = len(index.llm.calls)
    other = PAGE.replace("GB", "TB")
    for path in ("/sk.md", "/copy.md"):
        index.site.put(path, other, "text/markdown")

    def slowly(body: Any) -> Reply:
        text = translated(body["messages"][-1]["content"].replace("TB", "GB"))
        return Reply(text.replace("GB", "TB"), delay=0.2)

    index.llm.reply = slowly
    index.paths = ["/sk.md", "/copy.md"]
    report = await index.run()
    assert len(index.llm.calls) == 2 * asked
    assert {page.url.rpartition("/")[2]: page.translated for page in report.pages} == {"sk": ("en",), "copy": ()}
    assert await index.chunks("en", "/copy") == []
    index.site.put("/sk.md", "gone", "text/plain", status=404)
    report = await index.run()
    assert {(page.outcome, page.translated) for page in report.pages} == {("removed", ()), ("unchanged", ("en",))}
    assert len(index.llm.calls) == 2 * asked
    assert {chunk.translated_from for chunk in await index.chunks("en", "/copy")} == {"sk"}
    assert CODE in "\n".join(chunk.text for chunk in await index.chunks("en", "/copy"))


@pytest.mark.parametrize("changed", ["sk", "copy"])
async def test_a_copy_that_changes_leaves_the_translation_to_the_other(index: Index, changed: str) -> None:  # noqa: F811
    """Whichever of the two it is, both texts are there in both languages afterwards."""
    index.paths = ["/sk.md", "/copy.md"]
    index.site.put("/copy.md", PAGE, "text/markdown")
    await index.run()
    index.site.put(f"/{changed}.md", PAGE.replace("Príklad", "Ukážka"), "text/markdown")
    await index.run()
    for path in ("/sk", "/copy"):
        assert await index.chunks("en", path), path
        assert await index.chunks("sk", path), path
    again = await index.run()
    assert again.counts["unchanged"] == 2
