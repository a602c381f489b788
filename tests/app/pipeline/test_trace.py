"""The trace: times, prompts, candidates, what was dropped and why; nothing of it where nobody asks."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.settings import Settings
from app.core.trace import Trace, TraceCandidate, TraceStep
from app.core.turn import Done, Failure, Message, Request, Source, Text, Verbatim
from app.core.types import Chunk, Derived, Filters, Page, PlainText, Section
from app.pipeline import trace as tracing
from plugins.steps.choices import Rerank
from tests.app.routes.indexed import helped
from tests.docs_assistant.cli.stored_index import SITE, Index, page_with, stored
from tests.fake_llm import FakeLLM, Reply
from tests.plugins.steps.test_choices import Server, server  # noqa: F401  # a fixture

QUESTION = "How do I resize a volume?"
RESIZE = "To resize a volume, detach the volume from its server first."
SAID = "You detach it from its server first, and then the volume can be resized [1]."


@pytest.fixture(params=["embedded"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    with stored(request.param, tmp_path) as made:
        made.publish(page_with("/volumes", "Introduction.", RESIZE))
        yield made


@pytest.fixture
async def assistants(index: Index, llm: FakeLLM, tmp_path: Path) -> AsyncIterator[Assistants]:
    async with service(index, llm, assistants=helped(tmp_path)) as made:
        yield made


@asynccontextmanager
async def service(index: Index, llm: FakeLLM, **settings: Any) -> AsyncIterator[Assistants]:
    models = {"llm_url": llm.url, "llm_model": "m", "helper_timeout": 1}
    async with opened(Settings.load(None, store=index.address, **models, **settings)) as made:
        yield made


def asked(question: str = QUESTION, *, trace: bool = True, **fields: Any) -> Request:
    return Request((Message("user", question),), id="t1", trace=trace, **fields)


async def end(assistants: Assistants, request: Request) -> Done | Failure:
    last = [event async for event in assistants.get("").answer(request)][-1]
    assert isinstance(last, Done | Failure)
    return last


async def traced(assistants: Assistants, request: Request | None = None) -> Trace:
    trace = (await end(assistants, request or asked())).trace
    assert trace is not None
    assert json.loads(orjson.dumps(trace)) == json.loads(json.dumps(asdict(trace)))
    assert not trace.problem
    return trace


def by_name(trace: Trace) -> Mapping[str, TraceStep]:
    return {step.step: step for step in trace.steps}


def rows(trace: Trace) -> Mapping[str, TraceCandidate]:
    return {row.chunk: row for row in trace.candidates}


def reasons(trace: Trace) -> Mapping[str, str]:
    return {row.chunk: row.dropped.reason for row in trace.candidates if row.dropped}


def in_plain(path: str, text: str) -> tuple[Page, tuple[Chunk, ...]]:
    """A page of one block whose text passages are cut from."""
    page, (chunk,) = page_with(path, text)
    plain = PlainText(text, (0, len(text)), (Section(0, (page.title,)),), {chunk.id: (0, len(text))})
    return replace(page, derived=Derived(plain=plain)), (chunk,)


def seven_parts() -> Iterator[tuple[Page, tuple[Chunk, ...]]]:
    """Pages that all say it, one longer than the other."""
    return (page_with(f"/p{n}", f"Part {n}: resize a volume, or detach it." * n) for n in range(1, 8))


def with_steps(folder: Path, steps: str) -> str:
    """A file with an assistant of these steps."""
    own = folder / "assistants.toml"
    own.write_text(f'[[assistant]]\nid = "a"\nnames = {{en = "A"}}\nsteps = [{steps}]\n')
    return str(own)


def helpers(said: str = SAID) -> Callable[[dict[str, Any]], Reply]:
    return lambda body: Reply(said, delay=0.05) if body.get("stream") else Reply("en: volume, resize\ncs: svazek")


def without_keywords(body: dict[str, Any]) -> Reply:
    return Reply(SAID) if body.get("stream") else Reply("down", status=500)


async def test_each_step_has_its_times_and_the_calls_to_models_inside_it(assistants: Assistants, llm: FakeLLM) -> None:
    """In milliseconds from the beginning of the request; steps of one group overlap, the others follow each other."""
    llm.reply = helpers()
    trace = await traced(assistants)
    names = ["detect", "refine", "keywords", "probe", "retrieve", "relevance", "overview", "synthesize", "cite"]
    assert [step.step for step in trace.steps] == names
    steps = by_name(trace)
    assert steps["refine"].group == steps["keywords"].group == steps["probe"].group
    assert steps["retrieve"].group == steps["probe"].group + 1
    assert max(steps[name].start for name in ("refine", "keywords", "probe")) < steps["keywords"].end
    for before, after in (("detect", "refine"), ("keywords", "retrieve"), ("relevance", "synthesize")):
        assert steps[before].end <= steps[after].start
    for step in trace.steps:
        assert 0 <= step.start <= step.end <= trace.ms
        for call in step.calls:
            assert step.start <= call.start <= call.end <= step.end
    (call,) = steps["synthesize"].calls
    assert trace.first_text is not None
    assert call.first_text is not None
    assert call.start + 50 <= call.first_text <= trace.first_text <= trace.ms
    (embedded,) = steps["probe"].calls
    assert (embedded.kind, embedded.texts, embedded.reply) == ("embedding", [QUESTION], "1 vectors of 128 numbers")
    assert steps["detect"].output["asked"]["language"] == "en"
    assert steps["keywords"].output["keywords"] == {"en": "volume, resize", "cs": "svazek"}
    assert steps["keywords"].input["asked"]["text"] == QUESTION
    assert asdict(trace.end) == asdict(tracing.TraceEnd("stop", verbatim=Verbatim(1, 0)))


async def test_a_search_that_is_sure_asks_nobody_for_help(index: Index, llm: FakeLLM) -> None:
    """By default, the question is searched first; what the page says in other words gets keywords."""
    async with service(index, llm) as assistants:
        for question, asked_for in ((QUESTION, 0), ("How can my storage grow on a Tuesday?", 1)):
            llm.reply = helpers()
            trace = await traced(assistants, asked(question))
            steps = by_name(trace)
            assert list(steps)[:5] == ["detect", "carry_over", "first_search", "refine", "keywords"]
            assert steps["first_search"].end <= steps["keywords"].start
            assert steps["first_search"].output["sure"] is not bool(asked_for)
            assert len(steps["keywords"].calls) == asked_for
            assert trace.searches[0].step == "first_search"


async def test_prompts_are_as_they_were_sent_and_replies_as_they_came(assistants: Assistants, llm: FakeLLM) -> None:
    """Every message of every call, untouched by what is cut or removed later."""
    llm.reply = helpers(f"{SAID} ![p](https://evil.io/p.png)")
    trace = await traced(assistants)
    calls = [call for step in trace.steps for call in step.calls if call.kind == "chat"]
    sent = sorted(json.dumps(body["messages"]) for body in llm.calls)
    assert sorted(json.dumps([asdict(message) for message in call.messages]) for call in calls) == sent
    assert len(calls) == 3
    (written,) = by_name(trace)["synthesize"].calls
    assert RESIZE in written.messages[0].content
    assert "evil.io/p.png" in written.reply
    assert (written.prompt_tokens, written.completion_tokens, written.temperature) == (11, 16, 0.1)
    (keywords,) = by_name(trace)["keywords"].calls
    assert (keywords.reply, keywords.prompt_tokens, keywords.error) == ("en: volume, resize\ncs: svazek", 11, "")
    (passage,) = trace.passages
    assert passage.text in written.messages[0].content
    assert passage.text.startswith("[1] docs.example.org")
    assert passage.chunks == [trace.candidates[0].chunk]


@pytest.mark.parametrize("index", ["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)], indirect=True)
async def test_candidates_have_their_place_in_both_legs_and_what_each_adds(
    index: Index, llm: FakeLLM, tmp_path: Path
) -> None:
    """Of both stores: ranks and raw scores of each search and of the fusion, whose parts add up to the fused score."""
    await asyncio.to_thread(index.publish, *seven_parts())
    llm.reply = helpers()
    async with service(index, llm, assistants=helped(tmp_path)) as assistants:
        trace = await traced(assistants)
    assert trace.fusion is not None
    assert (trace.fusion.top_k, trace.fusion.per_page, trace.fusion.fusion) == (5, 2, "weighted")
    assert trace.fusion.words_weight_used + trace.fusion.vector_weight_used == pytest.approx(1, abs=1e-3)
    assert [search.step for search in trace.searches] == ["probe", "retrieve"]
    assert [(text["language"], text["text"]) for text in trace.searches[1].texts][1:] == [
        ("en", "volume, resize"), ("cs", "svazek"),
    ]  # fmt: skip
    assert (trace.searches[0].vector, trace.searches[1].vector) == (True, False)
    for leg in (trace.searches[0].words, trace.searches[0].vectors, trace.searches[1].words):
        assert [place.rank for place in leg] == list(range(1, len(leg) + 1))
        assert [place.score for place in leg] == sorted((place.score for place in leg), reverse=True)
    found = [row for row in trace.candidates if row.fused is not None]
    assert len(found) == 7
    for row in found:
        assert row.words_share + row.vectors_share == pytest.approx(row.fused, abs=2e-4)
        assert row.found_by == ["probe", "retrieve"]
        assert row.words
        assert row.vectors
        assert trace.searches[1].words[row.words.rank - 1] == row.words
        assert trace.searches[0].vectors[row.vectors.rank - 1] == row.vectors
        assert row.title == "A page"
    assert [row.place for row in trace.candidates[:5]] == [1, 2, 3, 4, 5]
    assert list(reasons(trace).values()).count("top_k") == 2
    assert trace.evidence is not None
    assert trace.evidence.enough
    assert trace.evidence.found > trace.evidence.needed == pytest.approx(0.416)


@pytest.mark.plugins
async def test_other_wordings_and_a_hypothetical_answer_have_searches_of_their_own(
    index: Index, llm: FakeLLM, tmp_path: Path
) -> None:
    """Each of the steps that search tells what it searched for; a candidate says which of them found it."""
    own = with_steps(
        tmp_path, '"detect", ["multi_query", "hyde", "probe"], "retrieve", "relevance", "synthesize", "cite"'
    )
    llm.reply = lambda body: Reply(SAID) if body.get("stream") else Reply("Enlarge a disk\nGrow a volume")
    async with service(index, llm, assistants=own) as assistants:
        trace = await traced(assistants)
    assert Counter(search.step for search in trace.searches) == {"multi_query": 2, "hyde": 1, "probe": 1}
    wordings = {text["text"] for search in trace.searches if search.step == "multi_query" for text in search.texts}
    assert wordings == {"Enlarge disk", "Grow volume"}
    hyde = next(search for search in trace.searches if search.step == "hyde")
    assert (hyde.texts, hyde.words, hyde.vector) == ([], [], True)
    assert set(trace.candidates[0].found_by) == {"multi_query", "hyde", "probe"}


async def test_what_the_ranking_drops_says_why(index: Index, llm: FakeLLM) -> None:
    """More of a page than per_page, more than top_k, another version, a translation, another language, and filters."""
    text = "To resize a volume, detach it."
    both = {"translation_set": "https://docs.example.org/t"}
    await asyncio.to_thread(
        index.publish,
        page_with("/many", *(f"Note {n}. {text}" for n in range(4))),
        page_with("/v1/old", f"{text} old"),
        page_with("/v2/old", f"{text} new"),
        page_with("/t", f"{text} translated", **both),
        page_with("/cs/t", "Resize a volume: volume.", language="cs", **both),
        page_with("/cs/svazky", "Resize volume: resize a volume.", language="cs"),
        page_with("/other/more", f"{text} more"),
    )
    llm.reply = without_keywords
    async with service(index, llm, per_page=1, top_k=3, other_language=0.04) as assistants:
        trace = await traced(assistants)
        outside = await traced(assistants, asked(filters=Filters(sections=("/other",))))
    why = {(row.url.removeprefix(SITE), row.dropped.reason): row.dropped for row in trace.candidates if row.dropped}
    assert {
        ("/many", "per_page"), ("/v1/old", "version"), ("/cs/t", "translation"), ("/cs/svazky", "language"),
        ("/other/more", "top_k"),
    } <= why.keys()  # fmt: skip
    assert {dropped.step for (_, reason), dropped in why.items() if reason != "weak"} == {"retrieve"}
    assert "0.04" in why["/cs/svazky", "language"].detail
    assert set(reasons(outside).values()) == {"filters"}
    assert outside.fusion is not None
    assert outside.fusion.filters == {"sections": ("/other/",)}
    assert "sections = /other/" in outside.candidates[-1].dropped.detail  # type: ignore[union-attr]
    assert outside.candidates[0].url.endswith("/other/more")
    assert outside.candidates[0].dropped is None


async def test_what_later_steps_drop_says_which_and_why(index: Index, llm: FakeLLM) -> None:
    """Too little evidence, a weak score, no room among the passages, a text that another passage has, an overview."""
    long = "To resize a volume, detach the volume from its server, and wait. " * 12
    same = "To resize a volume, detach the volume from its server first, then attach it again, and mount it."
    await asyncio.to_thread(
        index.publish,
        in_plain("/a", same), in_plain("/b", same), page_with("/c", long), page_with("/d", f"{long} More."),
        page_with("/e", "A volume of sound."), page_with("/", "Volumes and servers."),
        page_with("/cs/pokryti", "What this documentation covers: volumes.", language="cs"),
    )  # fmt: skip
    llm.reply = without_keywords
    async with service(index, llm, passage_tokens=400, top_k=6) as assistants:
        trace = await traced(assistants)
        nothing = await traced(assistants, asked("How do I bake a volume of bread with Kubernetes yeast?"))
        overview = await traced(assistants, asked("What does this documentation cover?"))
    told = {row.dropped.reason: row.dropped for row in trace.candidates if row.dropped}
    assert {"duplicate", "passage_budget", "weak"} <= told.keys()
    assert (told["weak"].step, told["duplicate"].step) == ("relevance", "synthesize")
    assert nothing.evidence is not None
    assert not nothing.evidence.enough
    assert set(reasons(nothing).values()) <= {"evidence", "top_k", "per_page", "step"}
    assert "evidence" in reasons(nothing).values()
    assert nothing.passages == []
    assert "overview" in reasons(overview).values()
    assert all(row.found_by for row in overview.candidates)


@pytest.mark.plugins
async def test_reranked_candidates_have_their_scores_and_the_dropped_ones_say_so(
    index: Index,
    llm: FakeLLM,
    server: Server,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Also those that only the reranker saw, because the ranking alone would have kept fewer."""
    await asyncio.to_thread(index.publish, *seven_parts())
    server.scores = {6: 0.9, 5: 0.8, 0: 0.1}
    own = with_steps(tmp_path, '"detect", "probe", "retrieve", "rerank", "relevance", "synthesize", "cite"')
    llm.reply = helpers()
    more = {"rerank_url": server.url, "rerank_model": "r", "assistants": own, "top_k": 2}
    async with service(index, llm, **more) as assistants:
        assert any(isinstance(step, Rerank) for group in assistants.get("").plans.answer for step in group)
        server.bodies.clear()
        trace = await traced(assistants)
    assert [row.rerank for row in trace.candidates[:2]] == [0.9, 0.8]
    dropped = [row for row in trace.candidates if row.dropped]
    assert {row.dropped.reason for row in dropped} == {"rerank"}  # type: ignore[union-attr]
    assert sorted(row.rerank or 0 for row in dropped) == [0, 0, 0, 0, 0.1]
    (call,) = by_name(trace)["rerank"].calls
    assert (call.kind, call.texts[0]) == ("rerank", QUESTION)
    assert list(call.texts[1:]) == server.bodies[0]["documents"]


