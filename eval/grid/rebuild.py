"""Indexes the pages of an index again with other settings, without reading the site."""

from __future__ import annotations

from app.core.errors import AssistantError
from app.core.generation import GenerationInfo
from app.core.settings import Settings
from app.index import open_store
from app.index.protocols import Generation
from app.models import open_embedder
from app.models.protocols import for_index
from eval.errors import EvaluationError
from ingestion.convert.prepare import Prepared
from ingestion.embedding import BatchEmbedder
from ingestion.publish.write import texts_of
from ingestion.recipe import recipe_for
from ingestion.split import open_splitter
from ingestion.split.chunker import Chunker
from ingestion.workers import Workers

INDEX_SETTINGS = frozenset(
    {
        "chunk_size", "splitter", "splitter_args", "embedding_url", "embedding_model", "embedding_class", "embedding_args",
        "embedding_max_chars", "embedding_passage_prefix", "embedding_extra_body",
    }
)  # fmt: skip
"""Settings that need an index of their own."""


async def rebuild(source: Generation, settings: Settings) -> GenerationInfo:
    """Write the source's pages into the store of these settings, split and embedded as they say."""
    # without summaries, questions and translations: texts by another model would blur the effect of the settings
    settings = settings.model_copy(update={"summaries": False, "questions": False})
    store, embedder = open_store(settings), open_embedder(settings)
    embedder = for_index(embedder, source.info.recipe.embedder)
    embedding = BatchEmbedder(embedder, settings.embedding_batch, settings.embedding_parallel)
    workers = Workers()
    chunker = Chunker(open_splitter(settings), embedding, workers)
    try:
        async with workers, await store.draft(await recipe_for(embedder, settings)) as draft:
            for listed in await source.pages():
                page = await source.page(listed.url)
                if page is None:
                    continue
                made = Prepared(page) if page.same_as else await chunker.finished(Prepared(page))
                missing = await draft.missing(made.chunks)
                await draft.put(made.page, made.chunks, await embedding.embed(texts_of(made, missing)))
            return await draft.publish()
    except AssistantError as error:
        raise EvaluationError(f"The pages can't be indexed with these settings: {error}") from error
    finally:
        await store.close()
        await embedder.close()
