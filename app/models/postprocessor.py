"""The guard around LlamaIndex node postprocessors: rerankers and filters, ours and those of its ecosystem."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from app.core.errors import AssistantError, ModelError, ModelTimeout, SettingsError
from app.core.gate import away, busy
from app.core.plugins import made
from app.core.types import Hit
from app.models.guarded import breaker, closed, probe_of
from app.models.nodes import node_of
from app.models.threads import in_thread, inherits

Scores = Literal["relative", "0..1", "sigmoid"]


def open_postprocessor(name: str, path: str, arguments: Mapping[str, Any], what: str) -> Postprocessor:
    """The postprocessor at `module:Class` for the step of this name. Raises `SettingsError`, which begins with `what`."""
    inner = made(path, BaseNodePostprocessor, objects(arguments, f"{what}={path}"), what)
    sigmoid = (
        'write scores = "sigmoid" in its [[step]] if these are logits; without `scores`, they only compare passages'
    )
    return Postprocessor(inner, f"{type(inner).__module__}:{type(inner).__name__}", sigmoid, label=f"step {name}")


def objects(arguments: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The arguments, in which `{"class": "module:Class", "args": {...}}` is an object of that class, such as a language model.

    Raises `SettingsError`, which begins with `what`.
    """
    return {key: _argument(value, f"{what}: {key}") for key, value in arguments.items()}


def _argument(value: Any, what: str) -> Any:
    if not (isinstance(value, Mapping) and "class" in value):
        return value
    path, arguments = value["class"], value.get("args", {})
    if not (isinstance(path, str) and isinstance(arguments, Mapping)):
        raise SettingsError(f'{what}: write it as {{ class = "module:Class", args = {{ … }} }}.')
    return made(path, object, arguments, what)


class OutsideScores(ModelError):
    """Scores aren't in 0..1, as they should be."""


class Postprocessor:
    """A node postprocessor with a circuit breaker. Classes without asynchronous code of their own run in threads.

    `sigmoid` tells an operator how to say that scores are logits, and `label` is the name of the breaker, else `name`.
    `asks_model` is True if the class has a language model among its fields.
    """

    def __init__(self, inner: BaseNodePostprocessor, name: str, sigmoid: str, *, label: str = "") -> None:
        self.name, self._inner, self._sigmoid = name, inner, sigmoid
        # LlamaIndex would run it in a thread that a program which ends waits for
        self._blocks = inherits(inner, BaseNodePostprocessor, "_apostprocess_nodes")
        self.asks_model = any(isinstance(value, BaseLLM) for value in vars(inner).values())
        self._breaker = breaker("reranker", label or name, inner, probe_of(inner))
        self._place = busy if getattr(inner, "in_process", False) else away
        self.breakers = (self._breaker,)

    async def chosen(self, question: str, hits: Sequence[Hit], scores: Scores, seconds: float) -> tuple[Hit, ...]:
        """The hits that it keeps, in its order, with its scores.

        `scores` says what scores mean that it changes: "relative" compares the passages of one question with each other,
        "0..1" says how well a passage answers, and "sigmoid" the same as logits. Raises `OutsideScores` for others than 0..1, `ModelTimeout` after that many seconds, `ModelUnavailable` at once if it failed that way several times, and
        `ModelError` for an error of its own or a result that hits can't have.
        """
        nodes = [node_of(hit) for hit in hits]
        with self._breaker.call("rerank"), self._place():
            try:
                async with asyncio.timeout(seconds) as limit:
                    returned = await self._called(nodes, question)
                return self._hits(returned, {hit.chunk.id: hit for hit in hits}, scores)
            except AssistantError:
                raise
            except Exception as error:  # anything can happen in a class from outside
                if limit.expired():
                    raise ModelTimeout(f"{self.name} did not answer within {seconds:g} s.") from error
                raise ModelError(f"{self.name} failed: {error} ({type(error).__name__})") from error

    async def _called(self, nodes: list[Any], question: str) -> Any:
        if not self._blocks:
            return await self._inner.apostprocess_nodes(nodes, query_str=question)
        return await in_thread(lambda: self._inner.postprocess_nodes(nodes, query_str=question))

    def _hits(self, found: Any, given: Mapping[str, Hit], meaning: Scores) -> tuple[Hit, ...]:
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
        if meaning == "relative":  # the score of a reranker before it stays: it is evidence
            fused = scores if _all_within(scores) else sorted((hit.fused for hit in hits), reverse=True)
            return tuple(replace(hit, fused=score) for hit, score in zip(hits, fused, strict=True))
        return tuple(replace(hit, rerank=score) for hit, score in zip(hits, self._within(scores, meaning), strict=True))

    def _within(self, scores: Sequence[float], meaning: Scores) -> list[float]:
        if meaning == "sigmoid":
            return [1 / (1 + math.exp(-max(-700.0, min(700.0, score)))) for score in scores]
        if not _all_within(scores):
            raise OutsideScores(
                f"{self.name} scores outside of 0..1 ({min(scores):g} to {max(scores):g}): {self._sigmoid}."
            )
        return list(scores)

    async def close(self) -> None:
        """Close all connections, if the class has any."""
        await closed(self._inner)


def _all_within(scores: Sequence[float]) -> bool:
    return all(0 <= score <= 1 for score in scores)
