"""How the live index was made, whether it can be read, and how the next one is to be made."""

from __future__ import annotations

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.generation import Recipe
from app.core.settings import Settings
from app.index.checkup import check_readable
from app.index.protocols import Store
from app.models.protocols import Embedder
from app.text.analysis import ANALYZER
from ingestion.convert import VERSION
from ingestion.split import open_splitter
from ingestion.split.questions import questions_name
from ingestion.split.summaries import summaries_name


async def damage_of(store: Store) -> str:
    """The damage of the live index; empty without any. Raises `StoreUnavailable`."""
    try:
        await check_readable(await store.live())
    except NoIndex:
        return ""
    except StoreUnavailable:
        raise
    except StoreError as error:
        return str(error)
    return ""


async def live_recipe(store: Store) -> Recipe | None:
    """None if there is no live index, or a damaged one. Raises `StoreUnavailable`."""
    try:
        return (await store.live()).info.recipe
    except StoreUnavailable:
        raise
    except StoreError:
        return None


async def recipe_for(embedder: Embedder, settings: Settings, live: Recipe | None = None) -> Recipe:
    """How an index is made with these settings: another recipe builds it anew.

    An embedder of the name in the `live` recipe isn't asked for the length of its vectors: that costs a call.
    """
    known = live.dimension if live is not None and live.embedder == embedder.name else 0
    return Recipe(
        embedder=embedder.name,
        dimension=known or await embedder.dimension(),
        splitter=f"{VERSION}/{open_splitter(settings).name}",
        analyzer=ANALYZER,
        summaries=summaries_name(settings),
        questions=questions_name(settings),
    )
