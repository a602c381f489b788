"""Postprocessors and steps as a project outside the package writes them, good ones and bad ones."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from app.core.turn import Turn

GIVEN: list[tuple[str, list[str]]] = []
"""The question and the ids of the nodes of each call."""
STOPPED = threading.Event()


class ByName(BaseNodePostprocessor):
    """Scores pages by the order of these names and leaves out the others."""

    names: list[str]
    step: float = 0.1
    renamed: bool = False
    rewritten: bool = False

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        GIVEN.append((query_bundle.query_str, [one.node.node_id for one in nodes]))
        found = {one.node.node_id: one for one in nodes}
        kept = [found[name] for name in self.names if name in found] or nodes
        for place, one in enumerate(kept):
            one.score = 0.9 - self.step * place
            if self.renamed:
                one.node = TextNode(text="New.")
            if self.rewritten:
                one.node.set_content("New.")  # type: ignore[attr-defined]
        return kept


class Hangs(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        STOPPED.wait(30)
        return nodes


class HangsAsync(Hangs):
    async def _apostprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        await asyncio.sleep(30)


class Fails(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        if query_bundle.query_str.startswith("What is the capital"):
            return nodes
        raise RuntimeError("no weights")


class TakesNext(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        if query_bundle.query_str.startswith("What is the capital"):
            return nodes
        return [next(node for node in nodes if node.score is None)]


class Asks(BaseNodePostprocessor):
    llm: LLM | None = None

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        if self.llm is not None:
            GIVEN.append((self.llm.complete("Which?").text, []))
        return nodes


class First:
    """Needs nothing, keeps the first hit."""

    name = "first"
    reads: ClassVar = ("hits",)
    uses: ClassVar = ()
    writes: ClassVar = ("hits",)
    optional: ClassVar[bool] = True
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Any:
        return {"hits": turn.hits[:1]}


class Undeclared(First):
    async def __call__(self, turn: Turn) -> Any:
        return {"hitz": ()}


class Nothing(First):
    async def __call__(self, turn: Turn) -> Any:
        return None


class Late(First):
    async def __call__(self, turn: Turn) -> Any:
        await asyncio.sleep(30)


class Blocking(First):
    def __call__(self, turn: Turn) -> Any:  # type: ignore[override]
        return {}


class OneName(First):
    reads = "hits"


class NoField(First):
    writes = ("hits", "glossary")


class NeedsUnknown(First):
    reads = ("hits.stars",)


@dataclass
class Annotated_(First):
    optional: bool = True


class NoStep:
    reads = ()
