"""Steps that choose among hits: by a reranker, by scores and the model, or by asking back; and what a follow-up means to them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from app.core.errors import ModelError, ModelRateLimited, ModelUnavailable, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Calls, Done, Message, Question, Request, Search, Text
from app.core.types import Boost, Candidate, Hit, Legs, Page, Query
from app.index.protocols import TranslationSets
from app.models import Model, open_reranker
from app.models.openai import Endpoint
from app.models.postprocessor import Postprocessor
from app.models.rerank import HttpReranker
from app.pipeline.conversation import referred, standalone
from app.pipeline.steps.synthesize import Synthesize
from plugins.steps.choices import Clarify, Helpful, Rerank, readings
from plugins.steps.searches import Associate
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply
from tests.fake_reranker import reranker as scripted_reranker

PROMPTS = load_prompts(("cs", "en"))


class Server:
    """A `/rerank` server on a real port that answers with `rows` in either form."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.wait = "0"
        self.most = 1000  # passages in one call
        self.scores: dict[int, float] = {}
        self.raw: str | None = None
        self.url = ""

    async def rerank(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        status = self.statuses.pop(0) if self.statuses else 200
        if len(body.get("documents") or body["texts"]) > self.most:
            return web.Response(status=422, text="batch size is too large")
        if status != 200:
            return web.Response(status=status, headers={"Retry-After": self.wait})
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
    ("statuses", "error"),
    [
        *(([status], None) for status in (408, 409, 425, 429, 500, 502, 503, 504)),
        ([429, 429], ModelRateLimited),
        ([503, 503], ModelUnavailable),
        ([404], ModelError),
    ],
)
async def test_a_refusal_is_waited_for_once(
    server: Server, reranker: Postprocessor, statuses: list[int], error: type[Exception] | None
) -> None:
    """Only one that another try may not meet; the runner then goes on with the former order."""
    server.statuses = statuses
    if error is None:
        assert len((await Rerank(reranker, SETTINGS)(found()))["hits"]) == 2
        return
    with pytest.raises(error):
        await Rerank(reranker, SETTINGS)(found())


async def test_no_question_waits_for_a_reranker_that_asks_for_much_time(
    server: Server, reranker: Postprocessor
) -> None:
    server.statuses, server.wait = [429], "60"
    with pytest.raises(ModelRateLimited):
        await Rerank(reranker, SETTINGS)(found())
    assert len(server.bodies) == 1


@pytest.mark.parametrize("most", [1, 3, 5])
async def test_a_reranker_that_takes_few_passages_gets_few(server: Server, reranker: Postprocessor, most: int) -> None:
    """As many as it takes, from the second question on; the scores are those of one call."""
    server.most, server.scores = most, {0: 0.9}
    for _ in range(2):
        server.bodies.clear()
        chosen = await reranker.chosen("q", [hit(n) for n in range(1, 9)], "0..1", 60)
        assert len(chosen) == 8
    assert max(len(body["documents"]) for body in server.bodies) <= most
    assert sum(len(body["documents"]) for body in server.bodies) == 8


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
    server.statuses = [503, 503]
    await Rerank(reranker, SETTINGS).check_scores()
    assert "reranker not checked" in caplog.text


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
async def test_good_passages_are_kept_and_fair_ones_where_few_are_good(scores: tuple[float, ...], kept: int) -> None:
    """0.20 where three or more reach it, else 0.10, both included."""
    assert len((await Helpful(PROMPTS, SETTINGS)(turn(hits=scored(*scores))))["hits"]) == kept


@pytest.mark.parametrize(
    ("settings", "kept"), [({}, 3), ({"good": 0.6}, 4), ({"good": 0.9, "fair": 0.85}, 1), ({"enough": 4}, 4)]
)
async def test_the_scores_of_good_and_fair_passages_are_settings(settings: dict[str, float], kept: int) -> None:
    hits = scored(0.9, 0.5, 0.3, 0.15, 0.05)
    assert len((await Helpful(PROMPTS, SETTINGS, **settings)(turn(hits=hits)))["hits"]) == kept


@pytest.mark.parametrize("settings", [{"fair": 0.3}, {"good": 1.2}, {"unsure": 3}])
def test_settings_that_are_no_scores_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="must be scores from 0 to 1, and fair at most good"):
        Helpful(PROMPTS, SETTINGS, **settings)


