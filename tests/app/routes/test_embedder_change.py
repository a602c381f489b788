"""A service while the embedder of its index changes: it answers before, while and after the new index is built."""

import asyncio

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.types import Chunk
from app.models import open_embedder
from app.routes.server import create_app
from tests.app.published import publish
from tests.app.routes.indexed import LIMITS, URL, VOLUME, indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fakes import WORDS_SETTING

QUESTION = "How much memory does a notebook get?"
CHUNKS = [
    Chunk(name, "docs", URL + name, 0, text, "en", name.title())
    for name, text in (("volumes", VOLUME), ("limits", LIMITS))
]


async def asked(client) -> None:
    response = await client.post(CHAT, json=chat(QUESTION))
    assert response.status_code == 200, response.text
    assert "limits" in response.text


async def state(client) -> tuple[str, str]:
    """The status of the service, and what is said of its index."""
    ready, health = await client.get("/health/ready"), (await client.get("/health")).json()
    assert ready.status_code == 200
    return health["status"], health["details"].get("index", "")


async def test_the_service_answers_while_another_embedder_takes_over(tmp_path):
    """Each question is embedded by the embedder that its generation was built with, and none fails."""
    async with indexed(tmp_path, with_model=False) as service, client_of(service.app) as client:
        llm = service.llm
        llm.dimensions["f"] = 5
        await asked(client)
        assert llm.embedding_models[-1] == "e"

        async def rebuild() -> None:
            new = open_embedder(Settings.load(None, embedding_url=llm.url, embedding_model="f"))
            await publish(service.store, new, *CHUNKS)
            await new.close()

        building = asyncio.create_task(rebuild())
        while not building.done():
            await asked(client)
        await building
        llm.embedding_models.clear()
        await asked(client)
        assert llm.embedding_models == ["f"]
        assert await state(client) == ("ok", "")


async def test_a_service_that_starts_with_the_new_embedder_answers_from_the_old_index(tmp_path):
    """An operator may restart it before the first run with the new embedder has ended."""
    async with indexed(tmp_path, with_model=False, embedding_model="f") as service, client_of(service.app) as client:
        llm = service.llm
        old = open_embedder(Settings.load(None, embedding_url=llm.url, embedding_model="e"))
        await publish(service.store, old, *CHUNKS)
        await old.close()
        llm.embedding_models.clear()
        await asked(client)
        assert llm.embedding_models == ["e"]
        assert await state(client) == ("ok", "")


async def test_words_alone_find_pages_where_the_embedder_of_the_index_is_gone(tmp_path):
    """Its server may have been replaced by a model in this process: answers go on, and operators are told."""
    async with indexed(tmp_path, with_model=False) as built:
        settings = Settings.load(None, store=str(tmp_path / "index"), embedding_model=WORDS_SETTING)
        built.llm.embedding_models.clear()
        async with opened(settings) as assistants, client_of(create_app(assistants, settings)) as client:
            await asked(client)
            status, told = await state(client)
            assert status == "degraded"
            assert "built with the embedder e, and local:words" in told
            assert "words alone find pages" in told
        assert built.llm.embedding_models == []


async def test_a_model_that_gives_other_vectors_under_its_name_is_as_good_as_none(tmp_path, caplog):
    """The log says what to do; vectors of different lengths are never compared."""
    async with indexed(tmp_path, with_model=False) as service, client_of(service.app) as client:
        service.llm.dimension = 5
        await asked(client)
    assert "now returns vectors of 5 numbers, but the index has 8: index the sites again" in caplog.text
