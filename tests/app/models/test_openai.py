"""The OpenAI-compatible client: what it sends, what it reads, and a named error for every way to fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from llama_index.core.llms import ChatMessage

from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable
from app.core.turn import Done, Message, Reasoning, Text, Usage
from app.models import Model, openai_chat
from app.models.guarded import Embedder
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.openai_embedder import OpenAIEmbedder
from app.models.protocols import CallOptions
from tests.fake_llm import FakeLLM, Reply

QUESTION = [Message("user", "How much memory?")]


@pytest.fixture
async def client(llm: FakeLLM) -> AsyncIterator[OpenAIModel]:
    async with aclosing(
        OpenAIModel(Endpoint(llm.url, "secret", timeout=60), "m", {"top_k": 3, "seed": None})
    ) as opened:
        yield opened


@pytest.fixture
def model(client: OpenAIModel) -> Model:
    return Model(client)


async def test_complete_returns_text_usage_and_sends_what_was_asked(llm: FakeLLM, model: Model) -> None:
    """Options and extra body reach the server; what is None does not."""
    done = await model.complete(QUESTION, CallOptions(temperature=0.2, max_tokens=9, stop=("x",), seed=1))
    assert (done.text, done.usage) == ("The answer [1].", Usage(11, 7))
    (sent,) = llm.calls
    assert (sent.pop("model"), sent.pop("messages")) == ("m", [{"role": "user", "content": "How much memory?"}])
    assert sent == {"temperature": 0.2, "max_tokens": 9, "stop": ["x"], "top_k": 3}


async def test_stream_yields_text_thinking_usage_and_the_end(llm: FakeLLM, model: Model) -> None:
    """Thinking comes apart from the answer, both as its own field and as tags."""
    llm.reply = lambda _: Reply("<think>so so</think>Take 8 GB.", reasoning="hm", finish="length")
    events = [event async for event in model.stream(QUESTION, CallOptions())]
    assert "".join(e.text for e in events if isinstance(e, Text)) == "Take 8 GB. "
    assert "".join(e.text for e in events if isinstance(e, Reasoning)) == "hmso so"
    assert Usage(11, 4) in events
    assert events[-1] == Done("length")


async def test_a_tag_that_an_answer_quotes_ends_no_thinking(llm: FakeLLM, model: Model) -> None:
    """Only the first one does; and what the extra body has as None reaches the server in neither form."""
    llm.reply = lambda _: Reply("<think>hm</think>Write `</think>` at its end.")
    assert (await model.complete(QUESTION, CallOptions())).text == "Write `</think>` at its end."
    events = [event async for event in model.stream(QUESTION, CallOptions())]
    assert "".join(e.text for e in events if isinstance(e, Text)).strip() == "Write `</think>` at its end."
    assert not [body for body in llm.calls if None in body.values()]


async def test_pieces_of_a_text_that_runs_are_passed_on_together(llm: FakeLLM, model: Model) -> None:
    """A fast model's pieces cost the service once in 40 ms, not once each."""
    words = " ".join(f"word{n}" for n in range(100))
    llm.reply = lambda _: Reply(words, piece_delay=0.005)
    texts = [event.text async for event in model.stream(QUESTION, CallOptions()) if isinstance(event, Text)]
    assert "".join(texts).strip() == words
    assert len(texts) < 60


async def test_many_streams_pass_on_longer_pieces(llm: FakeLLM, client: OpenAIModel, monkeypatch) -> None:
    """The first ones of each are passed on at once all the same, and after the end nothing is left open."""
    words = " ".join(f"word{n}" for n in range(100))
    llm.reply = lambda _: Reply(words, piece_delay=0.005)

    async def batches() -> int:
        said = [one async for one in await client.astream_chat([ChatMessage("How much memory?")])]
        assert "".join(one.delta for one in said).strip() == said[-1].message.content.strip() == words
        return len(said)

    alone = await batches()
    monkeypatch.setattr(openai_chat, "MANY", 2)
    assert max(await asyncio.gather(*(batches() for _ in range(8)))) < alone
    assert client._open == 0


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply("overloaded", status=500), ModelUnavailable),
        (Reply("bad request", status=400), ModelError),
        (Reply("slow down", status=429, headers={"Retry-After": "7"}), ModelRateLimited),
        (Reply("gateway", status=504), ModelTimeout),
        (Reply(delay=60), ModelTimeout),
    ],
)
async def test_every_refusal_has_a_name(llm: FakeLLM, client: OpenAIModel, reply: Reply, error: type) -> None:
    """Statuses and silence become our errors, whole and streamed, and name the address, or the model."""
    llm.reply = lambda _: reply
    options = CallOptions(timeout=0.1 if reply.delay else None)
    with pytest.raises(error, match=llm.url) as whole:
        await Model(client).complete(QUESTION, options)
    with pytest.raises(error, match="m said nothing new" if reply.delay else llm.url):
        [event async for event in Model(client).stream(QUESTION, options)]
    if isinstance(whole.value, ModelRateLimited):
        assert whole.value.retry_after == 7


