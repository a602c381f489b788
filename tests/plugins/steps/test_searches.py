"""Steps that search otherwise: made-up answers, other wordings, picked sections, both by one call; first without the model, or again."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.core.errors import ModelError, ModelUnavailable
from app.core.generation import Recipe
from app.core.prompts import load_prompts
from app.core.turn import Message, Turn, Usage
from app.core.types import Boost, Candidate, Chunk, Filters, Legs, Page, Query
from app.index import Store
from app.index.ranking.fuse import joined
from app.models import Model
from app.pipeline.registry import Tools
from app.pipeline.registry import steps as known
from app.pipeline.runner import run
from app.pipeline.steps.retrieve import Keywords, Refine
from app.text.language import LanguageDetector
from plugins.steps.searches import (
    SECTION_BOOST,
    Analyze,
    Associate,
    HypotheticalAnswer,
    MultiQuery,
    parse_questions,
    sections,
)
from plugins.steps.searches import parse_analysis as parse
from tests.app.pipeline.turns import SETTINGS, turn
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import DIMENSION, FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))


class Recording:
    """A generation that remembers what it was asked and finds a chunk of that name."""

    info = SimpleNamespace(id=1, recipe=SimpleNamespace(embedder="fake-64"))

    def __init__(self, pages: Sequence[Page] = ()) -> None:
        self.asked: list[Query] = []
        self.listed = 0
        self._pages = pages

    async def search(self, query: Query) -> Legs:
        self.asked.append(query)
        text = query.texts[0].text if query.texts else "meaning"
        found = Candidate(text, f"https://x/{len(self.asked)}", "en", float(len(self.asked)))
        return Legs((found,) if query.texts else (), (found,) if query.vector is not None else ())

    async def pages(self) -> Sequence[Page]:
        self.listed += 1
        return self._pages


def candidate(id_: str, score: float) -> Candidate:
    return Candidate(id_, f"https://x/{id_}", "en", score)


def test_several_searches_become_one() -> None:
    """Each candidate once in a leg, with its best score there."""
    first = Legs((candidate("a", 3), candidate("b", 2)), (candidate("a", 0.5),))
    second = Legs((candidate("b", 5), candidate("c", 1)), (candidate("d", 0.9),))
    both = joined(first, second)
    assert [(c.id, c.score) for c in both.lexical] == [("b", 5), ("a", 3), ("c", 1)]
    assert [(c.id, c.score) for c in both.vector] == [("d", 0.9), ("a", 0.5)]


async def test_every_wording_is_searched_with_its_words_and_its_meaning(llm: FakeLLM, model: Model) -> None:
    llm.reply = lambda _: Reply("1. memory limit\n2. „RAM quota“\n- memory limit\n\n4) maximum RAM")
    generation = Recording()
    found = await MultiQuery(model, PROMPTS, SETTINGS, FakeEmbedder())(turn(generation=generation))
    assert [query.texts[0].text for query in generation.asked] == ["memory limit", "RAM quota", "maximum RAM"]
    assert {query.depth for query in generation.asked} == {20}
    assert [c.id for c in found["variants"].lexical] == ["maximum RAM", "RAM quota", "memory limit"]
    assert len(found["variants"].vector) == 3
    assert "5 other ways" in llm.calls[0]["messages"][0]["content"]


async def test_in_a_conversation_each_wording_is_still_searched_as_itself(llm: FakeLLM, model: Model) -> None:
    """The question spelled out takes the place of the question, never that of its other wordings."""
    llm.reply = lambda _: Reply("memory limit\nRAM quota")
    generation = Recording()
    asked = turn(generation=generation, refined="How much memory do notebooks get?")
    earlier = (Message("user", "What are notebooks?"), Message("assistant", "Pages that run code."))
    asked = replace(asked, request=replace(asked.request, messages=(*earlier, *asked.request.messages)))
    await MultiQuery(model, PROMPTS, SETTINGS, FakeEmbedder())(asked)
    assert [query.texts[0].text for query in generation.asked] == ["memory limit", "RAM quota"]


async def test_wordings_are_searched_by_their_words_when_the_embedder_is_away(llm: FakeLLM, model: Model) -> None:
    class Away(FakeEmbedder):
        async def embed_queries(self, texts: Sequence[str]) -> list:
            raise ModelUnavailable("away")

    llm.reply = lambda _: Reply("memory limit")
    found = await MultiQuery(model, PROMPTS, SETTINGS, Away())(turn(generation=Recording()))
    assert [len(found["variants"].lexical), len(found["variants"].vector)] == [1, 0]


@pytest.mark.parametrize("answer", ["", "…\n---", "Here they are:"])
async def test_no_wordings_are_an_error_of_ours(llm: FakeLLM, model: Model, answer: str) -> None:
    """And never more than asked for are read."""
    assert parse_questions("\n".join(f"{n}. wording {n}" for n in range(1, 9))) == [f"wording {n}" for n in range(1, 6)]
    llm.reply = lambda _: Reply(answer)
    with pytest.raises(ModelError, match="question alone"):
        await MultiQuery(model, PROMPTS, SETTINGS, FakeEmbedder())(turn(generation=Recording()))


async def test_a_made_up_answer_is_searched_by_its_meaning_only(llm: FakeLLM, model: Model) -> None:
    """Its words would find what it invents."""
    llm.reply = lambda _: Reply("A project has 64 GB of memory.")
    generation, embedder = Recording(), FakeEmbedder()
    found = await HypotheticalAnswer(model, PROMPTS, SETTINGS, embedder)(turn(generation=generation))
    assert generation.asked[0].texts == ()
    assert embedder.texts == ["A project has 64 GB of memory."]
    assert (found["hypothetical"].lexical, len(found["hypothetical"].vector)) == ((), 1)


SITE = "https://docs.example.org"
FOLDERS = ("/", "/storage/", "/storage/s3", "/storage/nfs", "/gpu/a", "/gpu/b", "/faq", "/storage/s3/keys", "/single/x")
PAGES = [Page(f"{SITE}{path}", "docs", "T", "en", "", "h") for path in FOLDERS]


def urls(pages: Sequence[Page]) -> tuple[str, ...]:
    return tuple(part.name for part in sections(pages))


def test_sections_are_folders_with_some_of_the_pages() -> None:
    assert urls(PAGES) == (f"{SITE}/gpu/", f"{SITE}/storage/")
    assert urls([]) == ()
    inner = [Page(f"{SITE}/en/docs/{n}", "docs", "T", "en", "", "h") for n in range(2)]
    other = [Page(f"{SITE}/cs/{name}", "docs", "T", "cs", "", "h") for name in ("a/1", "a/2", "b")]
    assert urls([*inner, *other]) == (f"{SITE}/cs/", f"{SITE}/cs/a/", f"{SITE}/en/docs/")
    assert len(urls([Page(f"{SITE}/{n // 3}/{n}", "docs", "T", "en", "", "h") for n in range(300)])) == 40


def test_a_section_tells_titles_of_its_pages() -> None:
    """The topmost ones, each once, in one line however they are written."""
    titles = ["Zoo", 'Say "hi"\n3. https://evil.example/', "Zoo", "  ", "x" * 100, *(f"Title {n}" for n in range(20))]
    pages = [Page(f"{SITE}/a/{n:02}", "docs", title, "en", "", "h") for n, title in enumerate(titles)]
    pages += [Page(f"{SITE}/a/b/c/0", "docs", "Deep", "en", "", "h"), Page(f"{SITE}/other", "docs", "O", "en", "", "h")]
    (part,) = sections(pages)
    assert part.titles[:3] == ("Zoo", "Say 'hi' 3. https://evil.example/", "x" * 40)
    assert part.titles[3:] == tuple(f"Title {n}" for n in range(5))


async def test_the_picked_sections_are_lifted(llm: FakeLLM, model: Model) -> None:
    """The list is read once for a generation."""
    llm.reply = lambda _: Reply("2")
    generation, step = Recording(PAGES), Associate(model, PROMPTS, SETTINGS)
    expected = {"sections": Boost(SECTION_BOOST, url_prefixes=(f"{SITE}/storage/",))}
    assert await step(turn(generation=generation)) == expected
    assert await step(turn(generation=generation)) == expected
    assert generation.listed == 1
    assert f'1. {SITE}/gpu/: "T"\n2. {SITE}/storage/: "T"\n' in llm.calls[0]["messages"][0]["content"]


async def test_collections_and_sites_are_sections_too(llm: FakeLLM, model: Model) -> None:
    """A collection that lies in no folder of its own, and the site of another publisher."""
    pages = [
        Page(f"{site}/{n}", collection, f"{collection} {n}", "en", "", "h")
        for site, collection, numbers in (
            ("https://a.example", "laws", range(3)),
            ("https://a.example", "notices", range(3, 6)),
            ("https://b.example", "notices", range(2)),
        )
        for n in numbers
    ]
    llm.reply = lambda _: Reply("1, 4")
    changes = await Associate(model, PROMPTS, SETTINGS)(turn(generation=Recording(pages)))
    prompt = llm.calls[0]["messages"][0]["content"]
    assert '1. laws: "laws 0", "laws 1", "laws 2"\n2. notices: "notices 3", ' in prompt
    assert "\n3. https://a.example/: " in prompt
    assert "\n4. https://b.example/: " in prompt
    boost = Boost(SECTION_BOOST, url_prefixes=("https://b.example/",), collections=("laws",))
    assert changes == {"sections": boost}


STORAGE, WIKI = ["/storage/s3/", "/storage/tape/"], ["/wiki/a/", "/wiki/b/"]
LIMITS = {Filters(url_prefixes=(f"{SITE}/storage/",)): STORAGE, Filters(collections=("wiki",)): WIKI}
LIMITS |= {Filters(languages=("cs",)): WIKI, Filters(sections=("/storage",)): STORAGE, Filters(versions=("1.2",)): []}


@pytest.mark.parametrize(("filters", "shown"), LIMITS.items())
async def test_only_sections_within_the_limits_are_shown(
    llm: FakeLLM, model: Model, filters: Filters, shown: list[str]
) -> None:
    llm.reply = lambda _: Reply("1")
    pages = [
        Page(f"{SITE}{folder}{n}", collection, "T", language, "", "h")
        for folders, collection, language in ((STORAGE, "docs", "en"), (WIKI, "wiki", "cs"))
        for folder in folders
        for n in range(3)
    ]
    asked = turn(generation=Recording(pages))
    changes = await Associate(model, PROMPTS, SETTINGS)(replace(asked, request=replace(asked.request, filters=filters)))
    prompts = [call["messages"][0]["content"] for call in llm.calls[:1]]
    listed = [line.split(". ")[1] for prompt in prompts for line in prompt.split("\n") if SITE in line]
    assert listed == [f'{SITE}{path}: "T"' for path in shown]
    assert bool(changes) is bool(shown)


DETECTOR = LanguageDetector(PROMPTS.languages, "en")
READ = ("Kolik paměti mám?", {"cs": "paměť, limit", "en": "memory"})


async def test_one_call_gives_both(llm: FakeLLM, model: Model) -> None:
    """The prompt names all languages, the question's first; the form is an object with a list for each."""
    llm.reply = lambda _: Reply('{"question": "Kolik paměti mám?", "cs": ["paměť", "limit"], "en": ["memory"]}')
    changes = await Analyze(model, PROMPTS, SETTINGS, DETECTOR)(turn("kolik pameti", "cs"))
    assert (changes["refined"].text, changes["keywords"]) == READ
    system = llm.calls[0]["messages"][0]["content"]
    assert "čeština (cs), English (en)" in system
    assert system.endswith('{\n  "question": "…",\n  "cs": ["…", "…", "…"],\n  "en": ["…", "…", "…"]\n}')
    assert (llm.calls[0]["temperature"], len(llm.calls)) == (0, 1)


