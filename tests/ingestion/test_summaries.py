"""Pages are found by what a language model says of them too: one call per page, only for what changed, never shown."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import SettingsError
from app.core.generation import GenerationInfo
from app.core.settings import Settings
from app.core.types import Hit, Page, Query
from ingestion.split.written import Summariser, open_summariser
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.llm_index import ModelIndex, empty
from tests.ingestion.local_site import LocalSite

DISKS = "Mount the NFS export with the command below and check the quota. " * 3
MAIL = "Set up the IMAP server in your program and log in with your name. " * 3
SUMMARIES = {"Disks": "Shared folder for holiday pictures.", "Mail": "Letters from grandmother arrive here."}


class Index(ModelIndex):
    """With two pages, of which the model says what their texts don't."""

    def __init__(self, site: LocalSite, llm: FakeLLM, directory: Path) -> None:
        super().__init__(site, llm, directory, summaries=True, chunk_size=200)
        self.paths = ["/disks.md", "/mail.md"]
        site.put("/disks.md", f"# Disks\n\n{DISKS}\n\n## More\n\nAll about disks.\n", "text/markdown")
        site.put("/mail.md", f"# Mail\n\n{MAIL}\n\n## More\n\nAll about mail.\n", "text/markdown")
        llm.reply = self.summary

    def summary(self, body: dict[str, Any]) -> Reply:
        return Reply(SUMMARIES[body["messages"][-1]["content"].partition("\n")[0]])

    async def hits(self, question: str) -> tuple[Hit, ...]:
        """The chunks of the pages whose summaries are nearest; without summaries, the nearest chunks (`tests/contract` ranks both)."""
        vector, live = (await self.embedder.embed_queries([question]))[0], await self.store.live()
        legs = await live.search(Query(texts=(), vector=vector))
        leg = legs.indirect.get("summaries") or legs.vector
        chunks = await live.fetch([candidate.id for candidate in leg])
        return tuple(Hit(chunk, cosine=candidate.score) for chunk, candidate in zip(chunks, leg, strict=True))

    async def found(self, question: str) -> list[tuple[str, str]]:
        """Their addresses and texts."""
        return [(hit.chunk.url.removeprefix(self.site.url), hit.chunk.text) for hit in await self.hits(question)]

    async def info(self) -> GenerationInfo:
        return (await self.store.live()).info


index = empty(Index)


async def test_a_page_is_found_by_its_summary_and_its_own_text_answers(index: Index) -> None:
    """The words of the question are in no page, and only by its summary it is near to one; off by default and again."""
    assert Settings.load(None).summaries is False
    await index.run(summaries=False)
    assert (index.llm.calls, (await index.info()).recipe.summaries) == ([], "")
    report = await index.run()
    assert report.written["summaries"].calls == len(index.llm.calls) == 2
    assert "Calls of the language model for summaries: 2." in report.text
    assert json.loads(report.to_json())["written"] == {"summaries": {"calls": 2, "failures": 0}}
    for question, path in (("grandmother letters", "/mail"), ("holiday pictures folder", "/disks")):
        found = await index.found(question)
        assert found[0][0] == path
        assert not any("grandmother" in text or "holiday" in text for _, text in found)
    assert (await index.pages())["/mail"].derived.summary == SUMMARIES["Mail"]
    assert ((await index.hits("grandmother letters"))[0].cosine or 0) > 0.4
    await index.run(summaries=False)
    assert ((await index.hits("grandmother letters"))[0].cosine or 0) < 0.3
    assert ((await index.pages())["/mail"].derived.summary, len(index.llm.calls)) == ("", 2)


async def test_only_changed_pages_are_summarised(index: Index) -> None:
    """A second run asks nothing of model or embedder; a changed page is summarised anew, and embeds what changed."""
    await index.run()
    index.embedder.calls.clear()
    report = await index.run()
    first, *_, last = index.site.statuses("/mail.md")  # the sample of Markdown may have asked for it, too
    assert (first, last) == (200, 304)
    assert (report.written["summaries"].calls, len(index.llm.calls), index.embedder.calls) == (0, 2, [])
    index.site.put("/mail.md", f"# Mail\n\n{MAIL}\n\n## More\n\nPigeons.\n", "text/markdown")
    assert (await index.run()).written["summaries"].calls == 1
    first, second, summary = index.embedder.texts
    assert first.startswith(f"Mail\nmail\n\n{MAIL.split('. ', maxsplit=1)[0]}.")
    assert second == "Mail\nmail\nMore\n\n## More\n\nPigeons."
    assert summary == f"Mail\n\n{SUMMARIES['Mail']}"


async def test_a_rebuilt_index_uses_the_summaries_that_were_made(index: Index) -> None:
    """Another way of splitting, a moved page and another site's run ask the model nothing."""
    await index.run()
    await index.run(chunk_size=400)
    index.site.put("/post.md", f"# Mail\n\n{MAIL}\n\n## More\n\nAll about mail.\n", "text/markdown")
    index.paths = ["/disks.md", "/post.md"]
    await index.run(chunk_size=400)
    assert (await index.found("grandmother letters"))[0][0] == "/post"
    index.paths = ["/other.md"]
    index.site.put("/other.md", "# Other\n\nWords.", "text/markdown")
    index.llm.reply = lambda _: Reply("Something else.")
    await index.run(at="/other.xml", chunk_size=500)
    assert (await index.found("grandmother letters"))[0][0] == "/post"
    assert len(index.llm.calls) == 3


