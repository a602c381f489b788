"""Embeddings of a server that fails now and then, or takes few texts in one call: each text gets its vector."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from app.core.errors import ModelError, ModelRateLimited, ModelUnavailable
from app.core.retries import Patience
from app.models import openai_embedder
from app.models.guarded import Embedder
from app.models.openai import Endpoint
from app.models.openai_embedder import OpenAIEmbedder
from tests.fake_llm import FakeLLM, Reply

TEXTS = [f"text {n}" for n in range(100)]
PASSING = [Reply(status=status) for status in (408, 409, 425, 429, 500, 502, 503, 504)]
PASSING += [Reply(status=0), Reply("<html>Bad Gateway</html>", status=502), Reply("loading model", status=503)]


@pytest.fixture
async def embedder(llm: FakeLLM, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Embedder]:
    """One that waits for a moment where it would wait for half a second."""
    for name in ("OF_RUN", "OF_QUESTION"):
        patience: Patience = getattr(openai_embedder, name)
        quick = Patience(patience.attempts, 0.001, patience.longest, patience.left)
        monkeypatch.setattr(openai_embedder, name, quick)
    async with aclosing(OpenAIEmbedder(Endpoint(llm.url, timeout=60), "e")) as opened:
        yield Embedder(opened, 60)


@pytest.mark.parametrize("failure", PASSING, ids=lambda reply: f"{reply.status} {reply.text[:8]}")
async def test_what_passes_is_tried_again(llm: FakeLLM, embedder: Embedder, failure: Reply) -> None:
    """Three times in a run, once for a question."""
    llm.failures = [failure] * 3
    assert await embedder.embed_passages(["alpha"]) == [llm._vector("alpha")]
    assert llm.batches == [1] * 4
    llm.failures = [failure]
    assert await embedder.embed_queries(["beta"]) == [llm._vector("beta")]
    assert llm.batches == [1] * 6


async def test_a_server_that_keeps_failing_ends_the_run_and_a_question_sooner(llm: FakeLLM, embedder: Embedder) -> None:
    llm.embedding_status = 503
    with pytest.raises(ModelUnavailable, match="503"):
        await embedder.embed_passages(["alpha"])
    assert len(llm.embedded) == 4
    with pytest.raises(ModelUnavailable, match="503"):
        await embedder.embed_queries(["alpha"])
    assert len(llm.embedded) == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_other_refusals_are_errors_at_once(llm: FakeLLM, embedder: Embedder, status: int) -> None:
    """But for a second form of vectors, which a server may lack."""
    llm.embedding_status = status
    with pytest.raises(ModelError, match=str(status)):
        await embedder.embed_passages(["alpha"])
    assert len(llm.embedded) == (2 if status == 400 else 1)


@pytest.mark.parametrize("status", [429, 503])
async def test_the_wait_is_that_which_the_server_asks_for(llm: FakeLLM, embedder: Embedder, status: int) -> None:
    """No question waits for long: words find pages then."""
    llm.failures = [Reply(status=status, headers={"Retry-After": "0.3"})]
    began = time.monotonic()
    assert len(await embedder.embed_passages(["alpha"])) == 1
    assert time.monotonic() - began > 0.29
    llm.failures = [Reply(status=status, headers={"Retry-After": "60"})]
    with pytest.raises(ModelRateLimited if status == 429 else ModelUnavailable) as error:
        await embedder.embed_queries(["alpha"])
    assert error.value.retry_after == 60


@pytest.mark.parametrize(
    ("most", "status", "text", "size"),
    [
        (10, 400, "Value error, batch size is invalid, it should not be larger than 10.: input.contents", 10),
        (8, 422, '{"message": "batch size 100 > maximum allowed batch size 8", "code": 422}', 8),
        (16, 413, '{"code": 20042, "message": "input batch size 100 > maximum allowed batch size 16"}', 16),
        (64, 400, "Too many inputs in request, split into more batches.", 50),
        (30, 413, "<html>413 Request Entity Too Large</html>", 25),
        (5, 422, "at most 5", 3),
    ],
)
async def test_a_server_that_takes_few_texts_gets_few(
    llm: FakeLLM, embedder: Embedder, most: int, status: int, text: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As many as its refusal names, or half of what it refused; from then on it isn't asked for more, which is logged."""
    llm.most_texts, llm.too_many = most, Reply(text, status=status)
    for _ in range(2):
        assert await embedder.embed_passages(TEXTS) == [llm._vector(text) for text in TEXTS]
    assert max(len(call) for call in llm.embedded) == size
    refused = len([batch for batch in llm.batches if batch > most])
    await embedder.embed_passages(TEXTS)
    assert len([batch for batch in llm.batches if batch > most]) == refused
    assert f"texts={size}" in caplog.text
    assert caplog.text.count("takes fewer texts") < 7


async def test_a_text_that_is_too_long_is_named_and_makes_no_batch_small(llm: FakeLLM, embedder: Embedder) -> None:
    """The error says what to do."""
    await embedder.embed_passages(TEXTS)
    llm.most_texts, llm.too_many = 0, Reply("inputs must have less than 128 tokens. Given: 300", status=413)
    with pytest.raises(ModelError, match=r"text of 6 characters alone.*DOCS_TUNING__EMBEDDING_MAX_CHARS"):
        await embedder.embed_passages(TEXTS)
    llm.most_texts = 1000
    llm.batches.clear()
    await embedder.embed_passages(TEXTS)
    assert llm.batches == [100]
