"""Texts are embedded in batches, several at once, and every vector lands at its text, while the texts before them are written."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from app.core.errors import ModelError, ModelTimeout
from app.core.types import Chunk, Page, Vector
from ingestion.convert.prepare import Prepared
from ingestion.publish.change import PageChange
from ingestion.publish.draft import DryRunDraft, Writer
from ingestion.report import PageReport
from ingestion.split import Splitter
from ingestion.split.embedding import BatchEmbedder
from tests.fakes import FakeEmbedder


def texts(count: int) -> dict[str, str]:
    return {f"id{n}": f"text {n}" for n in range(count)}


async def test_every_text_gets_its_vector() -> None:
    """Batches are full but the last; calls and texts are counted; no text is no call."""
    embedder = FakeEmbedder()
    embedding = BatchEmbedder(embedder, batch=4, parallel=3)
    vectors = await embedding.embed(texts(10))
    assert vectors == {key: (await embedder.embed_queries([text]))[0] for key, text in texts(10).items()}
    assert sorted(map(len, embedder.calls)) == [2, 4, 4]
    assert await embedding.embed({}) == {}
    assert (embedding.calls, embedding.texts, len(embedder.calls)) == (3, 10, 3)


async def test_no_more_calls_at_once_than_set() -> None:
    """Order stays although later calls end sooner."""

    class Slow(FakeEmbedder):
        under_way = most = 0

        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(0.02 if "text 0" in texts[0] else 0.001)
            self.under_way -= 1
            return await super().embed_passages(texts)

    embedder = Slow()
    vectors = await BatchEmbedder(embedder, batch=1, parallel=3).embed(texts(9))
    assert list(vectors) == list(texts(9))
    assert embedder.most == 3


async def test_the_embedders_own_error_comes_out() -> None:
    """Not a group of errors; too few vectors are an error as well."""
    failing = FakeEmbedder(failing_from=1, error=ModelTimeout("too slow"))
    with pytest.raises(ModelTimeout, match="too slow"):
        await BatchEmbedder(failing, batch=2, parallel=2).embed(texts(8))

    class Short(FakeEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
            return (await super().embed_passages(texts))[1:]

    with pytest.raises(ModelError, match="1 vectors for 2 texts"):
        await BatchEmbedder(Short(), batch=2, parallel=1).embed(texts(2))


class Halting(FakeEmbedder):
    """Fails with the second call once a third has begun; the others wait to be released."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.ended = 0
        self.third, self.released = asyncio.Event(), asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        self.begun += 1
        if self.begun == 2:
            await self.third.wait()
            raise ModelTimeout("too slow")
        if self.begun == 3:
            self.third.set()
        await self.released.wait()
        self.ended += 1
        return await super().embed_passages(texts)


async def test_calls_under_way_end_before_the_error_of_another_and_no_more_begin() -> None:
    """What is paid for can be kept; a later call of the embedder works again."""
    embedder = Halting()
    batches = BatchEmbedder(embedder, batch=1, parallel=3)
    embedding = asyncio.create_task(batches.embed(texts(9)))
    async with asyncio.timeout(60):
        await embedder.third.wait()
        await asyncio.sleep(0.05)
        assert not embedding.done()
        embedder.released.set()
        with pytest.raises(ModelTimeout, match="too slow"):
            await embedding
    assert (embedder.begun, embedder.ended) == (3, 2)
    assert len(await batches.embed(texts(4))) == 4


async def test_a_cancelled_run_leaves_no_call_behind() -> None:
    embedder = Halting()
    embedding = asyncio.create_task(BatchEmbedder(embedder, batch=1, parallel=1).embed(texts(9)))
    async with asyncio.timeout(60):
        while not embedder.begun:
            await asyncio.sleep(0.001)
        embedding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await embedding
    await asyncio.sleep(0.01)
    assert (embedder.begun, embedder.ended, len(asyncio.all_tasks())) == (1, 0, 1)


class Patient(DryRunDraft):
    """Writes a page only after so many texts were embedded."""

    def __init__(self, embedder: FakeEmbedder, texts: int) -> None:
        super().__init__(None, {})
        self.embedder, self.texts = embedder, texts

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        while sum(map(len, self.embedder.calls)) < self.texts:
            await asyncio.sleep(0.001)
        await super().put(page, chunks, vectors)


def change(number: int) -> PageChange:
    """A new page of one chunk."""
    text = f"Text {number}."
    page = Page(f"https://docs.example.org/{number}/", "docs", "T", "en", text, hash=str(number))
    chunks = Splitter(size=100).split(page)
    return PageChange(PageReport(page.url, "new"), put=Prepared(page, chunks), page=page)


async def test_a_round_is_embedded_while_the_one_before_is_written() -> None:
    """Pages are written in their order, and none before the texts of the next round are embedded."""
    embedder, written = FakeEmbedder(), list[str]()
    draft = Patient(embedder, 4)
    writer = Writer(
        draft, BatchEmbedder(embedder, batch=1, parallel=2), lambda page: written.append(page.url), lambda _: None
    )
    async with asyncio.timeout(20):
        for number in range(4):
            await writer.write(change(number))
        await writer.flush()
    assert written == list(await draft.page_states()) == [f"https://docs.example.org/{n}/" for n in range(4)]


async def test_a_failure_of_the_round_before_ends_the_writing() -> None:
    """The error comes out, nothing of a later round is written, and nothing goes on after the end."""
    embedder = FakeEmbedder(failing_from=1, error=ModelTimeout("too slow"))
    draft = DryRunDraft(None, {})
    writer = Writer(draft, BatchEmbedder(embedder, batch=1, parallel=1), lambda _: None, lambda _: None)
    with pytest.raises(ModelTimeout, match="too slow"):
        for number in range(9):
            await writer.write(change(number))
    await writer.stop()
    assert list(await draft.page_states()) == ["https://docs.example.org/0/"]
    assert len(asyncio.all_tasks()) == 1
