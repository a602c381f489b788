"""A small real search for the evaluation to measure: pages ranked by the words they share with the question."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.core.errors import StoreUnavailable
from app.core.generation import GenerationInfo, Recipe
from app.core.settings import Settings
from app.core.turn import Evidence, Question, Request, Search, StepRecord, Turn
from app.core.types import Chunk, Derived, Hit, Legs, Page, Query
from docs_assistant.cli.commands import evaluation
from eval.commands.options import OpenFinder, open_finder
from eval.measure.result import PROVED, Outcome
from eval.measure.rows import score
from eval.questions.cases import Case

SHARED = Path(__file__).parents[2] / "../shared"
WORD = re.compile(r"\w{3,}")


def words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def found(case: Case, rank: int, contestant: str = "", *, k: int = 5, error: str = "", **details: object) -> Outcome:
    """A question whose right page, chunk and section stood at this rank of five (0: nowhere)."""
    ranked = [case.doc if place == rank else f"other{place}" for place in range(1, 6)]
    ranks = [[rank] if rank else [], 5, 1]
    known = {
        "ranked": ranked, "detected": "en", "in_index": True, "fallbacks": [], "hits": [], "steps": [],
        "ranks": dict.fromkeys(("page", "chunk", "section"), ranks),
    }  # fmt: skip
    values = {**score(ranked, case.relevant, k), **dict.fromkeys(PROVED, 1 / rank if 0 < rank <= k else 0.0)}
    return Outcome(case, contestant, values, 12.0, error, known | details)


@dataclass
class Lookup:
    """A finder over texts by address: no language model, no store, one generation."""

    texts: Mapping[str, str]
    language: str = "en"
    limit: int = 5
    vector_weight: float = 0.0
    broken: frozenset[str] = frozenset()
    trace: tuple[StepRecord, ...] = (StepRecord("retrieve", 1.0, {}),)
    asked: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        recipe = Recipe("none", 2, "whole", "plain")
        info = GenerationInfo(7, recipe, "2024-05-01T00:00:00+00:00", ("en",), len(self.texts), len(self.texts))
        self.words = {url: words(f"{url} {text}") for url, text in self.texts.items()}
        self.generation = SimpleNamespace(info=info, pages=self.pages, fetch=self.fetch, page=self.page)

    async def pages(self) -> tuple[Page, ...]:
        return tuple(
            Page(url, "docs", url, "en", "", "hash", derived=Derived((f"{url}#0", f"{url}#1"))) for url in self.texts
        )

    async def page(self, url: str) -> Page | None:
        return Page(url, "docs", url, "en", self.texts[url], "hash") if url in self.texts else None

    async def fetch(self, ids) -> tuple[Chunk, ...]:
        return tuple(self.chunk(*id_.split("#")) for id_ in ids)

    def chunk(self, url: str, n: str) -> Chunk:
        return Chunk(f"{url}#{n}", "docs", url, int(n), self.texts[url], "en", url)

    async def find(self, request: Request) -> Turn:
        self.asked.append(request)
        if request.question in self.broken:
            raise StoreUnavailable("The store is gone.")
        asked = words(request.question)
        ranked = sorted(self.texts, key=lambda url: (-len(asked & self.words[url]), url))
        hits = tuple(
            # two passages of each page, as the real retrieval may bring
            Hit(self.chunk(url, n))
            for url in ranked[: self.limit]
            if asked & self.words[url]
            for n in "01"
        )
        return Turn(
            request=request,
            generation=self.generation,
            asked=Question(request.question, self.language),
            hits=hits,
            trace=self.trace,
            search=Search(Query(texts=(), limit=self.limit, vector_weight=self.vector_weight), Legs()),
        )

    async def assess(self, request: Request) -> Turn:
        turn = await self.find(request)
        return replace(turn, evidence=Evidence(float(bool(turn.hits)), 0.32))


@pytest.fixture
def lookup() -> type[Lookup]:
    """The finder's class: give it texts by address."""
    return Lookup


@pytest.fixture
def write_jsonl(tmp_path):
    """Writes rows to a .jsonl file and gives its path."""

    def write(name: str, *rows: Mapping[str, object]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def shared_eval() -> Path:
    """The folder of the big question set beside the checkout."""
    if not (SHARED / "eval/questions.jsonl").is_file():
        pytest.skip("the shared question set isn't beside this checkout")
    return SHARED / "eval"


async def command(settings: Settings, *words: object, open_finder: OpenFinder = open_finder) -> int:
    """`docs-assistant eval` as it is typed; the exit code."""
    with evaluation.make_context("eval", [str(word) for word in words], obj=(settings, open_finder)) as context:
        return await evaluation.invoke(context)


@pytest.fixture
def index(own_docs: Settings, monkeypatch) -> Settings:
    """An index of our documentation, for commands that open the store by its setting."""
    monkeypatch.setenv("DOCS_STORE", own_docs.store)
    return own_docs