async def test_another_prompt_rebuilds_beside_the_live_index(index: Index) -> None:
    """The old index serves, and is found by its summaries, until every page has its new one."""
    await index.run()
    before = await index.info()
    file = index.directory / "prompts" / "en" / "summarise.md"
    file.parent.mkdir(parents=True)
    file.write_text("Summarise in one word what the page is about.", "utf-8")

    def reply(body: dict[str, Any]) -> Reply:
        assert body["messages"][0]["content"].startswith("Summarise in one word")
        return Reply("Pictures." if "Disks" in body["messages"][-1]["content"] else "Letters.", delay=0.5)

    index.llm.reply = reply
    run = asyncio.create_task(index.run(prompts=str(index.directory / "prompts")))
    while len(index.llm.calls) < 3:
        await asyncio.sleep(0.01)
    assert await index.info() == before
    assert (await index.found("grandmother letters"))[0][0] == "/mail"
    assert not run.done()
    assert (await run).written["summaries"].calls == 2
    after = await index.info()
    assert before.recipe.summaries != after.recipe.summaries != ""
    assert (await index.pages())["/mail"].derived.summary == "Letters."


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        (Reply("down", status=503), "503"),
        (Reply(" \n"), "nothing"),
        (Reply("<think>Hm.</think>"), "nothing"),
        (Reply("It tells of", finish="length"), "broke off"),
    ],
)
async def test_without_a_summary_a_page_is_indexed_all_the_same_and_summarised_later(
    index: Index, failing: Reply, told: str
) -> None:
    """An outage fails no run, says so, and makes no new generation of unchanged pages; the next run makes up for it."""
    index.llm.reply = lambda _: failing
    report = await index.run()
    assert (report.counts["new"], report.written["summaries"].failures) == (2, 2)
    assert all("not summarised" in page.note and told in page.note for page in report.pages)
    generation = (await index.info()).id
    assert (await index.run()).counts["unchanged"] == 2
    assert (await index.info()).id == generation
    index.llm.reply, embedded = index.summary, len(index.embedder.texts)
    report = await index.run()
    assert (report.counts["unchanged"], report.written["summaries"].calls) == (2, 2)
    assert [page.note for page in report.pages] == ["", ""]
    assert len(index.embedder.texts) - embedded == 2
    assert (await index.found("grandmother letters"))[0][0] == "/mail"


async def test_an_outage_takes_no_summary_of_an_unchanged_page_away(index: Index) -> None:
    """Also where the site doesn't know of 304, and the index is built anew."""
    await index.run()
    index.llm.reply = lambda _: Reply("down", status=503)
    report = await index.run(chunk_size=400)
    assert [page.note for page in report.pages] == ["", ""]
    assert (await index.found("grandmother letters"))[0][0] == "/mail"


async def test_pages_with_the_same_text_are_found_once(index: Index) -> None:
    """The copy leads to the original; its summary is no second way to it, and later runs ask nothing for it."""
    index.paths = ["/disks.md", "/copy.md"]
    index.site.put("/copy.md", f"# Disks\n\n{DISKS}\n\n## More\n\nAll about disks.\n", "text/markdown")
    await index.run()
    asked = len(index.llm.calls)
    assert {path for path, _ in await index.found("holiday pictures")} == {"/disks"}
    index.site.put("/copy.md", f"# Disks\n\n{DISKS}\n\n## More\n\nAll about disks.\n\n", "text/markdown")
    await index.run()
    assert len(index.llm.calls) == asked


async def summarised(index: Index, text: str, language: str = "en", **settings: int) -> tuple[Page, list[str]]:
    """A page with its summary, and what the model was sent."""
    index.llm.reply = lambda _: Reply("Said.")
    summariser = open_summariser(index.settings(**settings), ())
    assert isinstance(summariser, Summariser)
    made = await summariser.summarised(Page("/a", "docs", "Title", language, text, "h"))
    assert made.derived.summary_of == summariser.writer.wanted(made)
    await summariser.writer.close()
    return made, [message["content"] for call in index.llm.calls[-1:] for message in call["messages"]]


async def test_an_empty_page_is_not_summarised(index: Index) -> None:
    """There is nothing to say of it, now and later."""
    made, sent = await summarised(index, "\n")
    assert (made.derived.summary, sent) == ("", [])


async def test_of_a_long_page_the_model_sees_the_beginning_and_later_headings(index: Index) -> None:
    """So that the page fits its window; comments in code are no headings."""
    code = "```sh\n# comment\n```\n\n"
    long = "".join(f"## Part {number}\n\n{code}{'Words of it. ' * 40}\n\n" for number in range(20))
    _, (_, text) = await summarised(index, long, llm_context_window=3000, llm_max_tokens=500)
    assert text.startswith("Title\n\n## Part 0")
    assert len(text) <= 2000 * 3
    beginning, _, headings = text.partition("…")
    assert headings.split("\n")[-1] == "## Part 19"
    assert ("comment" in beginning, "comment" in headings) == (True, False)


@pytest.mark.parametrize(("language", "begins"), [("cs", "Píšeš"), ("en", "You write"), ("sk", "You write")])
async def test_the_prompt_is_in_the_page_s_language(index: Index, language: str, begins: str) -> None:
    """Or in the default one, where the page's isn't configured."""
    assert (await summarised(index, "text", language))[1][0].startswith(begins)


def test_what_summarising_needs() -> None:
    """A language model."""
    with pytest.raises(SettingsError, match="DOCS_LLM_URL"):
        open_summariser(Settings.load(None, summaries=True), ())
