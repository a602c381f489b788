"""Chunks are found by questions that a language model wrote for them: one call per chunk, only for what changed, never shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.types import Chunk, LexicalText, Query
from ingestion.split.written import MOST_FAILURES, open_questioner
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.llm_index import ModelIndex, empty
from tests.ingestion.local_site import LocalSite

MOUNT = "Mount the NFS export with the command below. " * 4
QUOTA = "A limit applies to each volume and can be raised. " * 4
ASKED = {
    "Mount": "en: Where do holiday pictures belong? folder\n- **cs**: Kam s fotkami z prázdnin? složka, snímky",
    "Quota": "cs: Kolik babiččiných dopisů se vejde? místo\nen: How many letters of grandmother fit? space",
}


class Index(ModelIndex):
    """With one page of two chunks, for which the model asks what their texts don't say."""

    def __init__(self, site: LocalSite, llm: FakeLLM, directory: Path) -> None:
        self.kept = directory / "kept"
        super().__init__(site, llm, directory, questions=True, translations=str(self.kept), chunk_size=300)
        self.paths = ["/disks.md"]
        self.write()
        llm.reply = self.reply

    def write(self, path: str = "/disks.md", mount: str = MOUNT, quota: str = QUOTA) -> None:
        self.site.put(path, f"# Disks\n\n## Mount\n\n{mount}\n\n## Quota\n\n{quota}\n", "text/markdown")

    def reply(self, body: dict[str, Any]) -> Reply:
        return Reply(ASKED["Mount" if "## Mount" in body["messages"][-1]["content"] else "Quota"])

    def asked(self) -> list[str]:
        """The texts that the model was given."""
        return [call["messages"][-1]["content"] for call in self.llm.calls]

    async def chunks(self) -> tuple[Chunk, ...]:
        live = await self.store.live()
        urls = [page.url for page in await live.pages()]
        return tuple(chunk for of_page in (await live.chunks_of(urls)).values() for chunk in of_page)

    async def first(self, language: str, words: str = "", near: str = "") -> str:
        """The heading of the best chunk by words, or by the vectors of questions (`tests/contract` ranks both)."""
        vector, live = (await self.embedder.embed_queries([near]))[0] if near else None, await self.store.live()
        texts = (LexicalText(language, words),) if words else ()
        legs = await live.search(Query(texts, vector, language=language))
        leg = legs.indirect.get("questions", ()) if near else legs.lexical
        found = await live.fetch([candidate.id for candidate in leg[:1]])
        return ("Mount" if "## Mount" in found[0].text else "Quota") if found else ""


index = empty(Index)


async def test_a_chunk_is_found_by_its_questions_in_every_language_of_readers(index: Index) -> None:
    """By words and by vectors; its own text stays what is shown. The report counts the calls."""
    report = await index.run()
    assert (report.written["questions"].calls, len(index.llm.calls)) == (2, 2)
    assert "Calls of the language model for questions: 2." in report.text
    assert await index.first("cs", words="babiččiny dopisy") == "Quota"
    assert await index.first("en", words="holiday pictures") == "Mount"
    assert await index.first("en", near="Where do holiday pictures belong? folder") == "Mount"
    system, user = (message["content"] for message in index.llm.calls[0]["messages"])
    assert system.endswith("cs: …? …? …? …, …, …\nen: …? …? …? …, …, …")
    assert user.startswith("Disks\n")
    assert index.site.url not in user
    for chunk in await index.chunks():
        assert [code for code, _ in chunk.questions] in (["cs", "en"], ["en", "cs"])
        assert "grandmother" not in chunk.text
    await index.run(questions=False)
    assert await index.first("en", words="holiday pictures") == ""
    assert all(chunk.questions == () for chunk in await index.chunks())


async def test_only_changed_sections_are_asked_about(index: Index) -> None:
    """Not unchanged pages, other sections of a changed page, a page that moved, or an index that is built anew."""
    await index.run()
    index.embedder.calls.clear()
    await index.run()
    assert (len(index.llm.calls), index.embedder.calls) == (2, [])
    index.write(quota="Pigeons bring the limit. " * 6)
    await index.run()
    assert len(index.llm.calls) == 3
    assert "Pigeons" in index.asked()[-1]
    index.write("/volumes.md", quota="Pigeons bring the limit. " * 6)
    index.paths = ["/volumes.md"]
    await index.run(embedding_passage_prefix="passage: ")
    assert len(index.llm.calls) == 3
    assert await index.first("en", words="holiday pictures") == "Mount"


