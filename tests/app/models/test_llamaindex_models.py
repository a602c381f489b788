"""One LlamaIndex LLM class and one embedding class, for real, against a server with scripted answers."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable, SettingsError
from app.core.settings import Settings
from app.core.turn import Done, Message, Reasoning, Text, Usage
from app.models import Model, open_embedder, open_model
from app.models.protocols import CallOptions
from tests.fake_llm import FakeLLM, Reply

pytest.importorskip("llama_index.llms.openai_like", reason="needs the extra llamaindex", exc_type=ImportError)

QUESTION = [Message("system", "Be brief."), Message("user", "How much?")]


def settings(url: str) -> Settings:
    common = {"api_base": url, "api_key": "k", "max_retries": 0, "timeout": 5}
    return Settings.load(
        llm_class="llama_index.llms.openai_like:OpenAILike",
        llm_args={**common, "model": "m", "is_chat_model": True, "context_window": 8000},
        embedding_model="",
        embedding_class="llama_index.embeddings.openai_like:OpenAILikeEmbedding",
        embedding_args={**common, "model_name": "e"},
    )


async def test_an_llm_class_completes_and_streams(llm: FakeLLM) -> None:
    """Text, thinking and options pass through LlamaIndex as through our own client."""
    model = open_model(settings(llm.url))
    assert model is not None
    llm.reply = lambda _: Reply("<think>hm</think>Eight GB.")
    done = await model.complete(QUESTION, CallOptions(temperature=0.3, max_tokens=5, timeout=60))
    assert (done.text, done.usage) == ("Eight GB.", Usage(11, 7))
    assert (llm.calls[0]["temperature"], llm.calls[0]["max_tokens"]) == (0.3, 5)
    events = [event async for event in model.stream(QUESTION, CallOptions(timeout=60))]
    assert "".join(e.text for e in events if isinstance(e, Text)).strip() == "Eight GB."
    assert "".join(e.text for e in events if isinstance(e, Reasoning)) == "hm"
    assert events[-1] == Done("stop")
    await model.close()


async def test_an_embedding_class_embeds(llm: FakeLLM) -> None:
    """Vectors come in the order of the texts, their length is learnt once."""
    embedder = open_embedder(settings(llm.url))
    assert [len(v) for v in await embedder.embed_passages(["a", "b"])] == [8, 8]
    assert [list(v) for v in await embedder.embed_queries(["a"])] == [pytest.approx(llm._vector("a"))]
    assert await embedder.dimension() == 8
    assert embedder.name == "OpenAILikeEmbedding/e"
    await embedder.close()


async def test_provider_errors_become_ours(llm: FakeLLM) -> None:
    """Whatever the provider raises is a ModelError that names the model."""
    model, embedder = open_model(settings(llm.url)), open_embedder(settings(llm.url))
    assert model is not None
    llm.reply = lambda _: Reply("no", status=500)
    llm.embedding_status = 500
    with pytest.raises(ModelUnavailable, match="m failed"):
        await model.complete(QUESTION, CallOptions(timeout=60))
    for status, kind in ((429, ModelRateLimited), (400, ModelError), (504, ModelTimeout)):
        llm.reply = lambda _, status=status: Reply("no", status=status)
        with pytest.raises(ModelError, match="m failed") as raised:
            await model.complete(QUESTION, CallOptions(timeout=60))
        assert raised.type is kind
    with pytest.raises(ModelError, match="m failed"):
        [event async for event in model.stream(QUESTION, CallOptions(timeout=60))]
    with pytest.raises(ModelError, match="failed"):
        await embedder.embed_queries(["a"])
    await model.close()
    await embedder.close()


async def test_a_provider_that_cannot_be_reached_or_stalls_in_mid_answer_is_named(llm: FakeLLM) -> None:
    """As with our own client: the service then stops asking for a while, and waits no longer than the timeout."""
    model = open_model(settings("http://127.0.0.1:9/v1"))
    assert model is not None
    with pytest.raises(ModelUnavailable):
        await model.complete(QUESTION, CallOptions(timeout=60))
    await model.close()
    llm.reply = lambda _: Reply("Eight", repeated=": ping\n\n", piece_delay=0.01)
    stalls = open_model(settings(llm.url))
    assert stalls is not None
    said = []
    with pytest.raises(ModelTimeout, match="said nothing new"):
        async for event in stalls.stream(QUESTION, CallOptions(timeout=2)):  # enough for the first word
            said.append(event)
    assert said == [Text("Eight ")]
    await stalls.close()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no.such:Class", "Install the package"),
        ("json:Nothing", "has no class"),
        ("fractions:Fraction", "is no BaseLLM"),
        ("llama_index.core.llms:MockLLM", "has no argument nonsense. Its arguments: .*max_tokens"),
    ],
)
def test_a_class_that_cannot_be_made_is_a_settings_error(path: str, says: str) -> None:
    """The message names the setting and what to do."""
    with pytest.raises(SettingsError, match=f"DOCS_LLM_CLASS={path}.*{says}"):
        open_model(Settings.load(llm_class=path, llm_args={"nonsense": 1}))


class InProcess(CustomLLM):
    """A model in this process: it blocks its thread between the words, and for good behind the last one if it `stalls`."""

    stalls: bool = False

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="in-process")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        STOPPED.wait(30 if self.stalls else 0)
        return CompletionResponse(text="Eight GB.")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Iterator[CompletionResponse]:
        for word in ("Eight ", "GB."):
            yield CompletionResponse(text=word, delta=word)
            STOPPED.wait(0.02)
        STOPPED.wait(30 if self.stalls else 0)


STOPPED = threading.Event()


async def test_a_model_in_this_process_blocks_nobody_and_ends_where_it_stalls() -> None:
    """LlamaIndex would run such a class in the event loop, where no timeout could end it and all other answers wait."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    beside = asyncio.create_task(others())
    model = Model(InProcess())
    events = [event async for event in model.stream(QUESTION, CallOptions(timeout=60))]
    assert events == [Text("Eight "), Text("GB."), Done("stop")]
    assert (await model.complete(QUESTION, CallOptions(timeout=60))).text == "Eight GB."
    stalls, said = Model(InProcess(stalls=True)), []
    with pytest.raises(ModelTimeout, match=r"in-process said nothing new for 0\.2 s"):
        async for event in stalls.stream(QUESTION, CallOptions(timeout=0.2)):
            said.append(event)
    with pytest.raises(ModelTimeout, match=r"in-process did not answer within 0\.2 s"):
        await stalls.complete(QUESTION, CallOptions(timeout=0.2))
    assert said == events[:2]
    assert turns > 50
    beside.cancel()
    STOPPED.set()