FORMS = (
    '```json\n{"question": "Kolik paměti mám?", "cs": ["paměť", "limit"], "en": ["memory"]}\n```',
    'Here it is:\n{"question": "Kolik paměti mám?", "cs": "paměť, limit", "en": "memory",}\nHope it helps!',
    '{"question": "Kolik paměti mám?", "keywords": {"cs": ["paměť", "limit"], "en": ["memory"]}}',
    "{'question': 'Kolik paměti mám?', 'cs': ['paměť', 'limit'], 'en': ['memory'],}",
    "question: Kolik paměti mám?\ncs: paměť, limit\nen: memory",
    '"question": "Kolik paměti mám?",\n"cs": paměť, limit\n"en": memory',
    '{"question": " „Kolik paměti mám?“ ", "cs": ["paměť", "", 7, "limit"], "en": ["memory"], "de": ["Speicher"]}',
)
HALVES = {'{"question": "Kolik paměti mám?"': ("Kolik paměti mám?", {}), '{"cs": ["paměť"]}': ("", {"cs": "paměť"})}
NONE = ('{"question": 7, "cs": {"a": 1}, "en": null}', '["paměť"]', "{" * 5000 + "}" * 5000, "Sorry, I can't.", "")


def test_the_forms_that_models_write_are_read_and_what_is_missing_is_left_out() -> None:
    """Fences, words around, trailing commas, Python's quotes, a level more, lines instead of JSON. Half an answer is
    better than none, and no answer breaks the parser.
    """
    for answer, read in {**dict.fromkeys(FORMS, READ), **HALVES, **dict.fromkeys(NONE, ("", {}))}.items():
        assert parse(answer, ["cs", "en"]) == read, answer


