"""Two-stage search by the step `clusters`: what it changes in a ranking, on both stores, and what it leaves alone."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import plugins.steps.searches as module
from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Turn
from app.core.types import Chunk, Filters
from app.index import Store
from app.index.ranking.clusters import Embedded, clusters_of, number_of_clusters
from app.pipeline.registry import Tools, make_plan
from app.pipeline.runner import run
from app.text.language import LanguageDetector
from plugins.steps.searches import Clustered
from tests.app.pipeline.turns import SETTINGS
from tests.app.published import publish
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.skipif(not find_spec("sklearn"), reason="needs the extra clusters")

PROMPTS = load_prompts(("cs", "en"))
SITE = "https://docs.example.org"
TOPICS = {
    "gpu": ["gpu memory card driver", "gpu memory card cuda", "gpu card driver cuda", "gpu memory driver cuda"],
    "login": ["password token login expiry", "password login account expiry", "token login account password"],
    # alone the nearest to `ASKED`, but among the tents
    "tent": ["tent camp cuda memory password", "tent camp fire river", "tent camp river wood", "tent fire river wood"],
}
ASKED = "cuda memory password"
CHUNKS = [
    Chunk(f"{topic}{n}", "docs", f"{SITE}/{topic}/{n}", 0, text, "en", topic)
    for topic, texts in TOPICS.items()
    for n, text in enumerate(texts)
]


@pytest.fixture
async def indexed(store: Store) -> Store:  # noqa: F811
    await publish(store, FakeEmbedder(), *CHUNKS)
    return store


def plan(*names: str, **settings: object):
    own = SETTINGS.model_copy(update={"vector_weight": {"*": 1.0}, "per_page": 5, "top_k": 5, **settings})
    tools = Tools(own, PROMPTS, LanguageDetector(PROMPTS.languages, "en"), None, FakeEmbedder())
    return make_plan(["detect", *names, "retrieve", "synthesize"], tools)[: len(names) + 2]


async def found(store: Store, steps, question: str = "gpu memory", filters: Filters = Filters()) -> Turn:  # noqa: F811, B008
    request = Request((Message("user", question),), filters=filters)
    return await run(steps, Turn(request, await store.live()))


def topics(turn: Turn) -> list[str]:
    return [candidate.id.rstrip("0123456789") for candidate in turn.search.legs.vector]


@pytest.mark.parametrize("probing", [(), ("probe",), ("first_search",)])
async def test_chunks_come_from_the_nearest_clusters_until_there_are_enough(indexed, probing):
    """Whichever step searches: naive search takes chunks of all topics, this one those of the nearest cluster, then of the next."""
    naive = await found(indexed, plan(*probing), ASKED)
    assert set(topics(naive)) == set(TOPICS)
    assert naive.search.legs.vector[0].id == "tent0"
    four = await found(indexed, plan("clusters", *probing, clusters=3, cluster_chunks=4), ASKED)
    assert topics(four) == ["gpu"] * 4
    assert {hit.chunk.id for hit in four.hits if hit.cosine} == {f"gpu{n}" for n in range(4)}
    five = await found(indexed, plan("clusters", *probing, clusters=3, cluster_chunks=5), ASKED)
    assert (len(topics(five)), len(set(topics(five)))) == (5, 2)
    scores = [candidate.score for candidate in five.search.legs.vector]
    assert scores == sorted(scores, reverse=True)


async def test_words_filters_and_the_number_of_clusters_hold(indexed):
    """The leg of words is that of a search without clusters; filters leave clusters out that have nothing they admit."""
    naive = await found(indexed, plan())
    near = await found(indexed, plan("clusters", clusters=3, cluster_chunks=4))
    assert near.search.legs.lexical == naive.search.legs.lexical
    admitted = Filters(sections=("/login",))
    assert set(topics(await found(indexed, plan("clusters", clusters=3, cluster_chunks=4), filters=admitted))) == {
        "login"
    }
    live = await indexed.live()
    assert len((await clusters_of(live, 3)).centres) == 3
    assert [number_of_clusters(n, 500) for n in (1, 5, 100, 1000, 5000)] == [1, 5, 80, 253, 500]
    everything = (await clusters_of(live, 3)).nearest([1.0] * 64, 100)
    assert {one.id for one in everything} == {chunk.id for chunk in CHUNKS}
    assert {one.id for one in (await Embedded.read(live)).chunks} == {chunk.id for chunk in CHUNKS}


async def test_clusters_are_made_once_for_a_generation(indexed, monkeypatch):
    """A new run brings new chunks, so it brings new clusters."""
    made = []
    real = Embedded.read.__func__

    async def counted(cls, generation):
        made.append(generation.info.id)
        return await real(cls, generation)

    monkeypatch.setattr(Embedded, "read", classmethod(counted))
    steps = plan("clusters", clusters=3, cluster_chunks=4)
    for _ in range(2):
        await found(indexed, steps)
    assert len(made) == 1
    await publish(
        indexed, FakeEmbedder(), *CHUNKS, Chunk("gpu9", "docs", f"{SITE}/gpu/9", 0, "gpu memory", "en", "gpu")
    )
    assert "gpu9" in {one.id for one in (await found(indexed, steps)).search.legs.vector}
    assert len(made) == 2


def test_the_step_says_what_it_needs(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"docs-assistant\[clusters\]"):
        Clustered(SETTINGS)


def test_a_default_question_imports_nothing_of_it():
    """The service and its steps are loaded without scikit-learn and without the clusters."""
    code = (
        "import sys; from app.pipeline.registry import steps; import app.routes.server; steps();"
        "print([m for m in sys.modules if m.split('.')[0] in ('sklearn', 'scipy') or m.endswith('ranking.clusters')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"
