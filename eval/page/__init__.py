"""A result as one HTML page that needs nothing else: no script, no font, no request."""

from __future__ import annotations

from pathlib import Path

from eval.errors import EvaluationError
from eval.page.conversations import conversations_page
from eval.page.grid import grid_page
from eval.page.refusals import refusals_page
from eval.page.retrieval import retrieval_page

__all__ = ["conversations_page", "grid_page", "refusals_page", "retrieval_page", "write_page"]


def write_page(html: str, path: str | Path) -> None:
    """Keep the page. Raises `EvaluationError` where the file can't be written."""
    try:
        Path(path).write_text(html, encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"The page can't be written: {error}") from error
