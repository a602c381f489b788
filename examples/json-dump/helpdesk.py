"""A help desk: articles of a JSON dump, newer ones first, questions with abbreviations."""

import json
from dataclasses import replace
from pathlib import Path

from llama_index.core import Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import NodeWithScore

from docs_assistant import Question, Turn


class Dump(BaseReader):
    """The published articles of a dump."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load_data(self) -> list[Document]:
        """A document for each article; its metadata becomes that of the page."""
        articles = json.loads(Path(self.path).read_text("utf-8"))
        published = [one for one in articles if one.pop("state") == "published"]
        return [Document(text=f"# {one['title']}\n\n{one.pop('body')}", metadata=one) for one in published]


class NewerFirst(BaseNodePostprocessor):
    """Divides the scores of passages by ten that were last changed before a day."""

    day: str

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: object = None) -> list[NodeWithScore]:
        for one in nodes:
            one.score = one.get_score() * (0.1 if one.metadata["date"] < self.day else 1.0)
        return sorted(nodes, key=lambda one: -one.get_score())


class Abbreviations:
    """Replaces the abbreviations of a question, so that it finds articles that don't use them."""

    reads = ("asked",)
    uses = ()
    writes = ("asked",)
    optional = True
    helper_calls = 0

    def __init__(self, long_forms: dict[str, str]) -> None:
        self.long_forms = long_forms

    async def __call__(self, turn: Turn) -> dict[str, Question]:
        """The question with the long forms."""
        words = (self.long_forms.get(word.strip("?!.,"), word) for word in turn.asked.text.split())
        return {"asked": replace(turn.asked, text=" ".join(words))}
