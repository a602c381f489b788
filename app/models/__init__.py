"""Language models, embedders and rerankers, opened from settings and used through their protocols.

Called by assistants, pipeline, ingestion and eval; imports app.core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.models.protocols import Embedder, Model

if TYPE_CHECKING:
    from app.models.local import LocalEmbedder
    from app.models.onnx import OnnxReranker
    from app.models.rerank import Reranker

__all__ = ["Embedder", "Model", "open_embedder", "open_model", "open_reranker"]

LOCAL = "local"
"""The beginning of names of models in this process: `local:NAME`."""


def open_model(settings: Settings) -> Model | None:
    """The configured language model. None if none is configured; answers are extractive then."""
    if settings.llm_class:
        from app.models.llamaindex import open_llm

        return open_llm(settings.llm_class, settings.llm_args)
    if not settings.llm_url:
        return None
    if not settings.llm_model:
        raise SettingsError("DOCS_LLM_URL is set, but DOCS_LLM_MODEL isn't: name the model to ask.")
    from app.models.openai import Endpoint, OpenAIModel

    endpoint = Endpoint(settings.llm_url, settings.llm_key.get_secret_value(), timeout=settings.llm_timeout)
    return OpenAIModel(endpoint, settings.llm_model, settings.llm_extra_body)


def open_embedder(settings: Settings) -> Embedder:
    """The configured embedder, else a `DefaultEmbedder`. Raises `SettingsError` if it can't be used here."""
    kind, _, name = settings.embedding_model.partition(":")
    if settings.embedding_class:
        if kind == LOCAL:
            raise SettingsError(
                f"DOCS_EMBEDDING_CLASS={settings.embedding_class} and DOCS_EMBEDDING_MODEL={settings.embedding_model} name"
                " two embedding models: remove one of them."
            )
        from app.models.llamaindex import open_embedding

        return open_embedding(settings.embedding_class, settings.embedding_args)
    if kind == LOCAL:
        return _local_embedder(name, settings)
    if settings.embedding_model and not settings.embedding_url:
        raise SettingsError(
            f"DOCS_EMBEDDING_MODEL={settings.embedding_model} needs the address of its server, DOCS_EMBEDDING_URL. A model in"
            f" this process is written as local:{settings.embedding_model}."
        )
    if not settings.embedding_url:
        from app.models.default import DefaultEmbedder

        return DefaultEmbedder(settings.tuning.embedding_max_chars)
    if not settings.embedding_model:
        raise SettingsError("DOCS_EMBEDDING_URL is set, but DOCS_EMBEDDING_MODEL isn't: name the model to ask.")
    from app.models.openai import Endpoint, OpenAIEmbedder

    key = settings.embedding_key.get_secret_value()
    return OpenAIEmbedder(
        Endpoint(settings.embedding_url, key, timeout=settings.tuning.embedding_timeout),
        settings.embedding_model,
        prefixes=_prefixes(settings.embedding_model, settings),
        max_chars=settings.tuning.embedding_max_chars,
        extra_body=settings.tuning.embedding_extra_body,
    )


def _prefixes(model: str, settings: Settings) -> tuple[str, str]:
    from app.models.protocols import prefixes_of

    return prefixes_of(model, settings.tuning.embedding_query_prefix, settings.tuning.embedding_passage_prefix)


def _local_embedder(name: str, settings: Settings) -> LocalEmbedder:
    if settings.embedding_url:
        raise SettingsError(
            f"DOCS_EMBEDDING_URL is set, and DOCS_EMBEDDING_MODEL=local:{name} needs no server: remove one of them."
        )
    if name == "static":
        from app.models.static import StaticEmbedder

        return StaticEmbedder()
    from app.models import e5

    if name != e5.NAME:
        from app.models.onnx import OnnxEmbedder

        prefixes = (settings.tuning.embedding_query_prefix, settings.tuning.embedding_passage_prefix)
        return OnnxEmbedder(name, prefixes, settings.tuning.embedding_max_chars)
    if problem := e5.unusable():
        raise SettingsError(f"DOCS_EMBEDDING_MODEL=local:{name} can't be used: {problem}")
    if _prefixes(name, settings) != e5.PREFIXES:
        raise SettingsError(
            f"DOCS_EMBEDDING_MODEL=local:{name} writes its prefixes itself:"
            " remove DOCS_TUNING__EMBEDDING_QUERY_PREFIX and DOCS_TUNING__EMBEDDING_PASSAGE_PREFIX."
        )
    return e5.E5Embedder(settings.tuning.embedding_max_chars)


def open_reranker(settings: Settings) -> Reranker | OnnxReranker | None:
    """The configured reranker; None if none is configured. Raises `SettingsError` if it can't be used here."""
    kind, _, name = settings.rerank_model.partition(":")
    if kind == LOCAL:
        return _local_reranker(name, settings)
    if not settings.rerank_url:
        return None
    if not settings.rerank_model and settings.tuning.rerank_form != "tei":
        raise SettingsError("DOCS_RERANK_URL is set, but DOCS_RERANK_MODEL isn't: name the model to ask.")
    from app.models.openai import Endpoint
    from app.models.rerank import Reranker

    endpoint = Endpoint(
        settings.rerank_url, settings.rerank_key.get_secret_value(), timeout=settings.tuning.helper_timeout
    )
    return Reranker(endpoint, settings.rerank_model or "reranker", settings.tuning.rerank_form)


def _local_reranker(name: str, settings: Settings) -> OnnxReranker:
    if settings.rerank_url or settings.tuning.rerank_sigmoid:
        raise SettingsError(
            f"DOCS_RERANK_MODEL=local:{name} needs no server and scores in 0..1:"
            " remove DOCS_RERANK_URL and DOCS_TUNING__RERANK_SIGMOID."
        )
    from app.models.onnx import OnnxReranker

    return OnnxReranker(name, settings.tuning.helper_timeout)