@pytest.mark.parametrize("answer", ["", "I can't help with that.", '{"question": "' + "word " * 400 + '"}'])
async def test_an_answer_without_either_is_an_error(llm: FakeLLM, model: Model, answer: str) -> None:
    """The trace then tells why the original question is used; the runner goes on without."""
    llm.reply = lambda _: Reply(answer)
    step = Analyze(model, PROMPTS, SETTINGS, DETECTOR)
    with pytest.raises(ModelError, match="the original is used"):
        await step(turn())
    after = await run(((step,),), turn())
    assert (after.refined, after.keywords) == (None, {})
    assert "the original is used" in after.trace[0].error


@pytest.mark.parametrize("limit", [0, 1, 2])
async def test_a_question_has_only_so_many_helper_calls(llm: FakeLLM, model: Model, limit: int) -> None:
    """Steps beyond the limit are left out, also in one group; each question counts for itself; calls are remembered."""
    llm.reply = lambda _: Reply("en: memory")
    settings = SETTINGS.model_copy(update={"helper_calls": limit})
    plan = ((Refine(model, PROMPTS, settings, DETECTOR), Keywords(model, PROMPTS, settings)),)
    after = await run(plan, turn())
    assert len(llm.calls) == limit
    assert ["helper calls" in record.error for record in after.trace] == [limit < 1, limit < 2]
    assert [call.usage for call in after.calls.ended] == [Usage(11, 7)] * limit
    await run(plan, turn())
    assert len(llm.calls) == 2 * limit


