"""Results as HTML pages: searches, refusals and answers.

`commands` calls it; it imports the rooms whose results it shows. `templates/parts.html` has the parts of a page: sections,
tiles, tables, and charts as SVG.
"""

from eval.reports.answers import answers_page
from eval.reports.report_pages import refusals_page, retrieval_page

__all__ = ["answers_page", "refusals_page", "retrieval_page"]
