"""What reading an address came to; what writes the index goes by it."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.types import Page
from ingestion.convert.prepare import Prepared
from ingestion.crawl.sitemap import Entry
from ingestion.report import PageReport


@dataclass(frozen=True, slots=True)
class Change:
    """What one address means for the index: pages to put or touch, and an address to remove. `report` tells people.

    `page` is what the index will have at the listed `entry`, where that is known for certain.
    """

    report: PageReport | None
    put: Prepared | None = None
    touch: Page | None = None
    remove: str = ""
    page: Page | None = None
    entry: Entry | None = None