async def test_the_trace_tells_why_each_link_is_there_and_what_was_removed(
    assistants: Assistants, llm: FakeLLM
) -> None:
    """The section is the one that is linked, and an answer that was asked for again is among the removals."""
    czech = "Nejprve je potřeba svazek odpojit od serveru a potom ho můžete zvětšit [1]."
    english = (
        "You detach it from its [server](https://evil.io/a) first [7], and then the volume can be resized [1]."
        " ![p](https://evil.io/p.png)\n\n## Sources\n\n1. [Evil](https://evil.io/s)"
    )
    said = iter([czech, english])
    llm.reply = lambda body: Reply(next(said)) if body.get("stream") else Reply("en: volume, resize")
    events = [event async for event in assistants.get("").answer(asked())]
    written = "".join(event.text for event in events if isinstance(event, Text))
    (source,) = (event for event in events if isinstance(event, Source))
    assert isinstance(events[-1], Done)
    trace = events[-1].trace
    assert trace is not None
    (link,) = trace.links
    assert link.url.endswith("/volumes#part-1")
    assert asdict(replace(link, reason="")) == {
        "number": 1, "passage": 1, "chunk": trace.candidates[0].chunk, "url": source.url, "section": source.section,
        "score": source.score, "reason": "",
    }  # fmt: skip
    assert f"]({link.url})" in written
    assert link.reason == "the passage's only section: resize, volume"
    assert sorted((one.kind, one.text) for one in trace.removed) == [
        ("address", "https://evil.io/a"), ("answer", "Nejprve je potřeba svazek odpojit od serveru a potom "),
        ("citation", "[7]"), ("image", "https://evil.io/p.png"),
        ("source list", "## Sources\n\n1. [Evil](https://evil.io/s)"),
    ]  # fmt: skip
    assert all(one.reason for one in trace.removed)
    assert "evil" not in written
    first, second = by_name(trace)["synthesize"].calls
    assert (first.error, second.error) == ("cancelled", "")
    assert second.messages[-1].content != first.messages[-1].content


async def test_failures_are_in_the_trace(assistants: Assistants, llm: FakeLLM) -> None:
    """Of helpers, of an answer in the wrong language, and of one that broke off."""
    czech = Reply("Nejprve je potřeba svazek odpojit od serveru a potom ho můžete zvětšit [1].")
    llm.reply = lambda body: czech if body.get("stream") else Reply("down", status=500)
    trace = await traced(assistants)
    steps = by_name(trace)
    assert "answered 500" in steps["keywords"].error
    assert "answered 500" in steps["keywords"].calls[0].error
    assert len(steps["synthesize"].calls) == 2
    assert trace.end.language == "wrong"
    llm.reply = lambda _: Reply("You detach it from its server first, and then the rest.", dies_after=9)
    failed = await end(assistants, asked())
    assert isinstance(failed, Failure)
    assert failed.trace is not None
    assert "ModelUnavailable" in failed.trace.end.failure