async def test_a_failed_call_ends_no_run_and_is_made_up_for(index: Index) -> None:
    """The report counts it and says what failed; the other chunk has its questions, and keeps them."""
    down = Reply("down", status=503)
    index.llm.reply = lambda body: down if "## Mount" in body["messages"][-1]["content"] else index.reply(body)
    report = await index.run()
    assert report.exit_code == 0
    assert json.loads(report.to_json())["written"] == {"questions": {"calls": 2, "failures": 1}}
    assert "questions: 2, of which 1 failed" in report.text
    assert "1 of 2 chunks without questions: " in report.pages[0].note
    assert await index.first("cs", words="babiččiny dopisy") == "Quota"
    index.llm.reply, asked = index.reply, len(index.llm.calls)
    report = await index.run()
    assert (report.written["questions"].calls, report.pages[0].note) == (1, "")
    assert len(index.llm.calls) == asked + 1
    assert await index.first("en", words="holiday pictures") == "Mount"
    index.llm.reply = lambda _: down
    await index.run(chunk_size=320)
    assert await index.first("en", words="holiday pictures") == "Mount"


async def test_questions_of_some_chunks_need_not_wait_for_those_of_the_others(index: Index) -> None:
    """A chunk may be refused in every run; and what was written stays while the model is away, its files too."""
    down = Reply("down", status=503)
    index.llm.reply = lambda _: down
    await index.run()
    index.llm.reply = lambda body: down if "## Mount" in body["messages"][-1]["content"] else index.reply(body)
    await index.run()
    assert await index.first("cs", words="babiččiny dopisy") == "Quota"
    index.llm.reply = lambda _: down
    for file in index.kept.rglob("*.txt"):
        file.unlink()
    await index.run()
    assert await index.first("cs", words="babiččiny dopisy") == "Quota"


async def test_what_is_no_question_is_not_kept(index: Index) -> None:
    """A refusal, an empty answer, and one that broke off; a dry run asks nothing."""
    questioner = open_questioner(index.settings())
    assert questioner is not None
    chunk = Chunk("c", "docs", "https://example.org/a", 0, "## Quota", "en", "Disks")
    for reply, told in (
        (Reply("I can't."), "wrote no questions"),
        (Reply(" "), "nothing"),
        (Reply("cs: Kde", finish="length"), "broke"),
    ):
        index.llm.reply = lambda _, reply=reply: reply
        made, note = await questioner.questioned([chunk])
        assert (made, told in note) == ([chunk], True)
    assert (questioner.writer.calls, questioner.writer.failures) == (3, 3)
    index.llm.reply = index.reply
    dry = open_questioner(index.settings(), dry=True)
    assert dry is not None
    assert await dry.questioned([chunk]) == ([chunk], "1 of 1 chunks without questions: a dry run asks no model")
    (asked,), note = await questioner.questioned([chunk])
    assert (dict(asked.questions)["cs"], note) == ("Kolik babiččiných dopisů se vejde? místo", "")
    assert (await dry.questioned([chunk]))[0] == [asked]
    for one in (questioner, dry):
        await one.writer.close()


async def test_an_outage_or_a_model_that_writes_none_costs_a_few_calls_not_one_for_each_chunk(index: Index) -> None:
    index.site.put("/long.md", "".join(f"## Part {n}\n\n{MOUNT}\n\n" for n in range(30)), "text/markdown")
    index.paths = ["/long.md"]
    for status in (400, 200):
        index.llm.reply = lambda _, status=status: Reply("I can't.", status=status)
        report = await index.run()
        assert MOST_FAILURES <= report.written["questions"].calls < MOST_FAILURES + 4
        assert "wasn't asked again" in report.pages[0].note
    assert len(await index.chunks()) == 30


def test_questions_are_off_by_default_and_need_a_model() -> None:
    assert open_questioner(Settings.load(None)) is None
    with pytest.raises(SettingsError, match="DOCS_QUESTIONS needs a language model"):
        open_questioner(Settings.load(None, questions=True))