@pytest.mark.parametrize(
    "reply",
    [
        Reply("one two three", dies_after=2),
        Reply("one two", finish=None),
        Reply("one two", raw='data: {"error": {"message": "out of memory"}}\n\n'),
        Reply("one two", raw="data: {broken\n\n"),
        Reply("one two", raw="data: 7\n\n"),
    ],
)
async def test_a_stream_that_breaks_off_fails_after_its_text(llm: FakeLLM, model: Model, reply: Reply) -> None:
    """What was said is passed on, then the failure: never a silent end."""
    llm.reply = lambda _: reply
    seen = []
    with pytest.raises(ModelError):
        async for event in model.stream(QUESTION, CallOptions()):
            seen.append(event)
    assert "one" in "".join(e.text for e in seen if isinstance(e, Text))


async def test_pieces_that_arrive_together_travel_together(llm: FakeLLM, model: Model) -> None:
    """One read of several chunks is one piece of the answer; what comes later is another."""
    chunk = 'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\n\n'
    llm.reply = lambda _: Reply("", raw=chunk % "one " + chunk % "two " + chunk % "three")
    events = [event async for event in model.stream(QUESTION, CallOptions())]
    assert [e.text for e in events if isinstance(e, Text)] == ["one two three"]


async def test_the_environments_proxy_is_used(llm: FakeLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY carries the call, NO_PROXY exempts a host from it."""
    monkeypatch.setenv("http_proxy", llm.url.removesuffix("/v1"))
    behind = Model(OpenAIModel(Endpoint("http://model.invalid/v1", timeout=1), "m"))
    assert (await behind.complete(QUESTION, CallOptions())).text == "The answer [1]."
    await behind.close()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    beside = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    assert (await beside.complete(QUESTION, CallOptions())).text == "The answer [1]."
    await beside.close()


async def test_embeddings_come_in_the_order_of_the_texts_with_prefixes(llm: FakeLLM) -> None:
    """The server's index decides the order; prefixes and the cut are the model's settings."""
    prefixes = ("query: ", "passage: ")
    opened = OpenAIEmbedder(Endpoint(llm.url, timeout=60), "e", prefixes=prefixes, max_chars=12)
    embedder = Embedder(opened, 60)
    async with aclosing(opened):
        vectors = await embedder.embed_passages(["alpha", "beta beta beta"])
        assert vectors == [llm._vector("passage: alp"), llm._vector("passage: bet")]
        await embedder.embed_queries(["alpha"])
        assert llm.embedded[-1] == ["query: alpha"]
        assert await embedder.dimension() == 8


@pytest.mark.parametrize("forms", [{"float", "base64"}, {"float"}])
async def test_a_run_takes_vectors_in_the_form_that_the_server_knows(llm: FakeLLM, forms: set[str]) -> None:
    """Base64 takes a quarter of the bytes of numbers; a server that refuses it is asked for numbers from then on."""
    llm.forms = forms
    opened = OpenAIEmbedder(Endpoint(llm.url, timeout=60), "e")
    async with aclosing(opened):
        for _ in range(2):
            vectors = await Embedder(opened, 60).embed_passages(["alpha", "beta"])
            assert [list(map(float, vector)) for vector in vectors] == [llm._vector("alpha"), llm._vector("beta")]
    assert len(llm.embedded) == (2 if "base64" in forms else 3)


async def test_embedding_failures_are_named(llm: FakeLLM) -> None:
    """A refusing server and a wrong answer are ModelErrors."""
    opened = OpenAIEmbedder(Endpoint(llm.url, timeout=60), "e")
    embedder = Embedder(opened, 60)
    async with aclosing(opened):
        llm.embedding_status = 503
        with pytest.raises(ModelUnavailable, match="503"):
            await embedder.embed_queries(["a"])
        llm.embedding_status, llm.dimension = 200, 0
        with pytest.raises(ModelError, match="vectors of lengths"):
            await embedder.embed_queries(["a"])


async def test_llamaindex_calls_it_like_any_llm(llm: FakeLLM, client: OpenAIModel) -> None:
    """Roles and options arrive, reasoning stays out of answers; whole and streamed, awaited and from a thread that blocks."""
    llm.reply = lambda _: Reply("<think>hm</think>Take 8 GB.", reasoning="so")
    asked = [ChatMessage("Be brief.", role="system"), ChatMessage("How much?")]
    whole = await client.achat(asked, temperature=0.5)
    assert (whole.message.content, whole.raw["usage"]["prompt_tokens"]) == ("Take 8 GB.", 11)
    assert [message["role"] for message in llm.calls[0]["messages"]] == ["system", "user"]
    assert llm.calls[0]["temperature"] == 0.5
    assert (await client.acomplete("How much?")).text == "Take 8 GB."
    streams = [
        [one async for one in await stream] for stream in (client.astream_chat(asked), client.astream_complete("?"))
    ]
    streams += await asyncio.to_thread(lambda: [list(client.stream_chat(asked)), list(client.stream_complete("?"))])
    for pieces in streams:
        assert "".join(piece.delta for piece in pieces).strip() == "Take 8 GB."
        assert str(pieces[-1]).removeprefix("assistant: ").strip() == "Take 8 GB."
    assert (await asyncio.to_thread(client.chat, asked)).message.content == "Take 8 GB."
    assert (await asyncio.to_thread(client.complete, "?")).text == "Take 8 GB."
    assert client.metadata.model_name == "m"