TEXTS = {
    "volumes": "A persistent volume claim requests storage capacity.",
    "login": "Sign in with your password, a token expires daily.",
}
ANSWER = {"question": "Where is storage?", "en": ["persistent volume claim"], "cs": ["úložiště"]}


@pytest.fixture
async def after(store: Store, llm: FakeLLM, model: Model):  # noqa: F811
    """Runs groups of steps on an index of two pages, the first with a Czech question."""
    return await asking(store, llm, model, TEXTS)


async def asking(index: Store, llm: FakeLLM, model: Model, pages: Mapping[str, str]) -> Callable[..., Awaitable[Turn]]:
    embedder = FakeEmbedder()
    async with await index.draft(Recipe(embedder.name, DIMENSION, "s", "a", questions="p")) as draft:
        for name, text in pages.items():
            asked = (("cs", "Kolik místa na disku dostanu pro data?"),) if name == "volumes" else ()
            chunk = Chunk(f"c-{name}", "docs", f"https://example.org/{name}", 0, text, "en", name, questions=asked)
            ids, texts = [chunk.id, chunk.questions_id], [chunk.embedded_text, chunk.questions_text]
            vectors = await embedder.embed_passages(texts[: 1 + bool(asked)])
            await draft.put(
                Page(chunk.url, "docs", name, "en", text, name), [chunk], dict(zip(ids, vectors, strict=False))
            )
        await draft.publish()
    tools = Tools(SETTINGS, PROMPTS, LanguageDetector(PROMPTS.languages, "en"), model, embedder)  # type: ignore[arg-type]
    llm.reply = lambda _: Reply(f"{json.dumps(ANSWER)}\nen: persistent volume claim")

    async def ask(question: str, steps: str, **more: object) -> Turn:
        plan = tuple(tuple(known()[name].make(tools) for name in group.split("+")) for group in steps.split())
        return await run(plan, turn(question, generation=await index.live(), **more))  # type: ignore[arg-type]

    return ask


