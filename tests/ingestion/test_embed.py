"""Texts are embedded in batches, several at once, and every vector lands at its text."""

import asyncio
from collections.abc import Sequence

import pytest

from app.core.errors import ModelError, ModelTimeout
from app.core.types import Vector
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
