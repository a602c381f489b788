"""Indexes of the same pages with other settings: each is built once, in a directory that keeps it."""

from dataclasses import dataclass
from pathlib import Path

from app.core.errors import AssistantError, NoIndex
from app.core.generation import Recipe
from app.core.settings import Settings
from app.index import open_store
from app.index.protocols import Generation
from app.index.vector_cache import VectorCache
from app.models import open_embedder
from eval.files import EvaluationError, Progress, fingerprint
from ingestion.convert.prepare import Prepared
from ingestion.publish.change import PageChange
from ingestion.publish.draft import Writer
from ingestion.publish.recipe import recipe_for
from ingestion.split.chunker import Chunker, open_chunker
from ingestion.split.embedding import BatchEmbedder, ResumingEmbedder
from ingestion.workers import Workers

VECTORS = ("embedding_max_chars", "embedding_extra_body", "embedding_args")
"""Settings that change vectors without a change of the recipe."""


@dataclass
class Indexes:
    """The pages of the index `source`, which the settings `base` made, cut and embedded as other settings say.

    An index is a directory in `folder`, whose name stands for its recipe and its pages; a run that was stopped goes on with it,
    and a vector of a text is computed once for all of them. `told` gets the number of pages that are written, and of all.
    """

    base: Settings
    source: Generation
    folder: Path
    told: Progress

    async def of(self, settings: Settings) -> Settings:
        """These settings with the store that has their index: the live one, if it is of the same recipe.

        Raises `EvaluationError` if a page can't be cut, written about or embedded with them.
        """
        embedder = open_embedder(settings)
        options = {name: settings.value(name) for name in VECTORS}
        try:
            recipe = await recipe_for(embedder, settings, self.source.info.recipe)
            if recipe == self.source.info.recipe and all(self.base.value(name) == options[name] for name in VECTORS):
                return settings.model_copy(update={"store": self.base.store, "store_ca": self.base.store_ca})
            pages = [f"{page.url} {page.hash}" for page in await self.source.pages()]
            path = self.folder / fingerprint(str(recipe), str(options), *sorted(pages))
            own = settings.model_copy(update={"store": str(path), "store_ca": ""})
            if not await _is_there(own):
                cache = VectorCache(self.folder, embedder.name, *options.values())
                await self._build(own, recipe, ResumingEmbedder(embedder, cache))
        except AssistantError as error:
            raise EvaluationError(f"The pages can't be indexed with these settings: {error}") from error
        finally:
            await embedder.close()
        return own

    async def _build(self, settings: Settings, recipe: Recipe, embedder: ResumingEmbedder) -> None:
        tuning = settings.tuning
        embedding = BatchEmbedder(embedder, tuning.embedding_batch, tuning.embedding_parallel)
        known, store = await self.source.pages(), open_store(settings)
        try:
            async with Workers() as workers, await store.draft(recipe) as draft:
                chunker = open_chunker(settings, embedding, workers, known)
                writer = Writer(draft, embedding, _ignored, _ignored)
                try:
                    for number, listed in enumerate(known, start=1):
                        await writer.write(PageChange(None, put=await self._cut(listed.url, chunker)))
                        self.told(number, len(known))
                    await writer.flush()
                finally:
                    await writer.stop()
                    await chunker.close()
                await draft.publish(self.source.info.sources)
        finally:
            await store.close()

    async def _cut(self, url: str, chunker: Chunker) -> Prepared:
        page = await self.source.page(url)
        if page is None:
            raise EvaluationError(f"{url} is listed in the index, which hasn't its text: index its site again.")
        made = Prepared(page) if page.derived.same_as else await chunker.finished(Prepared(page))
        if made.note:  # an index without some texts would be measured as one that has them
            raise EvaluationError(f"{url}: {made.note}")
        return made


def _ignored(_: object) -> None:
    """Nothing is reported of a page."""


async def _is_there(settings: Settings) -> bool:
    store = open_store(settings)
    try:
        await store.live()
    except NoIndex:
        return False
    finally:
        await store.close()
    return True