@pytest.mark.parametrize(("best", "calls"), [(0.3, 0), (0.2999, 1)])
async def test_the_model_is_asked_only_below_the_threshold(llm: FakeLLM, model: Model, best: float, calls: int) -> None:
    llm.reply = lambda _: Reply("2")
    hits = scored(best, 0.25, 0.01)
    changes = await Helpful(PROMPTS, SETTINGS, model)(turn(hits=hits))
    assert len(llm.calls) == calls
    assert changes["hits"] == ((hits[1],) if calls else hits[:2])
    assert changes["rejected"] == frozenset(hit.chunk.id for hit in hits if hit not in changes["hits"])


async def test_nothing_helpful_leaves_related_pages_and_without_a_model_the_scores_decide(
    llm: FakeLLM, model: Model
) -> None:
    """Where the reranker was away there is nothing to judge by."""
    assert await Helpful(PROMPTS, SETTINGS, model)(turn(hits=scored(None, None))) == {}
    assert llm.calls == []
    llm.reply = lambda _: Reply("None.")
    hits = scored(0.1, 0.1)
    assert await Helpful(PROMPTS, SETTINGS, model)(turn(hits=hits)) == {
        "hits": (),
        "related": hits,
        "rejected": frozenset(hit.chunk.id for hit in hits),
    }
    hits = scored(0.15, 0.05)
    assert await Helpful(PROMPTS, SETTINGS)(turn(hits=hits)) == {
        "hits": hits[:1],
        "rejected": frozenset(hit.chunk.id for hit in hits[1:]),
    }


async def test_passages_that_the_model_did_not_see_are_kept_by_their_scores(llm: FakeLLM, model: Model) -> None:
    """It can't judge what there was no room for."""
    llm.reply = lambda _: Reply("2")
    long = tuple(replace(one, chunk=replace(one.chunk, text="Text. " * 900)) for one in scored(0.29, 0.2, 0.1, 0.0999))
    changes = await Helpful(PROMPTS, SETTINGS, model)(turn(hits=long))
    assert "[3]" not in llm.calls[0]["messages"][0]["content"]
    assert [h.chunk.id for h in changes["hits"]] == ["c2", "c3"]


@pytest.mark.parametrize(("refusals", "error"), [(1, None), (2, ModelRateLimited)])
async def test_a_refusal_is_one_call_with_its_repetition(
    llm: FakeLLM, model: Model, refusals: int, error: type[Exception] | None
) -> None:
    """A question's last helper call may be refused and made again; twice refused, the step is left out."""
    llm.reply = lambda _: Reply("1", status=429 if len(llm.calls) <= refusals else 200, headers={"Retry-After": "0"})
    settings, asked = SETTINGS.model_copy(update={"helper_calls": 1}), turn(hits=scored(0.2, 0.1))
    if error:
        with pytest.raises(error):
            await Helpful(PROMPTS, settings, model)(asked)
    else:
        assert [h.chunk.id for h in (await Helpful(PROMPTS, settings, model)(asked))["hits"]] == ["c1"]
    assert len(llm.calls) == 2
    assert asked.calls.begun == {"helpful": Helpful.helper_calls}
    assert [call.step for call in asked.calls.ended] == ["helpful"]


SITE = "https://docs.example.org"


def page(path: str, score: float, title: str = "", language: str = "en") -> Hit:
    one = hit(1, url=SITE + path, title=title or path.rpartition("/")[2])
    return replace(one, chunk=replace(one.chunk, language=language), fused=score)


TWO = (page("/storage/quota", 1.0), page("/gpu/limits", 0.85), page("/faq/other", 0.84))


async def choices(question: str = "quota", language: str = "en", **more) -> tuple[Hit, ...]:
    step = Clarify(PROMPTS, SETTINGS)
    return tuple((await step(turn(question, language, hits=more.pop("hits", TWO), **more))).get("choices", ()))


async def test_two_readings_are_two_choices() -> None:
    """What scores below 85 % of the best is no reading, by a reranker where it ordered the hits; three are the most."""
    assert await choices() == TWO[:2]
    reranked = tuple(replace(one, rerank=score) for one, score in zip(TWO[::-1], (0.9, 0.8, 0.1), strict=True))
    assert await choices(hits=reranked) == reranked[:2]
    assert len(readings([page(f"/{n}/page-{n}", 1.0) for n in range(6)])) == 3


