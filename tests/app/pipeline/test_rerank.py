"""Reranking and what it keeps: the two forms of servers, the thresholds with their boundaries, and failing parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from app.assembly import opened
from app.core.errors import ModelError, ModelRateLimited, ModelUnavailable, SettingsError
from app.core.models import open_reranker
from app.core.models.openai import Endpoint, OpenAIModel
from app.core.models.rerank import Reranker
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.types import Candidate, Legs, Query
from app.pipeline.helpful import Helpful, by_score, parse
from app.pipeline.rerank import Rerank
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply

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
        return web.json_response({"results": rows})


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
async def reranker(server: Server) -> AsyncIterator[Reranker]:
    opened = Reranker(Endpoint(server.url, timeout=1), "reranker-m")
    yield opened
    await opened.close()


class Chunks:
    """A generation that has eight chunks."""

    async def fetch(self, ids: list[str]) -> list:
        return [hit(int(id_[1:]), f"Text {id_}.").chunk for id_ in ids]


def found() -> Any:
    """A turn whose ranking is c1 to c8, of which two are kept."""
    leg = tuple(Candidate(f"c{n}", f"https://x/{n}", "en", 9.0 - n) for n in range(1, 9))
    query = Query((), limit=2, per_page=2)
    return turn(generation=Chunks(), legs=Legs(leg), search=query, hits=(hit(1), hit(2)))


async def test_more_candidates_than_are_kept_are_asked_about(server: Server, reranker: Reranker) -> None:
    """A passage from below the cut may win; scores are kept with the hits."""
    server.scores = {5: 0.9, 0: 0.4}
    changes = await Rerank(reranker, SETTINGS)(found())
    assert [(h.chunk.id, h.rerank) for h in changes["hits"]] == [("c6", 0.9), ("c1", 0.4)]
    assert server.bodies[0]["model"] == "reranker-m"
    assert server.bodies[0]["query"] == "How much memory can I get?"
    assert len(server.bodies[0]["documents"]) == 8


async def test_where_nothing_was_found_nothing_is_asked(server: Server, reranker: Reranker) -> None:
    assert await Rerank(reranker, SETTINGS)(replace(found(), legs=Legs(), hits=())) == {}
    assert server.bodies == []


async def test_the_form_of_text_embeddings_inference(server: Server) -> None:
    opened = Reranker(Endpoint(server.url, timeout=1), "m", "tei")
    server.scores = {1: 0.7}
    assert await opened.rerank("q", ["a", "b"]) == [0.0, 0.7]
    await opened.close()


async def test_scores_outside_of_0_to_1_need_the_sigmoid(server: Server, reranker: Reranker) -> None:
    server.scores = {0: -2.0, 1: 5.0}
    with pytest.raises(ModelError, match="DOCS_RERANK_SIGMOID"):
        await Rerank(reranker, SETTINGS)(found())
    changes = await Rerank(reranker, SETTINGS.model_copy(update={"rerank_sigmoid": True}))(found())
    assert [(h.chunk.id, round(h.rerank, 4)) for h in changes["hits"]] == [("c2", 0.9933), ("c3", 0.5)]


@pytest.mark.parametrize(
    ("statuses", "error"), [([429], None), ([429, 429], ModelRateLimited), ([503], ModelUnavailable)]
)
async def test_a_refusal_is_waited_for_once(
    server: Server, reranker: Reranker, statuses: list[int], error: type[Exception] | None
) -> None:
    """Only one that asks for a short wait; the runner then goes on with the former order."""
    server.statuses = statuses
    if error is None:
        assert len((await Rerank(reranker, SETTINGS)(found()))["hits"]) == 2
        return
    with pytest.raises(error):
        await Rerank(reranker, SETTINGS)(found())


@pytest.mark.parametrize("raw", ["", "[]", '{"results": []}', '{"error": "no"}', '[{"index": 0, "score": "high"}]'])
async def test_an_answer_without_scores_is_an_error_of_ours(server: Server, reranker: Reranker, raw: str) -> None:
    server.raw = raw
    with pytest.raises(ModelError, match="no scores"):
        await reranker.rerank("q", ["a"])


def test_settings_that_lack_the_model_are_an_error() -> None:
    assert open_reranker(Settings.load(None)) is None
    with pytest.raises(SettingsError, match="DOCS_RERANK_MODEL"):
        open_reranker(Settings.load(None, rerank_url="http://127.0.0.1:1"))


def scored(*scores: float | None) -> tuple:
    return tuple(replace(hit(n), rerank=score) for n, score in enumerate(scores, start=1))


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ((0.9, 0.2, 0.2), 3),
        ((0.9, 0.2, 0.19), 3),
        ((0.9, 0.2, 0.1999, 0.1), 4),
        ((0.9, 0.2, 0.2, 0.19), 3),
        ((0.3, 0.1, 0.0999), 2),
        ((0.3, 0.05), 1),
    ],
)
def test_good_passages_are_kept_and_fair_ones_where_few_are_good(scores: tuple[float, ...], kept: int) -> None:
    """0.20 where three or more reach it, else 0.10, both included."""
    assert len(by_score(scored(*scores))) == kept


@pytest.mark.parametrize(("best", "calls"), [(0.3, 0), (0.2999, 1)])
async def test_the_model_is_asked_only_below_the_threshold(
    llm: FakeLLM, model: OpenAIModel, best: float, calls: int
) -> None:
    llm.reply = lambda _: Reply("2")
    hits = scored(best, 0.25, 0.01)
    changes = await Helpful(model, PROMPTS, SETTINGS)(turn(hits=hits))
    assert len(llm.calls) == calls
    assert changes == {"hits": (hits[1],) if calls else hits[:2]}


async def test_nothing_helpful_leaves_related_pages(llm: FakeLLM, model: OpenAIModel) -> None:
    llm.reply = lambda _: Reply("None.")
    hits = scored(0.1, 0.1)
    assert await Helpful(model, PROMPTS, SETTINGS)(turn(hits=hits)) == {"hits": (), "related": hits}


async def test_without_a_model_the_scores_decide() -> None:
    hits = scored(0.15, 0.05)
    assert await Helpful(None, PROMPTS, SETTINGS)(turn(hits=hits)) == {"hits": hits[:1]}


async def test_what_nobody_reranked_stays(model: OpenAIModel, llm: FakeLLM) -> None:
    """The reranker was away, so there is nothing to judge by."""
    assert await Helpful(model, PROMPTS, SETTINGS)(turn(hits=scored(None, None))) == {}
    assert llm.calls == []


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [("1, 3", [1, 3]), ("[2]", [2]), ("3\n1\n", [1, 3]), ("none", []), ("žádná", []), ("", []), ("9, 1", [1])],
)
def test_numbers_as_models_write_them(answer: str, numbers: list[int]) -> None:
    assert parse(answer, 5) == numbers


def test_sentences_are_no_numbers() -> None:
    with pytest.raises(ModelError, match="all passages are kept"):
        parse("Passage 1 helps because it has 64 GB.", 5)


@pytest.mark.parametrize("scores", [{0: 1.0, 1: 0.0}, {}, {0: 0.5}])
async def test_scores_of_0_to_1_are_proved_at_the_start(server: Server, reranker: Reranker, scores: dict) -> None:
    """Both ends of the range are within it."""
    server.scores = scores
    await Rerank(reranker, SETTINGS).prove()
    assert len(server.bodies) == 1


@pytest.mark.parametrize("scores", [{0: 1.0001}, {1: -0.0001}, {0: 8.2, 1: -11.0}])
async def test_other_scores_are_refused_at_the_start(server: Server, reranker: Reranker, scores: dict) -> None:
    """Unless the setting brings them to 0..1."""
    server.scores = scores
    with pytest.raises(SettingsError, match="DOCS_RERANK_SIGMOID=true"):
        await Rerank(reranker, SETTINGS).prove()
    await Rerank(reranker, SETTINGS.model_copy(update={"rerank_sigmoid": True})).prove()


async def test_a_reranker_that_is_away_proves_nothing(
    server: Server, reranker: Reranker, caplog: pytest.LogCaptureFixture
) -> None:
    """The service starts, since answers go on without it; the log says so."""
    server.statuses = [503]
    await Rerank(reranker, SETTINGS).prove()
    assert "reranker not proved" in caplog.text


async def test_the_assistants_do_not_open_with_such_a_reranker(server: Server, tmp_path: Path) -> None:
    """Only where a step uses it."""
    server.scores = {0: 8.2}
    file = tmp_path / "assistants.toml"
    more = {"rerank_url": server.url, "rerank_model": "m", "store": str(tmp_path / "data"), "assistants": str(file)}
    for steps, refused in (
        (["detect", "retrieve", "rerank", "synthesize"], True),
        (["detect", "retrieve", "synthesize"], False),
    ):
        file.write_text(f'[[assistant]]\nid = "a"\nsteps = {steps}\n', "utf-8")
        if refused:
            with pytest.raises(SettingsError, match="rerank can't be used"):
                async with opened(Settings.load(None, **more)):
                    pass
        else:
            async with opened(Settings.load(None, **more)) as made:
                assert made.get("a")
