"""The same answers as a report of Evidently; needs the extra `eval`."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from eval.answers.result import AnswerResult
from eval.answers.score import MEASURES, Scored
from eval.errors import EvaluationError

TEXTS = ("question", "answer", "reference")
CATEGORIES = ("contestant", "language", "variant")


def evidently_page(result: AnswerResult, path: str | Path) -> None:
    """Write Evidently's page (about 4 MB, with its scripts inside). Raises `EvaluationError` without the extra."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of its imports
        try:
            import pandas as pd
            from evidently import DataDefinition, Dataset, Report
            from evidently.presets import DataSummaryPreset
        except ImportError as error:
            raise EvaluationError(
                f"Evidently isn't installed ({error}). Install the extra: pip install 'docs-assistant[eval]'."
            ) from error
        shown = [name for name in MEASURES if any(_known(one, name) is not None for one in result.scored)]
        frame = pd.DataFrame(
            {
                "contestant": one.answer.contestant,
                "language": one.case.language,
                "variant": one.case.variant,
                "question": one.case.question,
                "answer": one.answer.text,
                "reference": one.case.answer,
                **{name: _known(one, name) for name in shown},
            }
            for one in result.scored
        ).astype(dict.fromkeys(shown, float))
        definition = DataDefinition(
            text_columns=list(TEXTS), categorical_columns=list(CATEGORIES), numerical_columns=shown
        )
        Report([DataSummaryPreset()]).run(Dataset.from_pandas(frame, definition), None).save_html(str(path))


def _known(one: Scored, measure: str) -> float | None:
    return one.values[measure]  # noqa: PD011  # ours, no frame
