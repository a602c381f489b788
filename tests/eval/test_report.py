"""Tables for people: nothing that went wrong may be missing from them."""

from dataclasses import replace

from eval.measure.result import RETRIEVAL, Outcome, Result
from eval.measure.tables import result_text
from eval.questions.cases import Case
from tests.eval.conftest import found as outcome

RECIPE = {"embedder": "static", "dimension": 256, "splitter": "headings", "analyzer": "lemmas"}
INDEX = {"id": 3, "built_at": "2024-04-30T00:00:00+00:00", "pages": 67, "chunks": 557, "recipe": RECIPE}
STEPS = ["detect", "retrieve"]
CONFIG = {"date": "2024-05-01T10:00:00+00:00", "model": "", "parallel": 4, "steps": STEPS}
CONFIG["index"] = {**INDEX, "generations_seen": [3]}


def one(i: int, language: str, variant: str, *, found: bool, cross: bool = False) -> Outcome:
    case = Case(f"{language}{variant}{i}{cross}", language, "q|?", "doc.md", variant, cross)
    return outcome(case, int(found), detected=language)


RESULT = Result(
    RETRIEVAL,
    (
        *(one(i, "cs", "1", found=i % 2 == 0) for i in range(10)),
        *(one(i, "en", "4", found=True) for i in range(10)),
        *(one(i, "cs", "odd|name", found=False, cross=True) for i in range(4)),
    ),
    CONFIG,
    5,
)


def test_the_table_has_every_row_and_measure_with_its_interval():
    lines = result_text(RESULT).splitlines()
    assert lines[0].split() == ["n", "MRR@5", "hit@1", "hit@5", "P@5", "R@5", "F1@5", "chunk", "section"]
    names = ["cs 1 full", "cs", "en 4 keywords", "en", "mean of languages", "cs cross odd|name", "cs cross"]
    assert [line.split("  ")[0] for line in lines[1:8]] == names
    assert lines[2].split()[1:4] == ["10", ".500", ".20–.80"]
    assert " .750 " in lines[5]
    assert lines[4].split()[1:4] == ["10", "1.00", "1.0–1.0"]
    assert len(lines[0]) < 150
    assert len({len(line) for line in lines[:8]}) == 1


def test_nothing_that_went_wrong_is_left_out():
    """Unmatched documents, failed searches, fallbacks, an index that changed: each has its line."""
    first, second, third, *rest = RESULT.outcomes
    outcomes = (
        replace(first, details={**first.details, "in_index": False}),
        replace(second, error="StoreUnavailable: gone"),
        replace(third, details={**third.details, "fallbacks": ["keywords"]}),
        *rest,
    )
    config = {**CONFIG, "index": {**INDEX, "generations_seen": [3, 4]}}
    text = result_text(replace(RESULT, outcomes=outcomes, config=config))
    assert "1 questions are about 1 documents that are no indexed pages:\n  doc.md (1)" in text
    assert "1 searches failed and are misses" in text
    assert "StoreUnavailable: gone" in text
    assert "keywords failed on 1 of 24 questions" in text
    assert "published during the run" in text
