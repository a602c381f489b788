"""A help desk: articles of a JSON dump, the newest of equally good ones first, abbreviations spelled out."""

import json
from pathlib import Path

from llama_index.core import Document
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import NodeWithScore

from app.core.turn import Turn

FACTS = ("number", "title", "language", "updated")


class Dump(BaseReader):
    """The published articles of a dump."""

    def __init__(self, path: str) -> None:
        self.path = path

    def load_data(self) -> list[Document]:
        """A document for each article; its metadata becomes that of the page."""
        articles = json.loads(Path(self.path).read_text("utf-8"))
        return [
            Document(text=f"# {one['title']}\n\n{one['body']}", metadata={key: one[key] for key in FACTS})
            for one in articles
            if one["state"] == "published"
        ]


class NewerFirst(BaseNodePostprocessor):
    """Puts passages that were changed before a day behind all others."""

    day: str

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: object = None) -> list[NodeWithScore]:
        return sorted(nodes, key=lambda one: one.metadata["date"] < self.day)


class Abbreviations:
    """Spells out the abbreviations of a question, so that it finds articles that don't use them."""

    reads = ("question",)
    uses = ()
    writes = ("question",)
    optional = True
    helper_calls = 0

    def __init__(self, long_forms: dict[str, str]) -> None:
        self.long_forms = long_forms

    async def __call__(self, turn: Turn) -> dict[str, str]:
        """The question with the long form behind each abbreviation."""
        return {"question": " ".join(self.spelled_out(word) for word in turn.question.split())}

    def spelled_out(self, word: str) -> str:
        """The word, with its long form if it has one."""
        long_form = self.long_forms.get(word.strip("?!.,"))
        return f"{word.rstrip('?!.,')} ({long_form})" if long_form else word
