"""Facts about an index for operators, in the command line and in the browser, and the way back to its previous generation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from app.assistants.assistant import Assistant
from app.core.errors import IndexMismatch
from app.core.generation import GenerationInfo
from app.index import Store
from app.models import Embedder
from app.models.protocols import for_index


def empty_collections(assistants: Iterable[Assistant], pages: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """For each assistant, its collections without a page. `pages` has the collections with pages of each index by name.

    Assistants whose index isn't in `pages` are left out.
    """
    lacking = {
        a.id: [name for name in a.collections if name not in pages[a.index]] for a in assistants if a.index in pages
    }
    return {id_: names for id_, names in lacking.items() if names}


async def roll_back(store: Store, embedder: Embedder) -> GenerationInfo:
    """Make the previous generation live again, and return it.

    Raises `NoIndex` if none is kept, and `IndexMismatch` if it was built with another embedder: the service couldn't use it.
    """
    earlier = (await store.generations())[1:2]
    if earlier and earlier[0].recipe.embedder != for_index(embedder, earlier[0].recipe.embedder).name:
        raise IndexMismatch(
            f"Generation {earlier[0].id} was built with the embedder {earlier[0].recipe.embedder}, but {embedder.name} is "
            "set, and the service would not answer from it. Set that embedder again first. Nothing was changed."
        )
    return await store.rollback()
