"""Results as HTML pages: retrieval, follow-up questions, refusals, answers and grids.

`commands` calls it; it imports `app.report`, which draws, and the rooms whose results it shows.
"""

from __future__ import annotations

from eval.reports.answers import answers_page
from eval.reports.pages import conversations_page, grid_page, refusals_page, retrieval_page

__all__ = ["answers_page", "conversations_page", "grid_page", "refusals_page", "retrieval_page"]
