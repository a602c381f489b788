"""A burst on a service that has just been started, and on one that has answered before."""

import asyncio

import pytest

from app.models.guarded import Embedder
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of

BURST = 80


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
async def test_a_burst_is_answered_although_its_first_questions_take_long(tmp_path, monkeypatch, warm):
    """All wait behind embeddings that don't come; half of the burst arrives only after others have waited for a while."""
    held, asked = asyncio.Event(), 0

    async def slow(self, texts):
        nonlocal asked
        asked += 1
        await held.wait()
        return await embed(self, texts)

    embed = Embedder.embed_queries
    async with indexed(tmp_path) as service, client_of(service.app) as client, asyncio.TaskGroup() as questions:
        if warm:
            assert (await client.post(CHAT, json=chat("How do I create a volume?"))).status_code == 200
        monkeypatch.setattr(Embedder, "embed_queries", slow)
        ask = lambda: questions.create_task(client.post(CHAT, json=chat("How do I create a volume?")))  # noqa: E731
        answers = [ask() for _ in range(BURST // 2)]
        while not asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.7)
        answers += [ask() for _ in range(BURST // 2)]
        await asyncio.sleep(0.3)
        held.set()
    assert [answer.result().status_code for answer in answers] == [200] * BURST
