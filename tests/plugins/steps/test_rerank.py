"""Reranking: the forms of servers, their scores, and failing parts."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app.assistants.assembly import opened
from app.core.errors import ModelError, ModelRateLimited, ModelUnavailable, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Question, Search
from app.core.types import Boost, Candidate, Legs, Query
from app.index.protocols import TranslationSets
from app.models import open_reranker
from app.models.openai import Endpoint
from app.models.postprocessor import Postprocessor
from app.models.rerank import HttpReranker
from plugins.steps.choices import Rerank
from tests.app.pipeline.turns import SETTINGS, hit, turn

PROMPTS = load_prompts(("cs", "en"))


class Server:
    """A `/rerank` server on a real port that answers with `rows` in either form."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.scores: dict[int, float] = {}
        self.raw: str | None = None
        self.url = ""

    async def rerank(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        status = self.statuses.pop(0) if self.statuses else 200
        if status != 200:
            return web.Response(status=status, headers={"Retry-After": "0"})
        if self.raw is not None:
            return web.Response(text=self.raw)
        count = len(body.get("documents") or body["texts"])
        ranked = sorted(range(count), key=lambda index: -self.scores.get(index, 0.0))
        if "texts" in body:
            return web.json_response([{"index": index, "score": self.scores.get(index, 0.0)} for index in ranked])
        rows = [{"index": index, "relevance_score": self.scores.get(index, 0.0)} for index in ranked]
        if "top_k" in body:  # Voyage refuses top_n
            return web.json_response({"object": "list", "data": rows[: body["top_k"]]})
        return web.json_response({"results": rows[: body["top_n"]]})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    running = Server()
    app = web.Application()
    app.router.add_post("/rerank", running.rerank)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    running.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield running
    await runner.cleanup()


@pytest.fixture
async def reranker(server: Server) -> AsyncIterator[Postprocessor]:
    settings = {"rerank_url": server.url, "rerank_model": "reranker-m"}
    guarded = open_reranker(SETTINGS.model_copy(update=settings))
    assert guarded
    yield guarded
    await guarded.close()


class Chunks:
    """A generation that has eight chunks, in English but for those named."""

    def __init__(self, **languages: str) -> None:
        self.languages = languages

    async def translation_sets(self) -> TranslationSets:
        return TranslationSets()

    async def fetch(self, ids: list[str]) -> list:
        chunks = [hit(int(id_[1:]), f"Text {id_}.").chunk for id_ in ids]
        return [replace(chunk, language=self.languages.get(chunk.id, "en")) for chunk in chunks]


def found() -> Any:
    """A turn whose ranking is c1 to c8, of which two are kept."""
    leg = tuple(Candidate(f"c{n}", f"https://x/{n}", "en", 9.0 - n) for n in range(1, 9))
    query = Query((), limit=2, per_page=2)
    return turn(generation=Chunks(), search=Search(query, Legs(leg)), hits=(hit(1), hit(2)))


async def test_more_candidates_than_are_kept_are_asked_about(server: Server, reranker: Postprocessor) -> None:
    """A passage from below the cut may win; scores are kept with the hits."""
    server.scores = {5: 0.9, 0: 0.4}
    changes = await Rerank(reranker, SETTINGS)(found())
    assert [(h.chunk.id, h.rerank) for h in changes["hits"]] == [("c6", 0.9), ("c1", 0.4)]
    assert server.bodies[0]["model"] == "reranker-m"
    assert server.bodies[0]["query"] == "How much memory can I get?"
    assert len(server.bodies[0]["documents"]) == 8


async def test_of_two_that_answer_alike_the_reader_s_language_comes_first(
    server: Server, reranker: Postprocessor
) -> None:
    """A reranker gives a page and its translation the same; a clearly better page of another language still wins."""
    there = found()
    search = replace(there.search, query=replace(there.search.query, language="cs", other_language=0.8))
    czech = replace(there, generation=Chunks(c7="cs"), asked=Question("q", "cs"), search=search)
    server.scores = {5: 0.9, 6: 0.85}
    changes = await Rerank(reranker, SETTINGS)(czech)
    assert [h.chunk.id for h in changes["hits"]] == ["c7", "c6"]
    server.scores[6] = 0.5
    changes = await Rerank(reranker, SETTINGS)(czech)
    assert [(h.chunk.id, h.rerank) for h in changes["hits"]] == [("c6", 0.9), ("c7", 0.5)]


async def test_what_was_lifted_stays_lifted(server: Server, reranker: Postprocessor) -> None:
    """Of two that answer alike, the page of the asked time or part of the site; its score is that of the reranker."""
    there = found()
    boosted = replace(there.search.query, boosts=(Boost(1.2, url_prefixes=("https://x/7",)),))
    lifted = replace(there, search=replace(there.search, query=boosted))
    server.scores = dict.fromkeys(range(8), 0.1)
    (first, *_) = (await Rerank(reranker, SETTINGS)(lifted))["hits"]
    assert (first.chunk.id, first.rerank) == ("c7", 0.1)
    server.scores |= {0: 0.13, 1: 0.13}
    assert "c7" not in {h.chunk.id for h in (await Rerank(reranker, SETTINGS)(lifted))["hits"]}


async def test_the_forms_of_other_servers(server: Server) -> None:
    """Text Embeddings Inference takes `texts`; Voyage takes `top_k` and answers under `data`."""
    server.scores = {1: 0.7}
    for form in ("tei", "voyage"):
        inner = HttpReranker(Endpoint(server.url, timeout=60), "m", form)
        assert await inner.scores("q", ["a", "b"]) == [0.0, 0.7]
        await inner.aclose()
    assert server.bodies[1] == {"model": "m", "query": "q", "documents": ["a", "b"], "top_k": 2}


async def test_scores_outside_of_0_to_1_need_the_sigmoid(server: Server, reranker: Postprocessor) -> None:
    server.scores = {0: -2.0, 1: 5.0}
    with pytest.raises(ModelError, match="DOCS_TUNING__RERANK_SIGMOID"):
        await Rerank(reranker, SETTINGS)(found())
    changes = await Rerank(reranker, SETTINGS.model_copy(update={"rerank_sigmoid": True}))(found())
    assert [(h.chunk.id, round(h.rerank, 4)) for h in changes["hits"]] == [("c2", 0.9933), ("c3", 0.5)]


@pytest.mark.parametrize(
    ("statuses", "error"), [([429], None), ([429, 429], ModelRateLimited), ([503], ModelUnavailable)]
)
async def test_a_refusal_is_waited_for_once(
    server: Server, reranker: Postprocessor, statuses: list[int], error: type[Exception] | None
) -> None:
    """Only one that asks for a short wait; the runner then goes on with the former order."""
    server.statuses = statuses
    if error is None:
        assert len((await Rerank(reranker, SETTINGS)(found()))["hits"]) == 2
        return
    with pytest.raises(error):
        await Rerank(reranker, SETTINGS)(found())


@pytest.mark.parametrize("raw", ["", "[]", '{"results": []}', '{"error": "no"}', '[{"index": 0, "score": "high"}]'])
async def test_an_answer_without_scores_is_an_error_of_ours(server: Server, reranker: Postprocessor, raw: str) -> None:
    server.raw = raw
    with pytest.raises(ModelError, match="no scores"):
        await reranker.chosen("q", [hit(1)], "0..1", 60)


def test_settings_that_lack_the_model_are_an_error() -> None:
    assert open_reranker(Settings.load(None)) is None
    for form in ("cohere", "voyage"):
        with pytest.raises(SettingsError, match="DOCS_RERANK_MODEL"):
            open_reranker(Settings.load(None, rerank_url="http://127.0.0.1:1", rerank_form=form))


async def test_scores_are_checked_at_the_start(server: Server, reranker: Postprocessor) -> None:
    """Both ends of 0..1 are within it; other scores are refused, unless the setting maps them to 0..1."""
    step, mapped = (
        Rerank(reranker, SETTINGS.model_copy(update={"rerank_sigmoid": sigmoid})) for sigmoid in (False, True)
    )
    within: list[dict[int, float]] = [{0: 1.0, 1: 0.0}, {}, {0: 0.5}]
    for server.scores in within:
        await step.check_scores()
    assert len(server.bodies) == 3
    outside: list[dict[int, float]] = [{0: 1.0001}, {1: -0.0001}, {0: 8.2, 1: -11.0}]
    for server.scores in outside:
        with pytest.raises(SettingsError, match="DOCS_TUNING__RERANK_SIGMOID=true"):
            await step.check_scores()
        await mapped.check_scores()


async def test_an_unavailable_reranker_stops_no_start(
    server: Server, reranker: Postprocessor, caplog: pytest.LogCaptureFixture
) -> None:
    """The service starts, since answers go on without it; the log says so."""
    server.statuses = [503]
    await Rerank(reranker, SETTINGS).check_scores()
    assert "reranker not checked" in caplog.text


async def test_the_assistants_do_not_open_with_such_a_reranker(server: Server, tmp_path: Path) -> None:
    """Only where a step uses it."""
    server.scores = {0: 8.2}
    file = tmp_path / "assistants.toml"
    more = {"rerank_url": server.url, "rerank_model": "m", "store": str(tmp_path / "data"), "assistants": str(file)}
    plan = '[[assistant]]\nid = "a"\nsteps = ["detect", "retrieve", {}"synthesize"]\n'
    file.write_text(plan.format('"rerank", '), "utf-8")
    with pytest.raises(SettingsError, match="rerank can't be used"):
        async with opened(Settings.load(None, **more)):
            pass
    file.write_text(plan.format(""), "utf-8")
    async with opened(Settings.load(None, **more)) as made:
        assert made.get("a")
