"""One chunk a page: what is written to an index and found in it again."""

from __future__ import annotations

from app.core.generation import Recipe
from app.index.opensearch.store import OpenSearchStore
from tests.contract import pages
from tests.contract.pages import RECIPE, SITE


def name_of(store: OpenSearchStore) -> str:
    return store._catalog.name


async def put(draft, path: str, text: str) -> None:
    await pages.put(draft, SITE + path, text)


async def publish(store: OpenSearchStore, *texts: str, recipe: Recipe = RECIPE):
    return await pages.publish(store, {f"/{number}": [text] for number, text in enumerate(texts)}, recipe)


async def found(store: OpenSearchStore, text: str) -> list[str]:
    return await pages.found(await store.live(), text)