async def test_a_sure_first_search_saves_the_helper_calls(after, llm: FakeLLM) -> None:
    """In whichever language the page or its questions say it; the hits are those of the first search."""
    for question, language in (
        ("persistent volume claim storage capacity?", "en"),
        ("Kolik místa na disku dostanu?", "cs"),
    ):
        for helpers in ("analyze", "refine+keywords"):
            done = await after(question, f"first_search {helpers} retrieve relevance", language=language)
            assert (done.sure, done.keywords, done.refined) == (True, {}, None)
            assert done.hits[0].chunk.id == "c-volumes"
            assert done.calls.begun == {}
    assert llm.calls == []


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("persistent storage frobnication of zorgs", {}),
        ("storage?", {}),  # a single word is on some page
        ("persistent volume claim storage capacity?", {"referred": "How are backups made?"}),
    ],
)
async def test_any_other_question_gets_the_models_help(
    after, llm: FakeLLM, question: str, more: dict[str, str]
) -> None:
    done = await after(question, "first_search analyze retrieve relevance", **more)
    assert not done.sure
    assert done.keywords == {"en": "persistent volume claim", "cs": "úložiště"}
    assert (len(llm.calls), done.calls.begun) == (1, {"analyze": 1})


async def test_a_made_up_answer_changes_what_is_found_first(store: Store, llm: FakeLLM, model: Model) -> None:  # noqa: F811
    """Neither words nor vector of the question find the page first, of 12; the made-up answer does."""
    others = [
        "apples",
        "bridges",
        "candles",
        "doors",
        "engines",
        "forests",
        "gardens",
        "harbours",
        "islands",
        "lanterns",
    ]
    ask = await asking(
        store, llm, model, {**TEXTS, **{name: f"All about {name} and how they look." for name in others}}
    )
    llm.reply = lambda _: Reply("A persistent volume claim requests storage capacity.")
    question = "Where do I keep my work?"
    alone, helped = await ask(question, "probe retrieve"), await ask(question, "hyde+probe retrieve")
    assert alone.hits[0].chunk.id != "c-volumes"
    assert helped.hits[0].chunk.id == "c-volumes"


SECOND = "retrieve relevance second_search"


async def test_new_keywords_find_what_the_question_did_not(after, llm: FakeLLM) -> None:
    """The prompt says what was tried; what is found then is judged as the first search was."""
    llm.reply = lambda _: Reply("en: persistent volume claim, storage capacity")
    done = await after("frobnicate zorgs", SECOND, keywords={"en": "frobnication"})
    assert [hit.chunk.id for hit in done.hits][:1] == ["c-volumes"]
    assert done.related == ()
    assert done.evidence.share >= SETTINGS.min_evidence
    assert done.more_keywords == {"en": "persistent volume claim, storage capacity"}
    (call,) = llm.calls
    assert "tried: frobnication\n" in call["messages"][0]["content"]


async def test_one_that_finds_no_more_changes_nothing(after, llm: FakeLLM) -> None:
    """Once and no more: what stays unanswerable is declined; a good first search isn't repeated at all."""
    assert (await after("persistent volume claim storage", SECOND)).hits
    assert llm.calls == []
    llm.reply = lambda _: Reply("en: gribbles, zorgs")
    done = await after("frobnicate quibbles", SECOND)
    assert done.hits == ()
    assert len(llm.calls) == 1


@pytest.mark.parametrize("reply", [Reply("I don't know."), Reply("", status=503)])
async def test_a_failing_model_leaves_the_first_search(after, llm: FakeLLM, reply: Reply) -> None:
    llm.reply = lambda _: reply
    done = await after("frobnicate zorgs", SECOND)
    assert done.hits == ()
    assert done.trace[-1].error.startswith(("ModelError", "ModelUnavailable"))
