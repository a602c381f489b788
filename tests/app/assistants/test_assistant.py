"""Assistants over collections: what each may answer from, on every store."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.assistants.assistant import Assistant, Plans
from app.assistants.file import AssistantTable
from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Message, Request, Text, Turn
from app.core.types import Chunk, Filters
from app.index.protocols import Store
from app.pipeline.registry import Tools, make_plan
from app.text.language import LanguageDetector
from tests.app.published import publish
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fake_reranker import reranker
from tests.fakes import FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
DETECTOR = LanguageDetector(PROMPTS.languages, "en")
STEPS = ["detect", "probe", "retrieve", "synthesize", "cite"]
QUESTION = "How do I resize a volume?"
TEXTS = {
    "docs": "To resize a volume, first detach the volume from its server.",
    "blog": "Last week we learned to resize a volume without any downtime.",
    "wiki": "Resize the volume, then resize the file system on the volume.",
}


@pytest.fixture
async def assistants(store: Store):  # noqa: F811
    """Makes an assistant over these collections, on an index that has one page in each of three."""
    chunks = (
        Chunk(f"c-{name}", name, f"https://example.org/{name}/volumes", 0, text, "en", f"Volumes in the {name}")
        for name, text in TEXTS.items()
    )
    await publish(store, FakeEmbedder(), *chunks)
    tools = Tools(Settings.load(None, per_page=1), PROMPTS, DETECTOR, None, FakeEmbedder())
    table, plans = AssistantTable(id="a", steps=STEPS), Plans(make_plan(STEPS, tools))
    return lambda *names: Assistant(table, plans, store, PROMPTS, Filters(names))


def asked(*collections: str) -> Request:
    return Request((Message("user", QUESTION),), id="r", filters=Filters(collections=collections))


async def found(assistant: Assistant, *collections: str) -> set[str]:
    return {hit.chunk.collection for hit in (await assistant.find(asked(*collections))).hits}


@pytest.mark.plugins
async def test_a_search_has_the_order_that_an_answer_is_made_of(assistants, store: Store):  # noqa: F811
    """Reranked by an assistant that does so, and judged by none."""
    plain = assistants()
    backwards = reranker(lambda _, passages: [n / len(passages) for n in range(len(passages))])
    tools = Tools(Settings.load(None, per_page=1), PROMPTS, DETECTOR, None, FakeEmbedder(), backwards)  # type: ignore[arg-type]
    lookup = make_plan([*STEPS[:3], "rerank", "relevance", *STEPS[3:]], tools)
    fused = (await replace(plain, plans=Plans((), lookup=plain.plans.answer)).search(asked())).hits
    reranked = await replace(plain, plans=Plans((), lookup=lookup)).search(asked())
    assert [hit.chunk.id for hit in reranked.hits] == [hit.chunk.id for hit in reversed(fused)]
    assert reranked.evidence is None


async def test_an_assistant_answers_from_its_collections_only(assistants):
    """From each of these; without a list, from all. A request can narrow that, never widen it."""
    for own, wanted, expected in (
        (("docs",), (), {"docs"}),
        (("docs", "wiki"), (), {"docs", "wiki"}),
        ((), (), set(TEXTS)),
        ((), ("wiki",), {"wiki"}),
        (("docs", "blog"), ("blog",), {"blog"}),
        (("docs", "blog"), ("blog", "wiki"), {"blog"}),
    ):
        assert await found(assistants(*own), *wanted) == expected, (own, wanted)


async def test_several_collections_are_one_ranking(assistants):
    """Hits of two collections have the order and the raw scores that they have in the ranking of all."""
    everything = (await assistants().find(asked())).hits
    two = (await assistants("docs", "blog").find(asked())).hits
    raw = {hit.chunk.id: (hit.lexical, hit.cosine) for hit in everything}
    assert [hit.chunk.id for hit in two] == [h.chunk.id for h in everything if h.chunk.collection != "wiki"]
    assert {hit.chunk.id: (hit.lexical, hit.cosine) for hit in two} == {
        id_: pytest.approx(scores, rel=1e-4) for id_, scores in raw.items() if id_ != "c-wiki"
    }


LIMITS: list[tuple[Filters, set[str]]] = [
    (Filters(), {"docs", "blog"}),
    (Filters(sections=("/blog",)), {"blog"}),
    (Filters(sections=("blo",)), set()),
    (Filters(url_prefixes=("https://example.org/do",)), {"docs"}),
    (Filters(url_prefixes=("https://elsewhere.example.org/",)), set()),
    (Filters(languages=("cs",)), set()),
    (Filters(versions=("1.2",)), set()),
]


async def test_pages_that_may_not_be_found_may_not_be_read_either(assistants):
    """Reading a page by its address has the same limits as searching."""
    urls = {name: f"https://example.org/{name}/volumes" for name in TEXTS}
    for limits, readable in LIMITS:
        limited = replace(assistants(), limits=limits.within(("docs", "blog")))
        assert await found(limited) == readable, limits
        assert {name for name, url in urls.items() if await limited.page(url)} == readable, limits
        assert await limited.page("https://example.org/none") is None


async def test_without_a_common_collection_nothing_is_found(assistants):
    """An empty intersection is a limit too: no hits, and an answer that says so."""
    assistant = assistants("docs", "blog")
    for wanted in (("wiki",), ("wiki", "unknown"), ("",)):
        assert await found(assistant, *wanted) == set()
        events = [event async for event in assistant.answer(asked(*wanted))]
        text = "".join(event.text for event in events if isinstance(event, Text))
        assert not any(known in text for known in TEXTS.values())
        assert isinstance(events[-1], Done)


def settings_with(folder: Path, id_: str, line: str) -> Settings:
    """Settings of a file with this assistant, and this line of it."""
    file = folder / "assistants.toml"
    file.write_text(f'[[assistant]]\nid = "{id_}"\nsteps = {STEPS}\n{line}\n'.replace("'", '"'), encoding="utf-8")
    return Settings.load(None, assistants=str(file), store=str(folder / "index"))


@pytest.mark.parametrize(("line", "language"), [("", "en"), ('languages = ["cs"]', "cs"), ('languages = ["de"]', "en")])
async def test_a_question_without_a_word_is_in_a_language_of_the_assistant(tmp_path: Path, line: str, language: str):
    """The default of all assistants counts only where this one has pages in it, or none in any that is configured."""
    made = build(settings_with(tmp_path, "a", line))
    changes = await made.get("a").plans.answer[0][0](Turn(request=Request((Message("user", "512"),))))
    assert changes["asked"].language == language
    await made.close()


def test_a_collection_needs_a_name():
    """Pages under an empty name could never be closed off."""
    with pytest.raises(SettingsError, match="DOCS_TUNING__COLLECTION"):
        Settings.load(None, collection="")
