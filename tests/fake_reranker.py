"""A reranker without a model, for tests."""

from collections.abc import Callable, Sequence

from app.models.openai import Endpoint
from app.models.postprocessor import Postprocessor
from app.models.rerank import ScoringReranker

Score = Callable[[str, Sequence[str]], list[float]]
"""Gets the question and what is read of each passage."""


class FakeReranker(ScoringReranker):
    """Scores passages with a function."""

    _score: Score

    def __init__(self, score: Score) -> None:
        super().__init__(Endpoint("http://127.0.0.1:9", timeout=1), name="fake")
        self._score = score

    async def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        return self._score(question, passages)


def reranker(score: Score) -> Postprocessor:
    """One behind its guard."""
    return Postprocessor(FakeReranker(score), "fake", "set DOCS_TUNING__RERANK_SIGMOID=true")
