"""The errors of measuring: wrong question sets, wrong result files, results that can't be compared."""

from __future__ import annotations

from app.core.errors import AssistantError


class EvaluationError(AssistantError):
    """What was given to measure with is wrong: the message names the file, the place and the remedy."""