ONE = {
    "clear question": {"question": "How do I raise the storage quota of my project?"},
    "follow-up": {"referred": "How do I get storage?"},
    "same folder": {"hits": (TWO[0], page("/storage/limits", 0.9))},
    "same title": {"hits": (TWO[0], page("/gpu/quota", 0.9, title="quota"))},
    "translation": {"hits": (page("/en/clients", 1.0), page("/cs/clients", 0.99, "klienti", "cs"))},
    "reranked apart": {
        "hits": tuple(replace(one, rerank=score) for one, score in zip(TWO, (0.9, 0.7, 0.1), strict=True))
    },
    "headed by the question": {"hits": (TWO[1], TWO[0])},
    "one hit": {"hits": TWO[:1]},
    "none": {"hits": ()},
}


@pytest.mark.parametrize("name", ONE)
async def test_one_reading_is_answered(name: str) -> None:
    assert await choices(**ONE[name]) == ()


@pytest.mark.parametrize("language", ["cs", "en"])
async def test_it_never_asks_twice_in_a_row(language: str) -> None:
    """In whatever language it asked; after an answer it may ask again."""
    asked = PROMPTS.render(language, "clarify", choices="- [quota](https://x)")
    messages = (Message("user", "quota"), Message("assistant", asked), Message("user", "limits"))
    assert await choices("limits", request=Request(messages)) == ()
    messages = (*messages, Message("assistant", "The limit is 5 GB [1]."), Message("user", "quota"))
    assert await choices("quota", request=Request(messages)) == TWO[:2]


async def test_the_question_back_names_the_readings_and_asks_no_model() -> None:
    events = (await Synthesize(PROMPTS, SETTINGS)(turn("kvóta", "cs", hits=TWO, choices=TWO[:2])))["events"]
    said = [event async for event in events]
    assert isinstance(said[0], Text)
    assert said[0].text == (
        "Vaši otázku lze chápat různě. Co z toho máte na mysli?\n\n"
        f"- [quota]({SITE}/storage/quota)\n- [limits]({SITE}/gpu/limits)"
    )
    assert said[1:] == [Done()]


TALK = (Message("user", "How do I get a GPU?"), Message("assistant", "Ask."), Message("user", "For how long?"))
FOLLOW_UP = turn("For how long?", request=Request(TALK), referred="How do I get a GPU?")
MEANT = [
    (FOLLOW_UP, "How do I get a GPU? For how long?"),
    (replace(FOLLOW_UP, refined=Question("For how long do I get a GPU?")), "For how long do I get a GPU?"),
    (turn("A question alone", refined="A clearer question alone"), "A question alone"),
]


def test_what_a_follow_up_means() -> None:
    """For helpers that read passages: spelled out by the model, or after the question it refers to."""
    assert [standalone(asked) for asked, _ in MEANT] == [meant for _, meant in MEANT]


async def test_the_reranker_reads_what_is_meant() -> None:
    questions = []

    def score(question: str, passages: Sequence[str]) -> list[float]:
        questions.append(question)
        return [0.5 for _ in passages]

    async def translation_sets() -> TranslationSets:
        return TranslationSets()

    async def fetch(ids: list[str]) -> list:
        return [hit(1).chunk for _ in ids]

    found = replace(
        FOLLOW_UP,
        generation=SimpleNamespace(fetch=fetch, translation_sets=translation_sets),
        search=Search(Query(()), Legs((Candidate("c1", "https://x", "en", 1.0),))),
    )
    await Rerank(scripted_reranker(score), SETTINGS)(found)
    assert questions == [MEANT[0][1]]


async def test_sections_are_picked_with_the_conversation_in_view(llm: FakeLLM, model: Model) -> None:
    """The question isn't spelled out by then."""
    llm.reply = lambda _: Reply("1")

    async def pages() -> list:
        parts = [f"https://x/{part}/{n}" for part in ("gpu", "storage") for n in range(2)]
        return [Page(url, "", url, "en", "", "") for url in parts]

    generation = SimpleNamespace(pages=pages, info=SimpleNamespace(id=1))
    changes = await Associate(model, PROMPTS, SETTINGS)(replace(FOLLOW_UP, generation=generation, calls=Calls()))
    assert changes["sections"].url_prefixes == ("https://x/gpu/",)
    assert "user: How do I get a GPU?" in llm.calls[0]["messages"][-1]["content"]


def test_thanks_between_are_no_question_that_one_could_refer_to() -> None:
    english = PROMPTS.language("en")
    talk = (*TALK[:2], Message("user", "Thanks!"), Message("assistant", "You're welcome."), TALK[2])
    assert referred(talk, english) == "How do I get a GPU?"
    assert referred(talk[2:], english) == ""
