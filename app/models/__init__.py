"""Language models, embedders and rerankers, opened from settings.

Called by assistants, pipeline, ingestion and eval; imports app.core.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from app.core.errors import SettingsError
from app.core.plugins import made
from app.core.settings import Settings
from app.models.guarded import Embedder, Model
from app.models.protocols import AUTO, prefixes_of

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from app.models.postprocessor import Postprocessor
    from app.models.rerank import ScoringReranker

__all__ = ["Embedder", "Model", "open_embedder", "open_model", "open_reranker"]

DEFAULT = "multilingual-e5-small"
LOCAL = "local"
_DIMENSIONS = re.compile(r"dimensions=(\d+)")
"""The beginning of names of models in this process: `local:NAME`."""


def open_model(settings: Settings, *, patient: bool = False) -> Model | None:
    """The configured language model. None if none is configured; answers are extractive then. `patient` as in `Model`."""
    if settings.llm_class:
        from llama_index.core.base.llms.base import BaseLLM

        return Model(made(settings.llm_class, BaseLLM, settings.llm_args, "DOCS_LLM_CLASS"), patient=patient)
    if not settings.llm_url:
        return None
    if not settings.llm_model:
        raise SettingsError("DOCS_LLM_URL is set, but DOCS_LLM_MODEL isn't: name the model to ask.")
    from app.models.openai import Endpoint
    from app.models.openai_chat import OpenAIModel

    endpoint = Endpoint(settings.llm_url, settings.llm_key.get_secret_value(), timeout=settings.llm_timeout)
    return Model(OpenAIModel(endpoint, settings.llm_model, settings.llm_extra_body), patient=patient)


def open_embedder(settings: Settings) -> Embedder:
    """The configured embedder, else multilingual-e5-small. Raises `SettingsError` if it can't be used here."""
    model, url, path = settings.embedding_model, settings.embedding_url, settings.embedding_class
    kind, _, name = (model or ("" if url else f"{LOCAL}:{DEFAULT}")).partition(":")
    if (path and kind != LOCAL) or (path and not model):
        from llama_index.core.base.embeddings.base import BaseEmbedding

        embedding = made(path, BaseEmbedding, settings.embedding_args, "DOCS_EMBEDDING_CLASS")
    elif kind == LOCAL and not (path or url):
        embedding = _local_embedder(name, settings)
    elif kind == LOCAL:
        raise SettingsError(
            f"DOCS_EMBEDDING_MODEL={LOCAL}:{name} runs in this process, and {path or url} is another embedder: remove one of them."
        )
    elif not url:
        raise SettingsError(
            f"DOCS_EMBEDDING_MODEL={model} needs the address of its server, DOCS_EMBEDDING_URL. A model in this process is"
            f" written as {LOCAL}:{model}."
        )
    elif not model:
        raise SettingsError("DOCS_EMBEDDING_URL is set, but DOCS_EMBEDDING_MODEL isn't: name the model to ask.")
    else:
        embedding = _server_embedder(settings)
    return Embedder(embedding, settings.tuning.embedding_timeout, partial(_other_embedder, settings))


def _other_embedder(settings: Settings, recorded: str) -> Embedder:
    """The embedder that an index records by this name (see `recorded_name`): a model in this process, or of the configured server.

    Raises `SettingsError` if there is none.
    """
    model, _, more = recorded.partition(" ")
    body = {name: value for name, value in settings.tuning.embedding_extra_body.items() if name != "dimensions"}
    if length := _DIMENSIONS.match(more):
        body["dimensions"] = int(length[1])
    tuning = {"embedding_query_prefix": AUTO, "embedding_passage_prefix": AUTO, "embedding_extra_body": body}
    url = "" if model.startswith(f"{LOCAL}:") else settings.embedding_url
    own = {"embedding_model": model, "embedding_url": url, "embedding_class": ""}
    return open_embedder(settings.model_copy(update={**own, "tuning": settings.tuning.model_copy(update=tuning)}))


def _server_embedder(settings: Settings) -> BaseEmbedding:
    from app.models.openai import Endpoint
    from app.models.openai_embedder import OpenAIEmbedder

    key = settings.embedding_key.get_secret_value()
    return OpenAIEmbedder(
        Endpoint(settings.embedding_url, key, timeout=settings.tuning.embedding_timeout),
        settings.embedding_model,
        prefixes=_prefixes(settings.embedding_model, settings),
        max_chars=settings.tuning.embedding_max_chars,
        extra_body=settings.tuning.embedding_extra_body,
    )


def _prefixes(model: str, settings: Settings) -> tuple[str, str]:
    return prefixes_of(model, settings.tuning.embedding_query_prefix, settings.tuning.embedding_passage_prefix)


def _local_embedder(name: str, settings: Settings) -> BaseEmbedding:
    max_chars, prefixes = settings.tuning.embedding_max_chars, _prefixes(name, settings)
    if name != DEFAULT:
        from app.models import onnx

        written = settings.tuning.embedding_query_prefix, settings.tuning.embedding_passage_prefix
        return onnx.OnnxEmbedder(name, written, max_chars)
    from app.models import e5

    return e5.embedder(prefixes, max_chars)


def open_reranker(settings: Settings) -> Postprocessor | None:
    """The configured reranker; None if none is configured. Raises `SettingsError` if it can't be used here."""
    if (inner := _open_reranker(settings)) is None:
        return None
    from app.models.postprocessor import Postprocessor

    return Postprocessor(inner, inner.name, "set DOCS_TUNING__RERANK_SIGMOID=true for such a model")


def _open_reranker(settings: Settings) -> ScoringReranker | None:
    kind, _, name = settings.rerank_model.partition(":")
    if kind == LOCAL:
        if settings.rerank_url or settings.tuning.rerank_sigmoid:
            raise SettingsError(
                f"DOCS_RERANK_MODEL=local:{name} needs no server and scores in 0..1:"
                " remove DOCS_RERANK_URL and DOCS_TUNING__RERANK_SIGMOID."
            )
        from app.models.rerank import OnnxReranker

        return OnnxReranker(name)
    if not settings.rerank_url:
        return None
    if not settings.rerank_model and settings.tuning.rerank_form != "tei":
        raise SettingsError("DOCS_RERANK_URL is set, but DOCS_RERANK_MODEL isn't: name the model to ask.")
    from app.models.openai import Endpoint
    from app.models.rerank import HttpReranker

    endpoint = Endpoint(
        settings.rerank_url, settings.rerank_key.get_secret_value(), timeout=settings.tuning.helper_timeout
    )
    return HttpReranker(endpoint, settings.rerank_model or "reranker", settings.tuning.rerank_form)
