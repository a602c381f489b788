"""Results as HTML pages: retrieval, follow-up questions, refusals, answers and grids.

`commands` calls it; it imports the rooms whose results it shows. `templates/parts.html` has the parts of a page: sections,
tiles, tables, and charts as SVG.
"""

from __future__ import annotations

from eval.reports.answers import answers_page
from eval.reports.report_pages import conversations_page, grid_page, refusals_page, retrieval_page

__all__ = ["answers_page", "conversations_page", "grid_page", "refusals_page", "retrieval_page"]
