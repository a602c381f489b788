"""Errors of the evaluation: wrong question sets, wrong result files, results that can't be compared."""

from __future__ import annotations

from app.core.errors import AssistantError


class EvaluationError(AssistantError):
    """Wrong input: the message names the file, the place and what to do."""
