"""The state of the live index, which may be damaged, its recipe, and the recipe of the next one."""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from app.core.errors import NoIndex, StoreError, StoreUnavailable
from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Store
from app.index.ranking.units import VERSION as UNITS
from app.index.run_history import check_readable
from app.models.guarded import Embedder
from app.text.analysis import ANALYZER
from ingestion.convert import VERSION
from ingestion.split import open_splitter
from ingestion.split.written import questions_name, summaries_name

T = TypeVar("T")


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


async def unless_damaged(reading: Awaitable[T], otherwise: T) -> T:
    """What is read of the store; this instead where nothing is there, or it is damaged. Raises `StoreUnavailable`."""
    try:
        return await reading
    except StoreUnavailable:
        raise
    except StoreError:
        return otherwise


async def live_recipe(store: Store) -> Recipe | None:
    """None if there is no live index, or a damaged one. Raises `StoreUnavailable`."""
    live = await unless_damaged(store.live(), None)
    return live.info.recipe if live else None


async def live_pages(store: Store) -> Sequence[Page]:
    """The pages of the live index; none if there is none, or if it is damaged. Raises `StoreUnavailable`."""
    live = await unless_damaged(store.live(), None)
    return await unless_damaged(live.pages(), ()) if live else ()


async def recorded_of_damaged(store: Store) -> tuple[SourceRecord, ...]:
    """The sources of a live index whose pages can't be read; empty if its list of generations is damaged, too.

    Raises `StoreUnavailable`.
    """
    generations = await unless_damaged(store.generations(), ())
    return generations[0].sources if generations else ()


async def recipe_for(embedder: Embedder, settings: Settings, live: Recipe | None = None) -> Recipe:
    """Returns the recipe of an index with these settings: another recipe builds it anew.

    An embedder of the name in the `live` recipe isn't asked for the length of its vectors: that costs a call.
    """
    known = live.dimension if live is not None and live.embedder == embedder.name else 0
    return Recipe(
        embedder=embedder.name,
        dimension=known or await embedder.dimension(),
        splitter=f"{VERSION}/{open_splitter(settings).name}",
        analyzer=f"{ANALYZER}/{UNITS}",
        summaries=summaries_name(settings),
        questions=questions_name(settings),
    )


def way_back(before: GenerationInfo, now: GenerationInfo, embedder: Embedder, *, rebuilt: bool) -> list[str]:
    """Says what a rollback from the generation now to the one before needs, or why there is none; empty if it just works."""
    if rebuilt:
        return ["the index was built anew, without its earlier generations: a rollback has none to go back to"]
    built = before.recipe.embedder
    if built in {now.recipe.embedder, embedder.name}:
        return []
    needed = f"generation {before.id}, the one before, was built with the embedder {built}"
    return [f"{needed}: to go back to it, set that embedder again, then `docs-assistant rollback`"]
