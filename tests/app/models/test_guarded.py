"""Models and stores of the service: nothing of them is waited for in vain. Every wait here is cut to a fraction of a second."""

import asyncio
from contextlib import aclosing

import pytest
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from app.core import breaker as breaking
from app.core.errors import ModelTimeout, ModelUnavailable, StoreUnavailable
from app.core.gate import Gate
from app.core.turn import Done, Message, Text
from app.core.types import Query
from app.index.guarded import GuardedStore
from app.models.guarded import THINKING_FACTOR, Embedder, Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.postprocessor import Postprocessor
from app.models.protocols import CallOptions
from tests.app.pipeline.turns import hit
from tests.fake_llm import Reply, fake_llm
from tests.scripted_llm import Piece, ScriptedLLM
from tests.virtual_time import in_virtual_time

QUESTION = [Message("user", "How much?")]
QUICK = CallOptions(timeout=0.15)
SILENT = {
    "pings": ": ping\n\n",
    "chunks without choices": 'data: {"choices": []}\n\n',
    "empty deltas": 'data: {"choices": [{"index": 0, "delta": {"content": ""}}]}\n\n',
    "blanks": 'data: {"choices": [{"index": 0, "delta": {"content": " \\n"}}]}\n\n',
}


class Endless:
    """A model whose server keeps sending something, as a real one did over HTTP."""

    def __init__(self, *events, pause=0.01):
        self.events, self.pause, self.closed = events, pause, False

    async def says(self, messages, options):
        try:
            for event in self.events[:-1]:
                yield event
            while True:
                await asyncio.sleep(self.pause)
                if self.events:
                    yield self.events[-1]
        finally:
            self.closed = True

    @property
    def model(self):
        return Model(ScriptedLLM(self.says, "endless"))


async def until_it_stalls(model, options=QUICK):
    clock, heard = asyncio.get_running_loop().time, []
    began = clock()
    with pytest.raises(ModelTimeout, match="said nothing new for"):
        async for event in model.stream(QUESTION, options):
            heard.append(event)
    return heard, clock() - began


@pytest.mark.parametrize("form", SILENT)
async def test_what_is_no_text_does_not_outwait_the_timeout(form):
    """A real server over HTTP that sends such a piece again and again."""
    async with fake_llm() as llm:
        llm.reply = lambda _: Reply("", repeated=SILENT[form], piece_delay=0.01)
        model = Model(OpenAIModel(Endpoint(llm.url, timeout=QUICK.timeout), "m"))
        try:
            _, took = await until_it_stalls(model)
        finally:
            await model.close()
    assert took < 30


@in_virtual_time
async def test_a_model_that_stalls_in_mid_answer_is_ended_and_closed():
    endless = Endless(Piece("A"), Piece(" "))
    heard, _ = await until_it_stalls(endless.model)
    assert heard[0] == Text("A")
    assert endless.closed


@in_virtual_time
async def test_thinking_counts_as_text_for_some_time_only():
    heard, took = await until_it_stalls(Endless(Piece(reasoning="hm")).model)
    assert len(heard) > 1
    assert took > THINKING_FACTOR * QUICK.timeout


@in_virtual_time
async def test_text_that_keeps_coming_and_a_slow_reader_are_no_stall():
    async def slow(messages, options):
        for _ in range(4):
            await asyncio.sleep(0.08)
            yield "a"
        yield Piece(finish="stop")

    heard = []
    async for event in Model(ScriptedLLM(slow)).stream(QUESTION, QUICK):
        heard.append(event)
        if len(heard) == 2:
            await asyncio.sleep(0.4)  # the reader's own time
    assert heard[-1] == Done()


async def test_a_model_that_keeps_failing_is_not_asked_and_short_calls_are_counted_apart(monkeypatch):
    async with fake_llm() as llm:
        model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
        llm.reply = lambda _: Reply("down", status=503)
        for _ in range(breaking.FAILURES + 3):
            with pytest.raises(ModelUnavailable):
                await model.complete(QUESTION, CallOptions())
        assert len(llm.calls) == breaking.FAILURES
        llm.reply = lambda _: Reply()
        assert [event async for event in model.stream(QUESTION, CallOptions())][-1] == Done()
        monkeypatch.setattr(breaking, "PAUSE", 0.0)
        model.breakers[0]._until = 0.0
        assert (await model.complete(QUESTION, CallOptions())).text == "The answer [1]."
        assert not any(breaker.state for breaker in model.breakers)
        await model.close()


