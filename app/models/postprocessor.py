"""LlamaIndex node postprocessors: the rerankers and filters of its ecosystem."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from app.core.errors import ModelError, ModelTimeout, ModelUnavailable, SettingsError
from app.core.gate import away
from app.core.plugins import made
from app.core.types import Hit
from app.models.guarded import breaker
from app.models.llamaindex import in_thread

Scores = Literal["relative", "0..1", "sigmoid"]
MOST_RUNNING = 8
"""Calls of one postprocessor in threads at the same time; those that took too long still run."""


def is_postprocessor(class_: type) -> bool:
    """True if the class is a `BaseNodePostprocessor`. Doesn't import LlamaIndex, which takes seconds."""
    return _derives(class_, "BaseNodePostprocessor")


def _derives(class_: type, name: str) -> bool:
    return any(base.__name__ == name and base.__module__.startswith("llama_index.") for base in class_.__mro__)


def open_postprocessor(name: str, path: str, arguments: Mapping[str, Any], scores: Scores, what: str) -> Postprocessor:
    """The postprocessor at `module:Class`. Raises `SettingsError`, which begins with `what`.

    An argument `{"class": "module:Class", "args": {...}}` is an object of that class, such as a language model.
    """
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    values = {key: _argument(value, f"{what}={path}: {key}") for key, value in arguments.items()}
    return Postprocessor(name, made(path, BaseNodePostprocessor, values, what), scores)


def _argument(value: Any, what: str) -> Any:
    """The value, or the object that it describes."""
    if not (isinstance(value, Mapping) and "class" in value):
        return value
    path, arguments = value["class"], value.get("args", {})
    if not (isinstance(path, str) and isinstance(arguments, Mapping)):
        raise SettingsError(f'{what}: write it as {{ class = "module:Class", args = {{ … }} }}.')
    return made(path, object, arguments, what)


class Postprocessor:
    """A node postprocessor with a circuit breaker. Classes without asynchronous code of their own run in threads.

    `scores` says what scores mean that it changes: "relative" compares the passages of one question with each other,
    "0..1" says how well a passage answers, and "sigmoid" the same as logits. `asks_model` is True if the class has a
    language model among its fields.
    """

    def __init__(self, name: str, inner: Any, scores: Scores) -> None:
        self.name = f"{type(inner).__module__}:{type(inner).__name__}"
        self._label, self._inner, self._scores = name, inner, scores
        self._blocks = inspect.unwrap(type(inner)._apostprocess_nodes).__qualname__.startswith("BaseNodePostprocessor.")  # noqa: SLF001  # there is no public way to know
        self._free = threading.Semaphore(MOST_RUNNING)
        self.asks_model = any(_derives(type(value), "BaseLLM") for value in vars(inner).values())
        self._breaker = breaker("reranker", f"step {name}")
        self.breakers = (self._breaker,)

    async def chosen(self, question: str, hits: Sequence[Hit], seconds: float) -> tuple[Hit, ...]:
        """The hits that it keeps, in its order, with its scores.

        Raises `ModelTimeout` after that many seconds, `ModelUnavailable` at once if it failed that way several times, and
        `ModelError` for an error of its own or a result that hits can't have.
        """
        nodes = [_node(hit) for hit in hits]
        with self._breaker.call("postprocess"), away():
            try:
                async with asyncio.timeout(seconds) as limit:
                    returned = await self._called(nodes, question)
                return self._hits(returned, {hit.chunk.id: hit for hit in hits})
            except ModelError:
                raise
            except Exception as error:  # anything can happen in a class from outside
                if limit.expired():
                    raise ModelTimeout(f"{self.name} did not answer within {seconds:g} s.") from error
                raise ModelError(f"{self.name} failed: {error} ({type(error).__name__})") from error

    async def _called(self, nodes: list[Any], question: str) -> Any:
        if not self._blocks:
            return await self._inner.apostprocess_nodes(nodes, query_str=question)
        if not self._free.acquire(blocking=False):
            raise ModelUnavailable(f"{self.name} still runs {MOST_RUNNING} earlier calls.")
        return await in_thread(lambda: self._in_thread(nodes, question))

    def _in_thread(self, nodes: list[Any], question: str) -> Any:
        try:
            return self._inner.postprocess_nodes(nodes, query_str=question)
        finally:
            self._free.release()

    def _hits(self, found: Any, given: Mapping[str, Hit]) -> tuple[Hit, ...]:
        scored: dict[str, tuple[Hit, float | None]] = {}
        for returned in found:
            hit = given.get(returned.node.node_id)
            if hit is None:
                raise ModelError(f"{self.name} returns nodes that it wasn't given: passages must be of the index.")
            if returned.node.text != hit.chunk.text:
                raise ModelError(f"{self.name} changes the texts of passages, but answers quote pages as they are.")
            scored.setdefault(hit.chunk.id, (hit, None if returned.score is None else float(returned.score)))
        hits = [hit for hit, _ in scored.values()]
        scores = [hit.score if score is None else score for hit, score in scored.values()]
        if scores == [hit.score for hit in hits]:
            return tuple(hits)
        if not all(map(math.isfinite, scores)):
            raise ModelError(f"{self.name} gives scores that aren't numbers.")
        if self._scores == "relative":  # the score of a reranker before it stays: it is evidence
            fused = scores if _all_within(scores) else sorted((hit.fused for hit in hits), reverse=True)
            return tuple(replace(hit, fused=score) for hit, score in zip(hits, fused, strict=True))
        return tuple(replace(hit, rerank=score) for hit, score in zip(hits, self._within(scores), strict=True))

    def _within(self, scores: Sequence[float]) -> list[float]:
        if self._scores == "sigmoid":
            return [1 / (1 + math.exp(-max(-700.0, min(700.0, score)))) for score in scores]
        if not _all_within(scores):
            raise ModelError(
                f'{self.name} scores outside of 0..1 ({min(scores):g} to {max(scores):g}): write scores = "sigmoid" in its'
                " [[step]] if these are logits; without `scores`, they only compare passages."
            )
        return list(scores)


def _all_within(scores: Sequence[float]) -> bool:
    return all(0 <= score <= 1 for score in scores)


def _node(hit: Hit) -> Any:
    """The chunk as LlamaIndex sees it; of the metadata, models read the title and the headings."""
    from llama_index.core.schema import NodeWithScore, TextNode

    chunk = hit.chunk
    read = {"title": chunk.title, "headings": " > ".join(chunk.heading_path)}
    other = {
        "url": chunk.link, "language": chunk.language, "collection": chunk.collection, "date": chunk.dated,
        "published": chunk.published, "modified": chunk.modified, "versions": list(chunk.versions),
    }  # fmt: skip
    hidden = {"excluded_embed_metadata_keys": list(other), "excluded_llm_metadata_keys": list(other)}
    return NodeWithScore(node=TextNode(id_=chunk.id, text=chunk.text, metadata=read | other, **hidden), score=hit.score)