@in_virtual_time
async def test_streams_that_break_off_or_stall_are_not_begun_any_more():
    model = Endless(pause=60).model
    for _ in range(breaking.FAILURES):
        await until_it_stalls(model, CallOptions(timeout=0.01))
    with pytest.raises(ModelUnavailable, match=r"endless is skipped .* said nothing new for 0.01 s"):
        await anext(model.stream(QUESTION, QUICK))


@in_virtual_time
async def test_an_embedder_that_hangs_ends_in_time_and_is_then_not_asked():
    asked = []

    class Hangs(BaseEmbedding):
        index_name: str = "e"

        async def _aget_query_embedding(self, query):
            asked.append(query)
            await asyncio.sleep(60)

        _get_query_embedding = _get_text_embedding = _aget_query_embedding

    hangs = Hangs()
    embedder = Embedder(hangs, 0.01)
    for _ in range(breaking.FAILURES):
        with pytest.raises(ModelTimeout, match=r"e did not answer within 0.01 s"):
            await embedder.embed_queries(["a"])
    with pytest.raises(ModelUnavailable):
        await embedder.embed_queries(["a"])
    assert len(asked) == breaking.FAILURES


async def test_a_store_that_keeps_failing_is_not_asked_although_its_pointer_is_remembered():
    class Remembers:
        info, facts, asked = None, {}, 0

        async def live(self):
            return self

        async def search(self, query):
            self.asked += 1
            raise StoreUnavailable("hangs")

    store = GuardedStore(remembers := Remembers(), "the store")
    for _ in range(breaking.FAILURES):
        generation = await store.live()
        with pytest.raises(StoreUnavailable, match=r"^hangs"):
            await generation.search(Query(()))
    with pytest.raises(StoreUnavailable, match=r"the store is skipped for some seconds, failing since .*: hangs"):
        await store.live()
    assert remembers.asked == breaking.FAILURES


async def test_calls_to_servers_take_no_place_and_a_stream_gives_its_place_back():
    gate = Gate(10, at_once=1)
    seen = []

    async def looks(messages, options):
        seen.append(gate.working)
        yield Piece("a", finish="stop")

    class Embeds(BaseEmbedding):
        index_name: str = "m"

        async def _aget_query_embedding(self, query):
            seen.append(gate.working)
            return [1.0]

        _get_query_embedding = _get_text_embedding = _aget_query_embedding

    class Ranks(BaseNodePostprocessor):
        async def _apostprocess_nodes(self, nodes, query_bundle=None):
            seen.append(gate.working)
            return nodes

        _postprocess_nodes = _apostprocess_nodes

    model = Model(ScriptedLLM(looks))
    async with gate.place():
        await model.complete(QUESTION, QUICK)
        await Embedder(Embeds(), 1).embed_queries(["a"])
        await Postprocessor(Ranks(), "m", "").chosen("a", [hit(1)], "0..1", 60)
        assert gate.working == 1
        async for _ in model.stream(QUESTION, QUICK):
            pass
        assert gate.working == 0
    assert seen == [0, 0, 0, 0]


@in_virtual_time
async def test_the_speed_of_reading_is_that_of_the_last_long_prompts():
    """A call that ran out of time counts, a short prompt doesn't."""
    long = [Message("user", "x" * 8000)]
    patient = CallOptions(timeout=60)
    quick, slow = (Endless(Piece("a"), pause=pause).model for pause in (0.1, 40))
    for model in (quick, slow):
        await first_of(model, QUESTION, patient)
        assert model.reading.characters_in(20) == float("inf")
        await first_of(model, long, patient)
    assert quick.reading.characters_in(20) > 100_000
    assert slow.reading.characters_in(20) == pytest.approx(4000, rel=0.01)
    silent = Endless(pause=100).model
    with pytest.raises(ModelTimeout):
        await first_of(silent, long, patient)
    assert silent.reading.characters_in(20) == pytest.approx(8000 / 3, rel=0.01)


async def first_of(model, messages, options):
    async with aclosing(model.stream(messages, options)) as events:
        await anext(events)
